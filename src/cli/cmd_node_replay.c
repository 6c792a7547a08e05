// cotenant node replay: repeats the arrivals of a recorded run in virtual time and compares the
// latencies.
#include <math.h>
#include <stdio.h>

#include "base/cpu.h"
#include "base/stats.h"
#include "base/table.h"
#include "cli/commands.h"
#include "eval/run_file.h"

static const Column columns[] = {
    {.key = "tenant", .head = "tenant"},
    {.key = "requests", .head = "requests"},
    {.key = "error_p50", .head = "median error", .unit = "%", .scale = 0.01, .decimals = 1},
    {.key = "error_p90", .head = "p90 error", .unit = "%", .scale = 0.01, .decimals = 1},
    {.key = "recorded_ms", .head = "recorded mean", .unit = "ms", .decimals = 2},
    {.key = "simulated_ms", .head = "simulated mean", .unit = "ms", .decimals = 2},
    {.key = "recorded_hit", .head = "in time", .unit = "%", .scale = 0.01, .decimals = 1},
    {.key = "simulated_hit", .head = "simulated", .unit = "%", .scale = 0.01, .decimals = 1},
};

typedef struct ReplayErrors {
    uint32_t n;  // requests answered in both runs
    double   error_p50, error_p90, recorded_ms, simulated_ms, recorded_hit, simulated_hit;
} ReplayErrors;

static Err recorded_answers(const NodeRunFile *g, Arena *a, NodeAnswer **out) {
    NodeAnswer *x = arena_try_new(a, NodeAnswer, g->arrivals.n);
    if (x == NULL) return err_set(ERR_LIMIT, "no memory for %u requests", g->arrivals.n);
    for (uint32_t i = 0; i < g->arrivals.n; i++)
        x[i] = (NodeAnswer){.arrival = g->arrivals.at[i].at,
                            .tenant = g->arrivals.at[i].tenant,
                            .outcome = OUTCOMES};
    for (uint32_t i = 0; i < g->records.n; i++) {
        const Record *r = &g->records.at[i];
        if ((r->kind != RECORD_FINISH && r->kind != RECORD_REJECT) || r->request >= g->arrivals.n)
            continue;
        x[r->request].finish = r->at;
        x[r->request].outcome = r->outcome;
    }
    *out = x;
    return ERR_OK;
}

static double ms(const NodeAnswer *x) { return (double)(x->finish - x->arrival) / 1e6; }

static bool answered(const NodeAnswer *x) {
    return x->outcome == OUTCOME_MET || x->outcome == OUTCOME_LATE;
}

static Err compare(const NodeRunFile *g, const NodeAnswer *was, const NodeAnswer *is,
                   uint32_t tenant, Arena *a, ReplayErrors *out) {
    double      *errors = arena_new(a, double, g->arrivals.n), *sorted = NULL;
    ReplayErrors c = {0};
    uint32_t     all = 0;
    for (uint32_t i = g->skip; i < g->arrivals.n; i++) {
        if (tenant != NODE_ALL && was[i].tenant != tenant) continue;
        all++;
        c.recorded_hit += was[i].outcome == OUTCOME_MET;
        c.simulated_hit += is[i].outcome == OUTCOME_MET;
        if (!answered(&was[i]) || !answered(&is[i]) || ms(&was[i]) <= 0) continue;
        errors[c.n++] = fabs(ms(&is[i]) / ms(&was[i]) - 1);
        c.recorded_ms += ms(&was[i]);
        c.simulated_ms += ms(&is[i]);
    }
    if (c.n == 0) return err_set(ERR_INVALID, "no request was answered in both runs");
    TRY(stats_sort(a, errors, c.n, &sorted));
    c.error_p50 = stats_percentile(sorted, c.n, 50);
    c.error_p90 = stats_percentile(sorted, c.n, 90);
    c.recorded_ms /= c.n;
    c.simulated_ms /= c.n;
    c.recorded_hit /= all;
    c.simulated_hit /= all;
    *out = c;
    return ERR_OK;
}

static void add_row(Table *t, const char *name, const ReplayErrors *c) {
    table_text(t, name);
    table_int(t, c->n);
    table_real(t, c->error_p50);
    table_real(t, c->error_p90);
    table_real(t, c->recorded_ms);
    table_real(t, c->simulated_ms);
    table_real(t, c->recorded_hit);
    table_real(t, c->simulated_hit);
}

static json_t *compared_json(const ReplayErrors *c) {
    return json_pack("{s:i,s:f,s:f,s:f,s:f,s:f,s:f}", "requests", (int)c->n, "error_p50",
                     c->error_p50, "error_p90", c->error_p90, "recorded_ms", c->recorded_ms,
                     "simulated_ms", c->simulated_ms, "recorded_hit", c->recorded_hit,
                     "simulated_hit", c->simulated_hit);
}

// Time of a block by the profile of its network, without interference.
static double expected_ns(const NodeRunFile *g, const Record *r) {
    const NodeModel *m = &g->scenario.models[r->tenant];
    uint32_t         end = r->first + r->n_layers, cores = cores_count(&r->cores);
    if (end > m->n_layers || end < r->first || cores == 0) return 0;
    uint32_t k = node_count_index(m, cores);
    return (double)(node_rest(m, m->rest_best, r->first, k, 0) -
                    node_rest(m, m->rest_best, end, k, 0));
}

// Median ratio of recorded block times to profiled ones: how far the machine was from its profiles,
// independent of the simulator.
static Err block_ratio(const NodeRunFile *g, Arena *a, double *out) {
    const Record **open = arena_new(a, const Record *, g->arrivals.n);
    double        *ratios = arena_new(a, double, g->records.n), *sorted = NULL;
    uint32_t       n = 0;
    for (uint32_t i = 0; i < g->records.n; i++) {
        const Record *r = &g->records.at[i];
        if (r->kind == RECORD_LEVEL || r->kind == RECORD_REFUSE) continue;
        if (r->request >= g->arrivals.n || r->tenant >= g->scenario.mix.n) continue;
        const Record *start = open[r->request];
        open[r->request] = r->kind == RECORD_START ? r : NULL;
        if (r->kind != RECORD_END || start == NULL) continue;
        double expected = expected_ns(g, start);
        if (expected > 0) ratios[n++] = (double)(r->at - start->at) / expected;
    }
    *out = NAN;
    if (n == 0) return ERR_OK;
    TRY(stats_sort(a, ratios, n, &sorted));
    *out = stats_percentile(sorted, n, 50);
    return ERR_OK;
}

static Err print_result(const NodeRunFile *g, const ReplayErrors *each, const ReplayErrors *all,
                        bool json, Arena *a) {
    const NodeScenario *s = &g->scenario;
    double              ratio = 0;
    TRY(block_ratio(g, a, &ratio));
    if (!json) {
        Table t;
        table_init(&t, a, columns, sizeof columns / sizeof *columns);
        for (uint32_t i = 0; i < s->mix.n; i++) {
            table_row(&t);
            add_row(&t, s->tenants[i].name, &each[i]);
        }
        table_total(&t);
        add_row(&t, "all", all);
        TRY(table_print(&t, stdout));
        if (isfinite(ratio))
            printf("\nrecorded blocks took %.2f times their profiled time (median)\n", ratio);
        return ERR_OK;
    }
    json_t *tenants = json_object();
    for (uint32_t i = 0; i < s->mix.n; i++)
        json_object_set_new(tenants, s->tenants[i].name, compared_json(&each[i]));
    json_t *doc =
        json_pack("{s:s,s:b,s:s,s:o,s:o,s:o}", "machine", s->machine, "live", g->live, "policy",
                  g->choice.label, "all", compared_json(all), "tenants", tenants, "block_ratio",
                  isfinite(ratio) ? json_real(ratio) : json_null());
    if (doc == NULL) return err_set(ERR_LIMIT, "no memory for the JSON document");
    Err e = json_write(stdout, doc);
    json_decref(doc);
    return e;
}

static Err replay(const char *path, const char *records, bool json, Arena *a) {
    NodeRunFile  g;
    RecordList   again = {.arena = a};
    NodeAnswer  *was = NULL;
    NodeResult   r;
    ReplayErrors each[MIX_TENANTS] = {0}, all;
    TRY(node_run_file_read(path, a, &g));
    TRY(recorded_answers(&g, a, &was));
    NodeRun run = {.setup = g.scenario.setup,
                   .policy = g.choice.policy,
                   .settings = g.choice.settings,
                   .arrivals = g.arrivals,
                   .seed = g.seed,
                   .records = records != NULL ? record_list(&again) : (RecordSink){0},
                   .skip = g.skip};
    TRY(node_scenario_replay(&g.scenario, &run, a, &r));
    if (records != NULL) TRY(node_run_file_write(records, &g.scenario, &run, &g.sets, &again));
    for (uint32_t i = 0; i < g.scenario.mix.n; i++) {
        Err e = compare(&g, was, r.answers, i, a, &each[i]);
        if (e != ERR_OK) each[i] = (ReplayErrors){.error_p50 = NAN, .error_p90 = NAN};
    }
    TRY(compare(&g, was, r.answers, NODE_ALL, a, &all));
    return print_result(&g, each, &all, json, a);
}

int cmd_node_replay(const Command *c, int argc, char **argv) {
    bool         json = false;
    const char  *path = NULL, *records = NULL;
    const ArgRow rows[] = {
        {"records", ARG_TEXT, &records, "FILE", "write the records of the simulated run", 0, 0},
        {"json", ARG_FLAG, &json, NULL, "one JSON document on stdout", 0, 0},
    };
    int code = args_parse(c, rows, 2, argc, argv, &path, 1, 1, NULL);
    if (code >= 0) return code;
    Arena a = {0};
    Err   e = arena_init_growing(&a, 1 << 20, cpu_mem_budget(&cgroup_roots));
    if (e == ERR_OK) e = replay(path, records, json, &a);
    code = e == ERR_OK ? 0 : command_failed(e);
    arena_finish(&a);
    return code;
}
