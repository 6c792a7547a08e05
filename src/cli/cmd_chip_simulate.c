// cotenant chip simulate: one run of a workload on a package under a policy, by tenant.
#include <math.h>
#include <stdio.h>

#include "base/json.h"
#include "base/table.h"
#include "cli/chip_args.h"
#include "eval/policy_choice.h"
#include "eval/run_file.h"
#include "cli/commands.h"

enum { OWN_ROWS = 10 };

typedef struct Options {
    ChipArgs    common;
    const char *mix, *policy, *records, *trace, *from, *to;
    double      load, bandwidth;
    int64_t     seed;
    bool        json;
} Options;

typedef struct Outcomes {  // of a run
    const ChipScenario *scenario;
    const ChipRun      *run;
    const ChipResult   *result;
    ChipTraffic         traffic;
    ChipSummary         all, *tenants;  // [workload.n]
} Outcomes;

static const Column columns[] = {
    {.key = "tenant", .head = "tenant"},
    {.key = "best_ms", .head = "best", .unit = "ms", .decimals = 3},
    {.key = "base_ms", .head = "due", .unit = "ms", .decimals = 2},
    {.key = "requests", .head = "requests"},
    {.key = "met", .head = "met"},
    {.key = "late", .head = "late"},
    {.key = "dropped", .head = "dropped"},
    {.key = "sla", .head = "in time", .unit = "%", .scale = 0.01, .decimals = 1},
    {.key = "slowdown", .head = "slowdown", .decimals = 2},
    {.key = "mean_ms", .head = "mean", .unit = "ms", .decimals = 2},
    {.key = "p99_ms", .head = "p99", .unit = "ms", .decimals = 2},
};

static void add_cells(Table *t, const ChipSummary *s) {
    table_int(t, s->n);
    table_int(t, s->met);
    table_int(t, s->late);
    table_int(t, s->dropped);
    table_real(t, s->sla);
    table_real(t, s->slowdown);
    table_real(t, s->mean_ms);
    table_real(t, s->p99_ms);
}

static void print_package(const Outcomes *o) {
    const ChipScenario *s = o->scenario;
    const ChipResult   *r = o->result;
    const double        nj = r->layer_pj + r->policy_pj + r->idle_pj;
    printf("\n%s on %s, %s at load %g (%.1f of %.1f requests/s), %g bytes/ns\n",
           o->run->policy->name, s->package.name, s->workload.name, o->traffic.load,
           o->traffic.load * s->capacity, s->capacity, (double)s->setup.bytes_ns);
    printf("units %.1f %% busy, bandwidth %.1f %% used, %llu layers in %.1f ms\n",
           100 * o->all.unit_use, 100 * o->all.bandwidth_use, (unsigned long long)r->layers,
           (double)r->span / 1e6);
    printf("energy %.2f mJ: layers %.2f, idle %.2f, policy %.4f (%.3f %%)\n", nj / 1e9,
           r->layer_pj / 1e9, r->idle_pj / 1e9, r->policy_pj / 1e9,
           100 * o->all.policy_energy_share);
    if (isfinite(o->all.in_time_mj))
        printf("energy per answer in time %.2f mJ\n", o->all.in_time_mj);
    printf("decisions %llu, plans %llu", (unsigned long long)r->decisions,
           (unsigned long long)r->plans);
    if (r->plans > 0)
        printf(", each %.1f us on the controller, which is %.1f %% busy",
               r->planning_ns / 1e3 / (double)r->plans,
               100 * r->planning_ns / (double)(r->span > 0 ? r->span : 1));
    puts("");
}

static Err print_text(const Outcomes *o, Arena *a) {
    Table t;
    table_init(&t, a, columns, sizeof columns / sizeof *columns);
    for (uint32_t i = 0; i < o->scenario->workload.n; i++) {
        table_row(&t);
        table_text(&t, o->scenario->tenants[i].name);
        table_real(&t, (double)o->scenario->models[i].rest_ns[0] / 1e6);
        table_real(&t, chip_scenario_base_ns(o->scenario, i) / 1e6);
        add_cells(&t, &o->tenants[i]);
    }
    table_total(&t);
    table_text(&t, "all");
    table_missing(&t);
    table_missing(&t);
    add_cells(&t, &o->all);
    TRY(table_print(&t, stdout));
    print_package(o);
    return ERR_OK;
}

static json_t *summary_json(const char *name, const ChipSummary *s) {
    return json_pack("{s:s,s:i,s:i,s:i,s:i,s:f,s:f,s:f,s:f}", "tenant", name, "requests", (int)s->n,
                     "met", (int)s->met, "late", (int)s->late, "dropped", (int)s->dropped, "sla",
                     s->sla, "slowdown", s->slowdown, "mean_ms", s->mean_ms, "p99_ms", s->p99_ms);
}

static json_t *tenants_json(const Outcomes *o) {
    json_t *list = json_array();
    for (uint32_t i = 0; i < o->scenario->workload.n; i++) {
        json_t *t = summary_json(o->scenario->tenants[i].name, &o->tenants[i]);
        json_object_set_new(t, "best_ms",
                            json_real((double)o->scenario->models[i].rest_ns[0] / 1e6));
        json_object_set_new(t, "base_ms", json_real(chip_scenario_base_ns(o->scenario, i) / 1e6));
        json_array_append_new(list, t);
    }
    return list;
}

static json_t *energy_json(const Outcomes *o) {
    const ChipResult *r = o->result;
    json_t *each = isfinite(o->all.in_time_mj) ? json_real(o->all.in_time_mj) : json_null();
    return json_pack("{s:f,s:f,s:f,s:f,s:f,s:o}", "total_mj", o->all.energy_mj, "layers_mj",
                     r->layer_pj / 1e9, "idle_mj", r->idle_pj / 1e9, "policy_mj",
                     r->policy_pj / 1e9, "policy_share", o->all.policy_energy_share, "in_time_mj",
                     each);
}

static Err print_json(const Outcomes *o) {
    const ChipScenario *s = o->scenario;
    const ChipResult   *r = o->result;
    json_t             *doc =
        json_pack("{s:s,s:s,s:s,s:f,s:f,s:f,s:f,s:f,s:o,s:o,s:o,s:f,s:f,s:I,s:I,s:I,s:f,s:f}",
                  "chip", s->package.name, "mix", s->workload.name, "policy", o->run->policy->name,
                  "load", o->traffic.load, "burst", o->traffic.burst, "capacity_per_s", s->capacity,
                  "bandwidth", (double)s->setup.bytes_ns * 1e3 / s->package.clock_mhz, "period_us",
                  (double)s->setup.period / 1e3, "all", summary_json("all", &o->all), "tenants",
                  tenants_json(o), "energy", energy_json(o), "bandwidth_use", o->all.bandwidth_use,
                  "unit_use", o->all.unit_use, "layers", (json_int_t)r->layers, "decisions",
                  (json_int_t)r->decisions, "plans", (json_int_t)r->plans, "planning_ms",
                  r->planning_ns / 1e6, "span_ms", (double)r->span / 1e6);
    if (doc == NULL) return err_set(ERR_LIMIT, "no memory for the JSON document");
    Err e = json_write(stdout, doc);
    json_decref(doc);
    return e;
}

static Err choose(const Options *o, const ChipScenario *s, Arena *a, ChipRun *run) {
    PolicyChoice c;
    TRY(policy_choice_read(TIER_CHIP, o->policy, &o->common.sets, a, &c));
    run->policy = c.policy;
    run->settings = c.settings;
    return chip_choice_load(&c, &s->setup, a, &run->loaded);
}

static Err save_records(const Options *o, const Outcomes *x, const RecordList *records, Arena *a) {
    if (o->records != NULL)
        TRY(chip_run_file_write(o->records, x->scenario, x->run, &x->traffic, &o->common.sets,
                                records));
    if (o->trace != NULL)
        TRY(chip_run_file_trace(o->trace, x->scenario, x->run->policy->name, records, a));
    return ERR_OK;
}

static Err simulate(const void *options, Arena *a) {
    const Options      *o = options;
    ChipScenarioOptions so;
    ChipScenario        s;
    ChipTrace           trace;
    ChipResult          r;
    RecordList          records = {.arena = a};
    ChipTraffic         traffic = chip_args_traffic(&o->common, o->load, (uint64_t)o->seed);
    TRY(chip_args_scenario(&o->common, o->mix, o->bandwidth, &so));
    TRY(chip_args_trace(o->from, a, &so));
    TRY(chip_scenario_open(&so, a, &s));
    TRY(chip_scenario_trace(&s, &traffic, a, &trace));
    if (so.trace != NULL) traffic.load = chip_scenario_trace_load(&s);
    if (o->to != NULL)
        TRY(request_trace_save(o->to, s.tenants, s.workload.networks, trace.at, trace.n));
    ChipRun run = chip_scenario_run(&s, trace);
    run.seed = traffic.seed;
    TRY(choose(o, &s, a, &run));
    if (o->records != NULL || o->trace != NULL) run.records = record_list(&records);
    TRY(chip_simulate(&run, a, &r));
    Outcomes x = {.scenario = &s,
                  .run = &run,
                  .result = &r,
                  .traffic = traffic,
                  .tenants = arena_new(a, ChipSummary, s.workload.n)};
    TRY(chip_summary(&run, &r, CHIP_NONE, a, &x.all));
    for (uint32_t i = 0; i < s.workload.n; i++) TRY(chip_summary(&run, &r, i, a, &x.tenants[i]));
    TRY(save_records(o, &x, &records, a));
    return o->json ? print_json(&x) : print_text(&x, a);
}

int cmd_chip_simulate(const Command *c, int argc, char **argv) {
    Options o = {.mix = "mixed", .policy = "edf", .load = 0.8, .seed = 1};
    ArgRow  rows[OWN_ROWS + CHIP_ARG_ROWS] = {
         {"mix", ARG_TEXT, &o.mix, "NAME", "light, heavy, mixed, or networks (default mixed)", 0, 0},
         {"policy", ARG_TEXT, &o.policy, "NAME", "scheduling policy (default edf)", 0, 0},
         {"load", ARG_REAL, &o.load, "L",
          "offered load; 1: what the package can just answer (default 0.8)", 0, 1000},
         {"bandwidth", ARG_REAL, &o.bandwidth, "B",
          "memory bandwidth in bytes per cycle (default: the package's)", 0, 1000000},
         {"seed", ARG_INT, &o.seed, "S", "seed of the requests (default 1)", 0, INT64_MAX},
         {"records", ARG_TEXT, &o.records, "FILE", "write the records of the run as JSON lines", 0,
          0},
         {"trace", ARG_TEXT, &o.trace, "FILE", "a trace for ui.perfetto.dev", 0, 0},
         {"requests-from", ARG_TEXT, &o.from, "FILE",
          "the requests, as CSV: time_ms, network, deadline_ms, tenant", 0, 0},
         {"requests-to", ARG_TEXT, &o.to, "FILE", "write the requests as such a file", 0, 0},
         {"json", ARG_FLAG, &o.json, NULL, "one JSON document on stdout", 0, 0},
    };
    chip_args_rows(&o.common, rows + OWN_ROWS);
    int code = args_parse(c, rows, sizeof rows / sizeof *rows, argc, argv, NULL, 0, 0, NULL);
    if (code >= 0) return code;
    return command_run(simulate, &o);
}
