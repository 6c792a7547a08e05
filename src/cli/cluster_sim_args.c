#include "cli/cluster_sim_args.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "eval/run_file.h"

enum { WORDS_MAX = 256 };

void cluster_sim_args_rows(ClusterSimArgs *x, ArgRow rows[CLUSTER_SIM_ARG_ROWS]) {
    *x = (ClusterSimArgs){.policy = "fifo", .like = "auto", .nodes = 8, .gpus = 8, .seed = 1};
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
         "simulator to follow: lucid, synergy or own; auto: by the jobs (default auto)", 0, 0},
        {"set", ARG_LIST, &x->sets, "POLICY.KEY=VALUE", "a setting; may be repeated", 0, 0},
        {"profiles", ARG_TEXT, &x->profiles, "FILES",
         "profiles of job classes: default, or files on top of it (default: all alike)", 0, 0},
        {"mix", ARG_TEXT, &x->mix, "\"CLASS:N ...\"",
         "class mix of jobs without a model (default: the weights of the classes)", 0, 0},
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
                          .error = x->error};
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
