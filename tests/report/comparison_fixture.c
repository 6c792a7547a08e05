#include "tests/report/comparison_fixture.h"

#include <math.h>
#include <string.h>

static Fixture *empty(Tier tier, uint32_t n_cells, uint32_t n_policies) {
    static Fixture f;
    memset(&f, 0, sizeof f);
    for (uint32_t c = 0; c < FIXTURE_CELLS; c++)
        for (uint32_t e = 0; e < FIXTURE_POLICIES; e++) {
            for (uint32_t k = 0; k < FIXTURE_SEEDS; k++)
                for (uint32_t i = 0; i < METRICS; i++) f.values[c][e][k][i] = NAN;
            f.entries[c][e].values = &f.values[c][e][0][0];
        }
    for (uint32_t c = 0; c < n_cells; c++) {
        f.cells[c].entries = f.entries[c];
        f.cells[c].n_entries = n_policies;
    }
    f.comparison = (Comparison){.tier = tier,
                                .subject = "star",
                                .subject_role = "subject",
                                .seeds = FIXTURE_SEEDS,
                                .first_seed = 101,
                                .cells = f.cells,
                                .n_cells = n_cells};
    return &f;
}

static int started(Fixture *f, void **state) {
    *state = f;
    return arena_init(&f->arena, 1 << 24) == ERR_OK ? 0 : 1;
}

int fixture_end(void **state) {
    arena_finish(&((Fixture *)*state)->arena);
    return 0;
}

static const char *const chip_names[] = {"plain", "clever", "star", "oracle"};
static const double      shares[FIXTURE_CELLS][4] = {{0.40, 0.60, 0.70, 0.80},
                                                     {0.20, 0.50, 0.50, 0.60},
                                                     {0.90, 0.80, 0.89, 0.96},
                                                     {0.10, 0.00, 0.30, 0.40}};

static void fill_chip(Fixture *f, uint32_t c) {
    static const char *const titles[] = {
        "4+4, light, load 0.5, 16 B/cycle", "4+4, light, load 1, 8 B/cycle",
        "4+4, heavy, load 0.5, 16 B/cycle", "4+4, heavy, load 1, 8 B/cycle"};
    for (uint32_t e = 0; e < 4; e++) {
        for (uint32_t k = 0; k < FIXTURE_SEEDS; k++) {
            double *v = f->values[c][e][k];
            v[METRIC_SLA] = shares[c][e] + 0.01 * ((double)k - 1) * (shares[c][e] > 0);
            v[METRIC_SLOWDOWN] = 2;
            v[METRIC_ENERGY_MJ] = 100 + e;
            v[METRIC_POLICY_ENERGY_SHARE] = 0.01;
            v[METRIC_DECISION_US] = 3;
            v[METRIC_MEASURED_US] = 7;
            v[METRIC_SLA_HIGH] = v[METRIC_SLA_MEDIUM] = v[METRIC_SLA_LOW] = v[METRIC_SLA];
        }
        f->entries[c][e].policy = chip_names[e];
        f->entries[c][e].rank = e == 3;
        f->entries[c][e].paper = e == 1 ? NULL : "a paper";
        f->entries[c][e].worst_tenant = "resnet50";
        f->entries[c][e].worst_sla = 0.25;
    }
    const CellField fields[] = {
        {.key = "chip", .text = "4+4"},
        {.key = "mix", .text = c < 2 ? "light" : "heavy"},
        {.key = "load", .kind = FIELD_REAL, .number = c % 2 == 0 ? 0.5 : 1, .axis = "load"},
        {.key = "bandwidth", .kind = FIELD_REAL, .number = c % 2 == 0 ? 16 : 8, .axis = "bytes"}};
    memcpy(f->cells[c].fields, fields, sizeof fields);
    f->cells[c].n_fields = 4;
    f->cells[c].title = titles[c];
    f->cells[c].group = c < 2 ? "4+4, light" : "4+4, heavy";
}

int fixture_chip(void **state) {
    Fixture *f = empty(TIER_CHIP, FIXTURE_CELLS, 4);
    for (uint32_t c = 0; c < FIXTURE_CELLS; c++) fill_chip(f, c);
    for (uint32_t i = 0; i < 4; i++)
        f->sweep[i] = (SweepPoint){.hidden = i < 2 ? 16 : 64,
                                   .period_us = i % 2 == 0 ? 100 : 500,
                                   .sla = {.mean = 0.5},
                                   .share = {.mean = 0.004},
                                   .decision_us = {.mean = 2}};
    f->comparison.about = "How <it> was run.";
    f->comparison.requests = 50;
    return started(f, state);
}

int fixture_cluster(void **state) {
    static const char *const names[] = {"plain", "seer", "star", "star part=false", "absent"};
    static const char *const knows[] = {"blind", "oracle", "predicted", "predicted", "blind"};
    static const uint32_t    ranks[] = {0, 2, 1, 1, 0};
    static const double      jct[] = {300, 90, 100, 120, 0}, span[] = {900, 800, 1000, 990, 0};
    static const double      hours[] = {0.5, 1.5}, use[] = {80, 20}, queue[] = {3, 0},
                        times[] = {1, 2, 3};
    Fixture *f = empty(TIER_CLUSTER, 1, 5);
    for (uint32_t e = 0; e < 5; e++) {
        for (uint32_t k = 0; k < FIXTURE_SEEDS; k++) {
            double *v = f->values[0][e][k];
            v[METRIC_JCT_MEAN_S] = jct[e] * (k + 1);
            v[METRIC_MAKESPAN_S] = span[e] + k;
            v[METRIC_JOBS] = 40;
            v[METRIC_FAIRNESS] = 0.5;
        }
        ComparisonEntry *x = &f->entries[0][e];
        x->policy = names[e];
        x->knows = knows[e];
        x->rank = ranks[e];
        x->part_of = e == 3 ? "star" : NULL;
        x->missing = e == 4 ? "it <cannot>" : NULL;
        x->curves[CURVE_JCT] = (Curve){NULL, times, 3};
        x->curves[CURVE_GPU_USE] = (Curve){hours, use, 2};
        x->curves[CURVE_QUEUE] = (Curve){hours, queue, 2};
    }
    const CellField fields[] = {
        {.key = "trace", .text = "t.csv"},
        {.key = "servers", .kind = FIELD_INT, .number = 4, .axis = "servers"},
        {.key = "servers_from", .text = "4"},
        {.key = "gpus", .kind = FIELD_INT, .number = 32},
        {.key = "load", .kind = FIELD_REAL, .number = 0.8, .axis = "load"},
        {.key = "too_long", .within = "left_out", .kind = FIELD_INT, .number = 7},
        {.key = "too_large", .within = "left_out", .kind = FIELD_INT}};
    memcpy(f->cells[0].fields, fields, sizeof fields);
    f->cells[0].n_fields = 7;
    f->cells[0].title = "t.csv on 4 servers";
    f->cells[0].group = "t.csv";
    f->comparison.fair_rank = 1;
    return started(f, state);
}

int fixture_node(void **state) {
    static const double latencies[] = {1, 2, 3}, rates[] = {50, 120}, hits[] = {1, 0.7};
    static const double qps[2][FIXTURE_SEEDS] = {{195, 200, 205}, {100, 100, 100}};
    static const double equal[2][2] = {{1, 2}, {2, 8}};
    Fixture            *f = empty(TIER_NODE, 2, 2);
    for (uint32_t c = 0; c < 2; c++) {
        for (uint32_t e = 0; e < 2; e++) {
            for (uint32_t k = 0; k < FIXTURE_SEEDS; k++) {
                double *v = f->values[c][e][k];
                v[METRIC_QPS] = qps[e][k];
                v[METRIC_MEAN_MS] = e == 0 ? 2 : 4;
                v[METRIC_P99_MS] = e == 0 ? 4 : 9;
                v[METRIC_HIT_RATE] = 0.99;
                v[METRIC_CONFLICT_RATE] = 0.1;
                v[METRIC_CORE_USE] = 0.5;
                v[METRIC_EQUAL_MS] = c == 0 ? equal[e][0] : NAN;
                v[METRIC_FULL_MS] = c == 0 ? equal[e][1] : NAN;
            }
            f->entries[c][e].policy = e == 0 ? "fast" : "base";
            f->entries[c][e].curves[CURVE_LATENCY] = (Curve){NULL, latencies, 3};
            f->entries[c][e].curves[CURVE_TRIALS] = (Curve){rates, hits, 2};
        }
        f->cells[c].title = f->cells[c].group = c == 0 ? "light" : "heavy";
        f->cells[c].about = c == 0 ? "two networks" : NULL;
        f->cells[c].fields[0] = (CellField){.key = "mix", .text = f->cells[c].title};
        f->cells[c].n_fields = 1;
        f->cells[c].equal[0] =
            (EqualLoad){0.8, c == 0 ? 80 : NAN, METRIC_EQUAL_MS, METRIC_EQUAL_HIT};
        f->cells[c].equal[1] = (EqualLoad){1, c == 0 ? 100 : NAN, METRIC_FULL_MS, METRIC_FULL_HIT};
    }
    f->comparison.subject = "base";
    f->comparison.subject_role = "baseline";
    f->comparison.machine = "a machine";
    return started(f, state);
}
