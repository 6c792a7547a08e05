// cotenant node simulate, node live: one run of a mix under a policy, by tenant.
#include <stdio.h>

#include "base/cpu.h"
#include "base/table.h"
#include "cli/commands.h"
#include "eval/run_file.h"

typedef struct Options {
    NodeScenarioOptions scenario;
    const char         *policy, *records, *trace;
    ArgList             sets;
    double              rate;  // 0: half of what the cores could do
    int64_t             seed, requests;
    bool                json, admit;
} Options;

static const Column columns[] = {
    {.key = "tenant", .head = "tenant"},
    {.key = "qos_ms", .head = "QoS", .unit = "ms", .decimals = 2},
    {.key = "requests", .head = "requests"},
    {.key = "met", .head = "met"},
    {.key = "late", .head = "late"},
    {.key = "rejected", .head = "rejected"},
    {.key = "hit_rate", .head = "in time", .unit = "%", .scale = 0.01, .decimals = 1},
    {.key = "mean_ms", .head = "mean", .unit = "ms", .decimals = 2},
    {.key = "p50_ms", .head = "p50", .unit = "ms", .decimals = 2},
    {.key = "p99_ms", .head = "p99", .unit = "ms", .decimals = 2},
};

static void add_row(Table *t, const char *name, TimeNs qos, const NodeSummary *s) {
    if (qos > 0)
        table_row(t);
    else
        table_total(t);
    table_text(t, name);
    if (qos > 0)
        table_real(t, (double)qos / 1e6);
    else
        table_missing(t);
    table_int(t, s->n);
    table_int(t, s->met);
    table_int(t, s->late);
    table_int(t, s->rejected);
    table_real(t, s->hit_rate);
    table_real(t, s->mean_ms);
    table_real(t, s->p50_ms);
    table_real(t, s->p99_ms);
}

static json_t *summary_json(const char *name, TimeNs qos, const NodeSummary *s) {
    return json_pack("{s:s,s:f,s:i,s:i,s:i,s:i,s:f,s:f,s:f,s:f}", "tenant", name, "qos_ms",
                     (double)qos / 1e6, "requests", (int)s->n, "met", (int)s->met, "late",
                     (int)s->late, "rejected", (int)s->rejected, "hit_rate", s->hit_rate, "mean_ms",
                     s->mean_ms, "p50_ms", s->p50_ms, "p99_ms", s->p99_ms);
}

static Err print_json(const NodeScenario *s, const NodeRun *run, const NodeResult *r, Arena *a) {
    json_t     *tenants = json_array();
    NodeSummary all, one;
    for (uint32_t i = 0; i < s->mix.n; i++) {
        TRY(node_summary(run, r, i, a, &one));
        json_array_append_new(tenants,
                              summary_json(s->tenants[i].name, s->tenants[i].qos_ns, &one));
    }
    TRY(node_summary(run, r, NODE_ALL, a, &all));
    json_t *doc = json_pack("{s:s,s:s,s:s,s:f,s:o,s:o,s:f,s:f,s:I,s:I,s:f,s:f}", "machine",
                            s->machine, "mix", s->mix.name, "policy", run->policy->name, "rate",
                            all.rate, "all", summary_json("all", 0, &all), "tenants", tenants,
                            "conflict_rate", all.conflict_rate, "core_use", all.core_use, "blocks",
                            (json_int_t)r->blocks, "decisions", (json_int_t)r->decisions,
                            "decide_ms", r->decide_ns / 1e6, "engine_ms", r->engine_ns / 1e6);
    if (doc == NULL) return err_set(ERR_LIMIT, "no memory for the JSON document");
    Err e = json_write(stdout, doc);
    json_decref(doc);
    return e;
}

static Err print_text(const NodeScenario *s, const NodeRun *run, const NodeResult *r, Arena *a) {
    Table       t;
    NodeSummary all, one;
    table_init(&t, a, columns, sizeof columns / sizeof *columns);
    for (uint32_t i = 0; i < s->mix.n; i++) {
        TRY(node_summary(run, r, i, a, &one));
        add_row(&t, s->tenants[i].name, s->tenants[i].qos_ns, &one);
    }
    TRY(node_summary(run, r, NODE_ALL, a, &all));
    add_row(&t, "all", 0, &all);
    TRY(table_print(&t, stdout));
    printf(
        "\n%s on %s: %.1f requests/s, %llu blocks, %.1f %% of them with a core shortage, %.0f %% "
        "of the cores in use\n",
        run->policy->name, s->machine, all.rate, (unsigned long long)r->blocks,
        100 * all.conflict_rate, 100 * all.core_use);
    if (r->decide_ns > 0)
        printf("decisions: %llu, %.2f us each; policy and engine used %.2f %% of one core\n",
               (unsigned long long)r->decisions, r->decide_ns / 1e3 / (double)(r->decisions + 1),
               100 * (r->decide_ns + r->engine_ns) / (double)r->span);
    return ERR_OK;
}

static Err run_in(const Options *o, const NodeScenario *s, Arena *a) {
    PolicyChoice c;
    RecordList   records = {.arena = a};
    bool         keep = o->records != NULL || o->trace != NULL;
    NodeRun      run;
    NodeResult   result;
    TRY(policy_choice_read(TIER_NODE, o->policy, &o->sets, a, &c));
    NodeTraffic r = {.choice = &c,
                     .rate = o->rate > 0 ? o->rate : s->capacity / 2,
                     .seed = (uint64_t)o->seed,
                     .requests = (uint32_t)o->requests,
                     .admit = o->admit,
                     .records = keep ? record_list(&records) : (RecordSink){0}};
    TRY(node_scenario_run(s, &r, a, &run, &result));
    if (o->records != NULL) TRY(node_run_file_write(o->records, s, &run, &o->sets, &records));
    if (o->trace != NULL) TRY(node_run_file_trace(o->trace, s, run.policy->name, &records, a));
    return o->json ? print_json(s, &run, &result, a) : print_text(s, &run, &result, a);
}

static int run_command(const Options *o) {
    Arena        a = {0};
    NodeScenario s = {0};
    Err          e = arena_init_growing(&a, 1 << 20, cpu_mem_budget(&cgroup_roots));
    if (e == ERR_OK) e = node_scenario_open(&o->scenario, &a, &s);
    if (e == ERR_OK) e = run_in(o, &s, &a);
    int code = e == ERR_OK ? 0 : command_failed(e);
    node_scenario_close(&s);
    arena_finish(&a);
    return code;
}

#define RUN_ROWS(o)                                                                                \
    {"mix", ARG_TEXT, &(o).scenario.mix, "NAME", "light, medium, heavy or mix (default light)",    \
     0,     0},                                                                                    \
        {"policy", ARG_TEXT, &(o).policy, "NAME", "scheduling policy (default slack)", 0, 0},      \
        {"set", ARG_LIST, &(o).sets, "POLICY.KEY=VALUE", "a setting of the policy", 0, 0},         \
        {"rate", ARG_REAL,  &(o).rate, "R", "requests per second (default: half the capacity)",    \
         0,      1000000000},                                                                      \
        {"seed", ARG_INT, &(o).seed, "S", "seed of the arrivals (default 1)", 0, INT64_MAX},       \
        {"slack", ARG_REAL, &(o).scenario.slack, "K", "target: K x latency alone on all cores",    \
         0,       1000000},                                                                        \
        {"admit",                                                                                  \
         ARG_FLAG,                                                                                 \
         &(o).admit,                                                                               \
         NULL,                                                                                     \
         "admission control: reject requests beyond a tenant's share",                             \
         0,                                                                                        \
         0},                                                                                       \
        {"records", ARG_TEXT, &(o).records, "FILE", "write the records of the run as JSON lines",  \
         0,         0},                                                                            \
        {"trace", ARG_TEXT, &(o).trace, "FILE", "a trace for ui.perfetto.dev", 0, 0}, {            \
        "json", ARG_FLAG, &(o).json, NULL, "one JSON document on stdout", 0, 0                     \
    }

int cmd_node_simulate(const Command *c, int argc, char **argv) {
    Options o = {.scenario = {.machine = "server64", .mix = "light"}, .policy = "slack", .seed = 1};
    const ArgRow rows[] = {
        RUN_ROWS(o),
        {"machine", ARG_TEXT, &o.scenario.machine, "NAME",
         "a machine or a YAML file (default server64)", 0, 0},
        {"requests", ARG_INT, &o.requests, "N", "number of requests (default 2000)", 1, 100000000},
    };
    int code = args_parse(c, rows, sizeof rows / sizeof *rows, argc, argv, NULL, 0, 0, NULL);
    return code >= 0 ? code : run_command(&o);
}

int cmd_node_live(const Command *c, int argc, char **argv) {
    Options      o = {.scenario = {.mix = "light"}, .policy = "slack", .seed = 1};
    const ArgRow rows[] = {
        RUN_ROWS(o),
        {"requests", ARG_INT, &o.requests, "N", "number of requests (default: those of 5 seconds)",
         1, 10000000},
        {"store", ARG_TEXT, &o.scenario.store, "FILE",
         "profile store (default: in the cache directory)", 0, 0},
    };
    int code = args_parse(c, rows, sizeof rows / sizeof *rows, argc, argv, NULL, 0, 0, NULL);
    return code >= 0 ? code : run_command(&o);
}
