#include "cli/cluster_scenario_args.h"

#include <string.h>

#include "base/option_list.h"
#include "contract/cluster.h"

void cluster_scenario_args_rows(ClusterScenarioArgs *x, ArgRow rows[CLUSTER_SCENARIO_ARG_ROWS]) {
    x->trace = "synth:philly_small";
    x->servers = "8";
    x->load = "1";
    x->jobs = CLUSTER_SCENARIO_JOBS;
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
    };
    memcpy(rows, own, sizeof own);
    trace_args_some(&x->file, rows + CLUSTER_SCENARIO_ARG_ROWS - TRACE_ARG_SOME);
}

Err cluster_scenario_args_common(const ClusterScenarioArgs *x, Arena *a, ClusterScenarioSpec *out) {
    *out = (ClusterScenarioSpec){.format = x->file.format,
                                 .like = {.gpus = (uint32_t)x->gpus,
                                          .cores_milli = (uint32_t)x->cores * 1000,
                                          .memory_mib = (uint32_t)(x->memory_gb * 1024)},
                                 .profiles = x->profiles,
                                 .mix = x->mix,
                                 .jobs = (uint32_t)x->jobs,
                                 .max_s = x->max_s};
    return trace_args_options(&x->file, a, &out->options);
}
