#include "cli/cluster_args.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "estimator/belief_net.h"
#include "eval/run_file.h"
#include "policy/embedded_weights.h"

void print_left_out(FILE *f, const JobList *l) {
    if (l->n_left_out == 0) return;
    (void)fprintf(f, "left out: ");
    for (uint32_t i = 0; i < l->n_left_out; i++)
        (void)fprintf(f, "%s%u %s", i > 0 ? ", " : "", l->left_out[i].rows, l->left_out[i].reason);
    (void)fputc('\n', f);
}

json_t *left_out_json(const JobList *l) {
    json_t *o = json_object();
    for (uint32_t i = 0; i < l->n_left_out; i++)
        json_object_set_new(o, l->left_out[i].reason, json_integer(l->left_out[i].rows));
    return o;
}

void trace_args_rows(TraceArgs *t, ArgRow *rows) {
    TraceWindow *w = &t->window;
    t->format = "auto";
    const ArgRow all[TRACE_ARG_ROWS] = {
        {"format", ARG_TEXT, &t->format, "F",
         "plain, philly, helios, openb, muri, chronus, tiresias, lucid, pollux, sacct, kubernetes, "
         "gavel, synergy (default auto)",
         0, 0},
        {"unit", ARG_TEXT, &t->unit, "U", "unit of times without one: ms, s or min", 0, 0},
        {"rates", ARG_TEXT, &t->rates, "FILE",
         "CSV of seconds per iteration, for traces that count iterations", 0, 0},
        {"gpu-type", ARG_TEXT, &t->gpu_type, "T", "GPU type to take from --rates (default v100)", 0,
         0},
        {"from", ARG_TEXT, &w->from, "T",
         "jobs submitted at T or later: 90, 15m, 12h, 3d, or a date", 0, 0},
        {"to", ARG_TEXT, &w->to, "T", "jobs submitted before T", 0, 0},
        {"skip", ARG_INT, &w->skip, "N", "skip the first N of the selected jobs", 0, INT64_MAX},
        {"jobs", ARG_INT, &w->jobs, "N", "at most N jobs (default: all)", 0, INT64_MAX},
        {"min-s", ARG_INT, &w->min_s, "S", "jobs of at least S seconds", 0, INT64_MAX},
        {"max-s", ARG_INT, &w->max_s, "S", "jobs of at most S seconds", 0, INT64_MAX},
        {"min-gpus", ARG_INT, &w->min_gpus, "N", "jobs of at least N GPUs", 0, INT64_MAX},
        {"max-gpus", ARG_INT, &w->max_gpus, "N", "jobs of at most N GPUs", 0, INT64_MAX},
        {"known", ARG_FLAG, &w->known, NULL, "only jobs with a known duration", 0, 0},
        {"rebase", ARG_FLAG, &w->rebase, NULL,
         "shift times so that the first job is submitted at 0", 0, 0},
        {"any-type", ARG_FLAG, &t->any_type, NULL,
         "jobs run on any type of GPU, whatever they ask for", 0, 0},
        {"elastic", ARG_TEXT, &t->elastic, "MIN..MAX[,SHARE]",
         "makes jobs of MIN to MAX GPUs elastic within these bounds, or a share of them", 0, 0},
    };
    memcpy(rows, all, sizeof all);
}

void trace_args_some(TraceArgs *t, ArgRow *rows) {
    const TraceWindow *w = &t->window;
    const void        *own[] = {&w->skip, &w->jobs, &w->max_s, &w->known, &w->rebase};
    ArgRow             all[TRACE_ARG_ROWS];
    uint32_t           n = 0;
    trace_args_rows(t, all);
    for (uint32_t i = 0; i < TRACE_ARG_ROWS; i++) {
        bool left = false;
        for (uint32_t k = 0; k < sizeof own / sizeof *own; k++) left = left || all[i].to == own[k];
        if (!left) rows[n++] = all[i];
    }
}

static Err unit_of(const char *text, TimeNs *out) {
    static const struct {
        const char *name;
        TimeNs      ns;
    } units[] = {{"ms", 1000000}, {"s", JOB_SECOND}, {"min", 60 * JOB_SECOND}};
    for (size_t i = 0; i < sizeof units / sizeof *units; i++)
        if (strcmp(units[i].name, text) == 0) {
            *out = units[i].ns;
            return ERR_OK;
        }
    return err_set(ERR_ARG, "--unit %.40s: give ms, s or min", text);
}

Err trace_args_options(const TraceArgs *t, Arena *a, JobTraceOptions *out) {
    JobTraceOptions o = {.window = t->window, .any_type = t->any_type};
    TRY(elastic_range_read(t->elastic, &o.elastic));
    if (t->unit != NULL) TRY(unit_of(t->unit, &o.unit));
    if (t->rates != NULL) {
        IterationTimes *rates = arena_new(a, IterationTimes, 1);
        TRY(iteration_times_read(t->rates, t->gpu_type, a, rates));
        o.rates = rates;
    }
    *out = o;
    return ERR_OK;
}

Err cluster_estimator_read(const char *text, Arena *a, Information *out) {
    size_t      n = text != NULL ? strcspn(text, ":") : 0;
    const char *file = text != NULL && text[n] == ':' ? text + n + 1 : "";
    WeightsFile w;
    TRY(information_set_estimator(out,
                                  text != NULL ? arena_printf(a, "%.*s", (int)n, text) : NULL));
    if (out->estimator < ESTIMATOR_ATTENTION) {
        if (*file == '\0') return ERR_OK;
        return err_set(ERR_ARG, "--estimator %.40s: only attention and both have weights", text);
    }
    TRY(embedded_weights_load(file, "beliefs", "cluster", BELIEF_FACTS, a, &w));
    if (w.params.n != belief_net_params())
        return err_set(ERR_INVALID, "weights of beliefs: %zu numbers, expected %zu", w.params.n,
                       belief_net_params());
    out->beliefs = w.params.at;
    return ERR_OK;
}

Err trace_args_read(const TraceArgs *t, const char *path, Arena *a, JobList *out) {
    JobTraceOptions o;
    TRY(trace_args_options(t, a, &o));
    return trace_run_jobs(path, t->format, &o, a, out);
}

void cluster_scenario_args_rows(ClusterScenarioArgs *x, ArgRow rows[CLUSTER_SCENARIO_ARG_ROWS]) {
    x->trace = "synth:philly_small";
    x->servers = "8";
    x->load = "1";
    x->jobs = CLUSTER_SCENARIO_JOBS;
    x->stops = (StopOptions){-1, -1};
    x->max_s = CLUSTER_SCENARIO_MAX_S;
    const ArgRow own[CLUSTER_SCENARIO_ARG_ROWS - TRACE_ARG_SOME] = {
        {"trace", ARG_TEXT, &x->trace, "FILE|NAME",
         "job trace; synth:NAME generates one for every seed (default synth:philly_small)", 0, 0},
        {"servers", ARG_TEXT, &x->servers, "N|FILE",
         "number of equal servers, or a CSV file (default 8)", 0, 0},
        {"gpus-per-node", ARG_INT, &x->gpus, "G", "GPUs per server (default 8)", 0, CLUSTER_GPUS},
        {"cores-per-node", ARG_INT, &x->cores, "C",
         "cores per server (default 3 per GPU, 12 if jobs request cores)", 0, 1000000},
        {"memory-per-node", ARG_INT, &x->memory_gb, "GB",
         "memory per server (default 62.5 GB per GPU, 96 if jobs request memory)", 0, 1000000},
        {"load", ARG_TEXT, &x->load, "L",
         "offered load: GPU time requested / available; 0 keeps trace times (default 1)", 0, 0},
        {"jobs", ARG_INT, &x->jobs, "N", "jobs per run; 0: the whole trace (default 50 per server)",
         0, INT32_MAX},
        {"max-duration", ARG_INT, &x->max_s, "S",
         "leave out jobs longer than S seconds; 0: keep all (default 86400)", 0, INT64_MAX},
        {"profiles", ARG_TEXT, &x->profiles, "FILES",
         "profiles of job classes, on top of the shipped ones; none: all jobs are alike", 0, 0},
        {"mix", ARG_TEXT, &x->mix, "\"CLASS:N ...\"",
         "class mix of jobs without a model (default: the weights of the classes)", 0, 0},
        CLUSTER_INFORMATION_ARG(&x->information),
        CLUSTER_ESTIMATOR_ARG(&x->estimator),
        CLUSTER_STOP_ARGS(&x->stops),
        CLUSTER_TENANT_ARGS(x),
    };
    memcpy(rows, own, sizeof own);
    trace_args_some(&x->file, rows + CLUSTER_SCENARIO_ARG_ROWS - TRACE_ARG_SOME);
}

static Err read_tenants(const char *quota, const char *weights, Arena *a,
                        const TenantShares **out) {
    TenantShares *x = arena_new(a, TenantShares, 1);
    TRY(tenant_shares_read(quota, weights, a, x));
    *out = x;
    return ERR_OK;
}

Err cluster_scenario_args_common(const ClusterScenarioArgs *x, Arena *a, ClusterScenarioSpec *out) {
    *out = (ClusterScenarioSpec){.format = x->file.format,
                                 .like = {.gpus = (uint32_t)x->gpus,
                                          .cores_milli = (uint32_t)x->cores * 1000,
                                          .memory_mib = (uint32_t)(x->memory_gb * 1024)},
                                 .profiles = x->profiles,
                                 .mix = x->mix,
                                 .jobs = (uint32_t)x->jobs,
                                 .max_s = x->max_s,
                                 .stops = &x->stops};
    TRY(read_tenants(x->quota, x->weights, a, &out->tenants));
    TRY(information_read(x->information, a, &out->information));
    TRY(cluster_estimator_read(x->estimator, a, &out->information));
    return trace_args_options(&x->file, a, &out->options);
}

enum { WORDS_MAX = 256 };

void cluster_sim_args_rows(ClusterSimArgs *x, ArgRow rows[CLUSTER_SIM_ARG_ROWS]) {
    *x = (ClusterSimArgs){
        .policy = "fifo", .like = "auto", .nodes = 8, .gpus = 8, .seed = 1, .stops = {-1, -1}};
    const ArgRow own[CLUSTER_SIM_OWN_ROWS] = {
        {"trace", ARG_TEXT, &x->trace, "FILE|NAME", "job trace", 0, 0},
        {"nodes", ARG_INT, &x->nodes, "N", "number of equal servers (default 8)", 1, SERVERS_MAX},
        {"gpus-per-node", ARG_INT, &x->gpus, "G", "GPUs per server (default 8)", 1, CLUSTER_GPUS},
        {"cores-per-node", ARG_INT, &x->cores, "C", "cores per server (default 3 per GPU)", 0,
         1000000},
        {"memory-per-node", ARG_INT, &x->memory_gb, "GB",
         "memory per server (default 62.5 GB per GPU)", 0, 1000000},
        {"servers", ARG_TEXT, &x->servers, "FILE", "servers from a CSV file instead of --nodes", 0,
         0},
        {"policy", ARG_TEXT, &x->policy, "NAME", "scheduling policy (default fifo)", 0, 0},
        {"like", ARG_TEXT, &x->like, "RULES",
         "simulator to follow: lucid, synergy, muri or own; auto: by the jobs (default auto)", 0,
         0},
        {"set", ARG_LIST, &x->sets, "POLICY.KEY=VALUE", "a setting; may be repeated", 0, 0},
        {"profiles", ARG_TEXT, &x->profiles, "FILES",
         "profiles of job classes: default, or files on top of it (default: all alike)", 0, 0},
        {"mix", ARG_TEXT, &x->mix, "\"CLASS:N ...\"",
         "class mix of jobs without a model (default: the weights of the classes)", 0, 0},
        CLUSTER_INFORMATION_ARG(&x->information),
        CLUSTER_ESTIMATOR_ARG(&x->estimator),
        CLUSTER_STOP_ARGS(&x->stops),
        CLUSTER_TENANT_ARGS(x),
        {"error", ARG_REAL, &x->error, "E",
         "durations are predicted, off by a factor of e^E on average (default: exact)", 0, 10},
        {"seed", ARG_INT, &x->seed, "S", "seed of predictions and of random classes (default 1)", 0,
         INT64_MAX},
    };
    memcpy(rows, own, sizeof own);
    trace_args_rows(&x->part, rows + CLUSTER_SIM_OWN_ROWS);
}

Err cluster_sim_args_spec(const ClusterSimArgs *x, Arena *a, TraceRunSpec *out) {
    *out = (TraceRunSpec){.trace = x->trace,
                          .format = x->part.format,
                          .servers = x->servers,
                          .n_servers = (uint32_t)x->nodes,
                          .server = {.gpus = (uint32_t)x->gpus,
                                     .cores_milli = (uint32_t)x->cores * 1000,
                                     .memory_mib = (uint32_t)(x->memory_gb * 1024),
                                     .gpu_type = ""},
                          .policy = x->policy,
                          .sets = &x->sets,
                          .like = x->like,
                          .profiles = x->profiles,
                          .mix = x->mix,
                          .seed = (uint64_t)x->seed,
                          .error = x->error,
                          .stops = &x->stops};
    TRY(read_tenants(x->quota, x->weights, a, &out->tenants));
    TRY(information_read(x->information, a, &out->information));
    TRY(cluster_estimator_read(x->estimator, a, &out->information));
    return trace_args_options(&x->part, a, &out->options);
}

// An option with its value, or its default, as two words.
static void add_row(json_t *to, const ArgRow *row) {
    char           name[64], value[64] = "";
    const char    *text = value;
    const ArgList *list = row->kind == ARG_LIST ? row->to : NULL;
    snprintf(name, sizeof name, "--%s", row->name);
    for (uint32_t i = 0; list != NULL && i < list->n; i++)
        json_array_append_new(to, json_pack("[s,s]", name, list->at[i]));
    if (row->kind == ARG_FLAG && *(const bool *)row->to)
        json_array_append_new(to, json_pack("[s]", name));
    if (row->kind == ARG_TEXT) text = *(const char *const *)row->to;
    if (row->kind == ARG_INT && *(const int64_t *)row->to >= row->min)
        snprintf(value, sizeof value, "%" PRId64, *(const int64_t *)row->to);
    if (row->kind == ARG_REAL) snprintf(value, sizeof value, "%.17g", *(const double *)row->to);
    if (text != NULL && *text != '\0') json_array_append_new(to, json_pack("[s,s]", name, text));
}

json_t *cluster_sim_args_json(const ClusterSimArgs *x) {
    ClusterSimArgs copy;
    ArgRow         rows[CLUSTER_SIM_ARG_ROWS];
    json_t        *options = json_array();
    cluster_sim_args_rows(&copy, rows);
    copy = *x;
    for (uint32_t i = 0; i < CLUSTER_SIM_ARG_ROWS; i++) add_row(options, &rows[i]);
    return options;
}

static Err add_words(const char *path, const json_t *options, Arena *a, char **argv, int *argc) {
    for (size_t i = 0; i < json_array_size(options); i++) {
        const json_t *option = json_array_get(options, i);
        for (size_t k = 0; k < json_array_size(option); k++) {
            const char *word = json_string_value(json_array_get(option, k));
            if (word == NULL || *argc + 1 >= WORDS_MAX)
                return err_set(ERR_PARSE, "%s: line 1: options are lists of words", path);
            argv[(*argc)++] = arena_str(a, word);
        }
    }
    return ERR_OK;
}

Err cluster_sim_args_read(const char *path, Arena *a, ClusterSimArgs *out) {
    static const Command as = {.name = "cluster simulate"};
    ArgRow               rows[CLUSTER_SIM_ARG_ROWS];
    char                *argv[WORDS_MAX] = {arena_str(a, as.name)};
    json_t              *options = NULL;
    int                  argc = 1;
    TRY(cluster_run_file_read(path, a, &options));
    Err e = add_words(path, options, a, argv, &argc);
    json_decref(options);
    TRY(e);
    cluster_sim_args_rows(out, rows);
    if (args_parse(&as, rows, CLUSTER_SIM_ARG_ROWS, argc, argv, NULL, 0, 0, NULL) >= 0 ||
        out->trace == NULL)
        return err_set(ERR_PARSE, "%s: line 1: not the options of a run", path);
    return ERR_OK;
}
