#include "cli/cluster_sim_args.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "cluster/profile/class_assignment.h"
#include "cluster/cluster_scenario.h"

enum { PLAY_WORDS = 256, PLAY_BYTES = 1 << 30 };

void trace_run_rows(ClusterSimArgs *x, ArgRow rows[CLUSTER_SIM_ARG_ROWS]) {
    *x = (ClusterSimArgs){.policy = "fifo", .like = "auto", .nodes = 8, .gpus = 8, .seed = 1};
    const ArgRow own[CLUSTER_SIM_OWN_ROWS] = {
        {"trace", ARG_TEXT, &x->trace, "FILE|NAME", "the jobs", 0, 0},
        {"nodes", ARG_INT, &x->nodes, "N", "servers alike (default 8)", 1, SERVERS_MAX},
        {"gpus-per-node", ARG_INT, &x->gpus, "G", "of each (default 8)", 1, CLUSTER_GPUS},
        {"cores-per-node", ARG_INT, &x->cores, "C", "(default 3 a GPU)", 0, 1000000},
        {"memory-per-node", ARG_INT, &x->memory_gb, "GB", "(default 62.5 a GPU)", 0, 1000000},
        {"servers", ARG_TEXT, &x->servers, "FILE", "servers from a file instead of alike ones", 0,
         0},
        {"policy", ARG_TEXT, &x->policy, "NAME", "who decides (default fifo)", 0, 0},
        {"like", ARG_TEXT, &x->like, "RULES",
         "lucid, synergy or own; auto: what fits the jobs (default auto)", 0, 0},
        {"set", ARG_LIST, &x->sets, "POLICY.KEY=VALUE", "a setting; may be repeated", 0, 0},
        {"profiles", ARG_TEXT, &x->profiles, "FILES",
         "how fast classes of jobs are: default, or files over it (default: all alike)", 0, 0},
        {"mix", ARG_TEXT, &x->mix, "\"CLASS:N ...\"",
         "of jobs without a model (default: the classes' weights)", 0, 0},
        {"error", ARG_REAL, &x->error, "E",
         "durations are predicted, off by a factor of e^E on average (default: exact)", 0, 10},
        {"seed", ARG_INT, &x->seed, "S", "of predictions and of classes by lot (default 1)", 0,
         INT64_MAX},
    };
    memcpy(rows, own, sizeof own);
    trace_args_rows(&x->part, rows + CLUSTER_SIM_OWN_ROWS);
}

static Err read_servers(const ClusterSimArgs *o, Arena *a, ServerList *out) {
    const char *what = o->servers;
    if (what != NULL && what[strspn(what, "0123456789")] == '\0')
        return err_set(ERR_ARG, "--servers %s: it names a file; --nodes says how many", what);
    if (what != NULL) return server_list_read(what, a, out);
    ServerSpec like = {.gpus = (uint32_t)o->gpus,
                       .cores_milli = (uint32_t)o->cores * 1000,
                       .memory_mib = (uint32_t)(o->memory_gb * 1024),
                       .gpu_type = ""};
    return server_list_equal((uint32_t)o->nodes, &like, a, out);
}

static void decided_by(ClusterRun *run, const ClusterChoice *c) {
    run->policy = c->policy;
    run->settings = c->settings;
    run->knows = c->policy->knows;
    if (run->error > 0 && run->knows == CLUSTER_ORACLE) run->knows = CLUSTER_PREDICTED;
}

static Err choose(const ClusterSimArgs *o, Arena *a, TraceRun *x) {
    TRY(cluster_choice_read(o->policy, &o->sets, a, &x->choices));
    if (x->choices.n != 1)
        return err_set(ERR_ARG, "--policy %s: one policy runs at a time", o->policy);
    decided_by(&x->run, &x->choices.at[0]);
    bool found = strcmp(o->like, "auto") == 0;
    x->like = found ? cluster_like(&x->jobs, x->run.policy, o->profiles != NULL) : o->like;
    return cluster_sim_params(x->like, x->run.policy, &x->run.params);
}

// By Lucid's rules time begins with the first job.
static void rebase(TraceRun *x) {
    TimeNs first = x->jobs.at[0].submit;
    if (strcmp(x->like, "lucid") != 0) return;
    for (uint32_t i = 0; i < x->jobs.n; i++) x->jobs.at[i].submit -= first;
}

// Synergy's simulator knows ten models; what else a trace names runs as alexnet.
static void as_synergy(const ClusterProfiles *p, JobList *l, uint32_t *class_of) {
    static const char *const unknown[] = {"bert", "vae"};
    uint32_t                 stand_in = profile_find(p, "alexnet");
    for (uint32_t i = 0; i < l->n && stand_in != PROFILE_NONE; i++) {
        Job        *j = &l->at[i];
        const char *name = job_model(l, j);
        double      one = p->at[stand_in].iteration_s[0];
        bool        known = profile_find(p, name) != PROFILE_NONE;
        for (int k = 0; k < 2; k++) known = known && strcmp(name, unknown[k]) != 0;
        if (known) continue;
        class_of[i] = stand_in;
        if (!(one > 0) || j->iterations < 1) continue;
        j->iteration = (TimeNs)(one * (double)JOB_SECOND + 0.5);
        if (j->iterations <= JOB_TIME_MAX / j->iteration) j->work = j->iteration * j->iterations;
    }
}

static Err classify(const ClusterSimArgs *o, Arena *a, TraceRun *x) {
    bool             synergy = strcmp(x->like, "synergy") == 0;
    bool             shipped = o->profiles != NULL && strcmp(o->profiles, "default") == 0;
    ClusterProfiles *p = NULL;
    ClassAssignment  s;
    if (o->profiles == NULL && o->mix != NULL)
        return err_set(ERR_ARG, "--mix: classes come from --profiles; give default, or files");
    if (o->profiles == NULL) return ERR_OK;
    TRY(cluster_scenario_profiles(o->profiles, synergy && !shipped, &x->servers, a, &p));
    if (p == NULL) return ERR_OK;
    TRY(class_assignment_draw(p, &x->jobs, o->mix, rng_fork((Rng){(uint64_t)o->seed}, 2), a, &s));
    if (synergy) as_synergy(p, &x->jobs, s.class_of);
    x->run.profiles = p;
    x->run.class_of = s.class_of;
    return ERR_OK;
}

Err trace_run_choose(const TraceRun *p, const ClusterChoice *c, Arena *a, ClusterRun *run) {
    ClusterSetup setup;
    decided_by(run, c);
    TRY(cluster_sim_params(p->like, run->policy, &run->params));
    TRY(cluster_setup(run, a, &setup));
    return cluster_choice_load(c, &setup, a, &run->loaded);
}

Err trace_run_open(const ClusterSimArgs *o, Arena *a, TraceRun *x) {
    *x = (TraceRun){0};
    TRY(trace_args_read(&o->part, o->trace, a, &x->jobs));
    TRY(read_servers(o, a, &x->servers));
    x->run = (ClusterRun){
        .jobs = &x->jobs, .servers = &x->servers, .seed = (uint64_t)o->seed, .error = o->error};
    TRY(choose(o, a, x));
    TRY(classify(o, a, x));
    rebase(x);
    return trace_run_choose(x, &x->choices.at[0], a, &x->run);
}

// An option that was given, or its default, as two words.
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

static Err write_all(const ClusterSimArgs *x, const JobEventLog *d, FILE *f) {
    ClusterSimArgs copy;
    ArgRow         rows[CLUSTER_SIM_ARG_ROWS];
    json_t        *options = json_array();
    trace_run_rows(&copy, rows);
    copy = *x;
    for (uint32_t i = 0; i < CLUSTER_SIM_ARG_ROWS; i++) add_row(options, &rows[i]);
    json_t *header = json_pack("{s:s,s:s,s:o}", "run", "cluster", "version", COTENANT_VERSION,
                               "options", options);
    if (header == NULL) return err_set(ERR_LIMIT, "no memory for what the records begin with");
    int wrong = json_dumpf(header, f, JSON_COMPACT);
    json_decref(header);
    if (wrong != 0) return err_set(ERR_IO, "writing a record failed");
    fputc('\n', f);
    job_event_log_write(d, f);
    return ERR_OK;
}

Err trace_run_record(const ClusterSimArgs *x, const JobEventLog *d, const char *path) {
    AtomicFile f;
    TRY(file_begin(&f, path));
    Err e = write_all(x, d, f.out);
    if (e == ERR_OK) e = file_commit(&f);
    file_drop(&f);
    return e;
}

static Err read_option(const char *path, const json_t *option, Arena *a, char **argv, int *argc) {
    for (size_t k = 0; k < json_array_size(option); k++) {
        const char *word = json_string_value(json_array_get(option, k));
        if (word == NULL || *argc + 1 >= PLAY_WORDS)
            return err_set(ERR_PARSE, "%s: line 1: options are lists of words", path);
        argv[(*argc)++] = arena_str(a, word);
    }
    return ERR_OK;
}

static Err read_header(const char *path, const json_t *header, Arena *a, char **argv, int *argc) {
    const char *run;
    json_t     *options;
    TRY(json_get_text(header, "run", &run));
    if (strcmp(run, "cluster") != 0)
        return err_set(ERR_PARSE, "%s: records of a %s, not of a cluster", path, run);
    TRY(json_get_array(header, "options", &options));
    for (size_t i = 0; i < json_array_size(options); i++)
        TRY(read_option(path, json_array_get(options, i), a, argv, argc));
    return ERR_OK;
}

Err trace_run_recorded(const char *path, Arena *a, ClusterSimArgs *out) {
    static const Command as = {.name = "cluster simulate"};
    ArgRow               rows[CLUSTER_SIM_ARG_ROWS];
    char                *text, *argv[PLAY_WORDS] = {0}, *end;
    size_t               len;
    json_t              *header = NULL;
    int                  argc = 1;
    TRY(file_read(path, PLAY_BYTES, a, &text, &len));
    end = memchr(text, '\n', len);
    TRY(json_parse(path, text, end != NULL ? (size_t)(end - text) : len, &header));
    Err e = read_header(path, header, a, argv, &argc);
    json_decref(header);
    TRY(e);
    argv[0] = arena_str(a, as.name);
    trace_run_rows(out, rows);
    if (args_parse(&as, rows, CLUSTER_SIM_ARG_ROWS, argc, argv, NULL, 0, 0, NULL) >= 0 ||
        out->trace == NULL)
        return err_set(ERR_PARSE, "%s: line 1: not the options of a run", path);
    return ERR_OK;
}

Err trace_run_compare(const ClusterSimArgs *x, const JobEventLog *d, const char *path,
                      Arena *scratch) {
    char  *was, *is = NULL;
    size_t was_len, is_len = 0;
    TRY(file_read(path, PLAY_BYTES, scratch, &was, &was_len));
    FILE *f = open_memstream(&is, &is_len);
    if (f == NULL) return err_set(ERR_LIMIT, "no memory to compare with %s", path);
    Err  e = write_all(x, d, f);
    bool closed = fclose(f) == 0;
    bool same = closed && is_len == was_len && memcmp(is, was, is_len) == 0;
    free(is);
    TRY(e);
    if (same) return ERR_OK;
    return err_set(ERR_ARG,
                   "%s: the same options give another run now: the trace, the weights or this "
                   "program changed since",
                   path);
}
