// cotenant cluster whatif: one table of the same jobs on changed clusters and under other policies.
#include <stdio.h>

#include "base/table.h"
#include "cli/cluster_args.h"
#include "cli/commands.h"
#include "eval/cluster_whatif.h"

enum { OWN_ROWS = 4 };

typedef struct Options {
    ClusterSimArgs sim;
    ArgList        tries;
    const char    *price, *gpu;
    bool           json;
} Options;

static void put_row(Table *t, const ClusterVariant *v, const ClusterVariant *base, bool costs) {
    table_row(t);
    table_text(t, v->label);
    table_text(t, v->policy);
    table_int(t, v->servers);
    table_int(t, (int64_t)v->gpus);
    if (v->error != NULL) return;
    table_real(t, v->summary.jct_mean_s);
    table_real(t, v->summary.jct_mean_s / base->summary.jct_mean_s - 1);
    table_real(t, v->summary.jct_p99_s);
    table_real(t, v->summary.makespan_s);
    table_real(t, v->gpu_hours);
    table_real(t, v->use);
    if (!costs) return;
    table_real(t, v->cost);
    table_real(t, v->owned_cost);
}

static void put_table(const WhatIfTable *w, bool costs, Arena *a, Table *t) {
    static const Column cols[] = {
        {.key = "variant", .head = "variant"},
        {.key = "policy", .head = "policy"},
        {.key = "servers", .head = "servers"},
        {.key = "gpus", .head = "GPUs"},
        {.key = "jct_mean_s", .head = "JCT", .unit = "s", .decimals = 0},
        {.key = "jct_change", .head = "change", .unit = "%", .scale = 0.01, .decimals = 1},
        {.key = "jct_p99_s", .head = "JCT p99", .unit = "s", .decimals = 0},
        {.key = "makespan_s", .head = "makespan", .unit = "h", .scale = 3600, .decimals = 1},
        {.key = "gpu_hours", .head = "GPU hours", .decimals = 1},
        {.key = "gpu_use", .head = "use", .unit = "%", .scale = 0.01, .decimals = 1},
        {.key = "cost", .head = "cost", .decimals = 2},
        {.key = "owned_cost", .head = "cost of all", .decimals = 2},
    };
    table_init(t, a, cols, sizeof cols / sizeof *cols - (costs ? 0 : 2));
    for (uint32_t i = 0; i < w->n; i++) put_row(t, &w->at[i], &w->at[0], costs);
}

static Err print_text(const WhatIfTable *w, bool costs, Arena *a) {
    Table t;
    printf("%s: %u jobs, rules: %s\n", w->trace, w->jobs.n, w->like);
    print_left_out(stdout, &w->jobs);
    put_table(w, costs, a, &t);
    TRY(table_print(&t, stdout));
    for (uint32_t i = 0; i < w->n; i++)
        if (w->at[i].error != NULL) printf("%s: not run: %s\n", w->at[i].label, w->at[i].error);
    return ERR_OK;
}

static json_t *variant_json(const ClusterVariant *v, const ClusterVariant *base, bool costs) {
    const ClusterSummary *s = &v->summary;
    json_t *one = json_pack("{s:s,s:s,s:i,s:I}", "variant", v->label, "policy", v->policy,
                            "servers", (int)v->servers, "gpus", (json_int_t)v->gpus);
    if (v->error != NULL) {
        json_object_set_new(one, "error", json_string(v->error));
        json_object_set_new(one, "too_large", json_integer(v->too_large));
        return one;
    }
    json_t *ran = json_pack(
        "{s:f,s:f,s:f,s:f,s:f,s:f,s:f,s:f,s:I}", "jct_mean_s", s->jct_mean_s, "jct_change",
        s->jct_mean_s / base->summary.jct_mean_s - 1, "jct_p99_s", s->jct_p99_s, "makespan_s",
        s->makespan_s, "queue_mean_s", s->queue_mean_s, "gpu_hours", v->gpu_hours, "gpu_use",
        v->use, "owned_gpu_hours", v->owned_gpu_hours, "preemptions", (json_int_t)v->preemptions);
    json_object_update(one, ran);
    json_decref(ran);
    if (!costs) return one;
    json_object_set_new(one, "cost", json_real(v->cost));
    json_object_set_new(one, "owned_cost", json_real(v->owned_cost));
    return one;
}

static Err print_json(const WhatIfTable *w, bool costs) {
    json_t *rows = json_array();
    for (uint32_t i = 0; i < w->n; i++)
        json_array_append_new(rows, variant_json(&w->at[i], &w->at[0], costs));
    int code = command_json(json_pack("{s:s,s:s,s:i,s:o,s:o}", "trace", w->trace, "like", w->like,
                                      "jobs", (int)w->jobs.n, "left_out", left_out_json(&w->jobs),
                                      "variants", rows));
    return code == 0 ? ERR_OK : err_set(ERR_IO, "writing JSON failed");
}

static Err whatif(const void *options, Arena *a) {
    const Options *o = options;
    WhatIfSpec     spec = {.tries = &o->tries, .gpu_type = o->gpu};
    GpuPrices      prices;
    WhatIfTable    table;
    TRY(cluster_sim_args_spec(&o->sim, a, &spec.base));
    if (o->price != NULL) {
        TRY(gpu_prices_read(o->price, a, &prices));
        spec.prices = &prices;
    }
    TRY(whatif_run(&spec, a, &table));
    return o->json ? print_json(&table, o->price != NULL) : print_text(&table, o->price != NULL, a);
}

int cmd_cluster_whatif(const Command *c, int argc, char **argv) {
    Options o = {0};
    ArgRow  rows[OWN_ROWS + CLUSTER_SIM_ARG_ROWS] = {
         {"try", ARG_LIST, &o.tries, "CHANGE,...",
          "a variant: servers=N|+N|-N, gpu=TYPE|OLD:NEW, policy=NAME, weight:TENANT=W, "
           "quota:TENANT=GPUS, POLICY.KEY=VALUE; may be repeated",
          0, 0},
         {"price", ARG_TEXT, &o.price, "P|TYPE=P,...",
          "price of a GPU hour, of all types or by type", 0, 0},
         {"gpu", ARG_TEXT, &o.gpu, "TYPE",
          "GPU type of the servers, on which the trace's durations hold", 0, 0},
         {"json", ARG_FLAG, &o.json, NULL, "one JSON document on stdout", 0, 0},
    };
    cluster_sim_args_rows(&o.sim, rows + OWN_ROWS);
    int code = args_parse(c, rows, sizeof rows / sizeof *rows, argc, argv, NULL, 0, 0, NULL);
    if (code >= 0) return code;
    if (o.sim.trace == NULL) return args_fail(EXIT_USAGE, "cluster whatif: give --trace FILE");
    if (o.tries.n == 0)
        return args_fail(
            EXIT_USAGE, "cluster whatif: give --try CHANGE, as --try servers=10 --try policy=srtf");
    return command_run(whatif, &o);
}
