// Which settings of a chip policy are best? Random settings first, then one setting at a time from
// the best of them, over cells of package, workload, load and bandwidth, on seeds below 100. Figure
// of merit: mean share of requests in time.
//   bench_chip_tune POLICY [random=30] [rounds=2] [requests=300] [KEY=VALUE|KEY ...]
// KEY=VALUE sets the start; KEY alone excludes the setting from the search.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/settings.h"
#include "chip/chip_scenario.h"
#include "policy/policies.h"

enum { CELLS = 64, ROWS = 32 };

typedef struct Cell {
    const char  *package, *workload;
    double       load, bandwidth;
    ChipScenario stage;
    ChipTrace    trace;
    const void  *loaded;
    double       sla;  // with the settings tried last
} Cell;

typedef struct Tune {
    const ChipPolicy *policy;
    Arena             arena;
    Settings          with;
    Cell              cells[CELLS];
    uint32_t          n_cells, requests;
    bool              kept[ROWS];
    double            best;
    void             *best_values;
    Rng               rng;
} Tune;

static void fail(Err e) {
    if (e == ERR_OK) return;
    fprintf(stderr, "%s\n", err_why());
    exit(1);
}

static void add_cell(Tune *t, const char *package, const char *workload, double load,
                     double bandwidth) {
    Cell               *c = &t->cells[t->n_cells];
    ChipScenarioOptions o = {.package = package, .workload = workload, .bandwidth = bandwidth};
    ChipTraffic traffic = {.load = load, .requests = t->requests, .seed = 1 + t->n_cells * 7 % 99};
    *c = (Cell){.package = package, .workload = workload, .load = load, .bandwidth = bandwidth};
    fail(chip_scenario_open(&o, &t->arena, &c->stage));
    fail(chip_scenario_trace(&c->stage, &traffic, &t->arena, &c->trace));
    t->n_cells++;
}

static void add_cells(Tune *t) {
    static const char *const mixes[] = {"light", "heavy", "mixed", NULL};
    static const char *const others[] = {"2+2", "6+2", NULL};
    static const double      loads[] = {0.3, 0.6, 0.9, 1.2, 1.5}, bandwidths[] = {16, 8, 4};
    for (uint32_t m = 0; mixes[m] != NULL; m++)
        for (uint32_t b = 0; b < sizeof bandwidths / sizeof *bandwidths; b++)
            for (uint32_t l = 0; l < sizeof loads / sizeof *loads; l++)
                add_cell(t, "4+4", mixes[m], loads[l], bandwidths[b]);
    for (uint32_t p = 0; others[p] != NULL; p++)
        for (uint32_t m = 0; mixes[m] != NULL; m++) add_cell(t, others[p], mixes[m], 0.7, 0);
}

static double run_cell(Tune *t, Cell *c) {
    ChipResult  r;
    ChipSummary s;
    size_t      mark = t->arena.used;
    ChipRun     run = chip_scenario_run(&c->stage, c->trace);
    run.policy = t->policy;
    run.settings = t->with.values;
    run.seed = 1;
    if (t->policy->load != NULL)
        fail(t->policy->load(&c->stage.setup, run.settings, &t->arena, &run.loaded));
    fail(chip_simulate(&run, &t->arena, &r));
    fail(chip_summary(&run, &r, CHIP_NONE, &t->arena, &s));
    arena_rewind(&t->arena, mark);
    return c->sla = s.sla;
}

static double evaluate(Tune *t) {
    double sum = 0;
    for (uint32_t i = 0; i < t->n_cells; i++) sum += run_cell(t, &t->cells[i]);
    return sum / t->n_cells;
}

static void *field(const Tune *t, const Setting *row) {
    return (char *)t->with.values + row->offset;
}

static void store(const Tune *t, const Setting *row, double x) {
    if (row->kind == SETTING_double) *(double *)field(t, row) = fmin(fmax(x, row->lo.d), row->hi.d);
    if (row->kind == SETTING_bool) *(bool *)field(t, row) = x > 0.5;
    if (row->kind == SETTING_int)
        *(int *)field(t, row) = (int)lround(fmin(fmax(x, (double)row->lo.i), (double)row->hi.i));
}

static double fetch(const Tune *t, const Setting *row) {
    if (row->kind == SETTING_double) return *(double *)field(t, row);
    if (row->kind == SETTING_bool) return *(bool *)field(t, row);
    return row->kind == SETTING_int ? (double)*(int *)field(t, row) : (double)NAN;
}

static bool is_switch(const Setting *row) {
    return row->kind == SETTING_bool || (row->kind == SETTING_int && row->hi.i - row->lo.i <= 4);
}

static void show(const Tune *t, double sla, const char *what) {
    printf("%6.2f %%  %-8s", 100 * sla, what);
    for (uint32_t i = 0; i < t->with.n_rows; i++)
        printf(" %s=%.4g", t->with.rows[i].key, fetch(t, &t->with.rows[i]));
    printf("\n");
    fflush(stdout);
}

static bool try_now(Tune *t, const char *what) {
    double sla = evaluate(t);
    bool   better = sla > t->best;
    if (better) {
        t->best = sla;
        memcpy(t->best_values, t->with.values, t->policy->settings_size);
        show(t, sla, what);
    } else {
        memcpy(t->with.values, t->best_values, t->policy->settings_size);
    }
    return better;
}

// Within a factor of four of the first value; sometimes 0.
static void randomise(Tune *t) {
    for (uint32_t i = 0; i < t->with.n_rows; i++) {
        const Setting *row = &t->with.rows[i];
        double         x = fetch(t, row), u = rng_unit64(&t->rng);
        if (t->kept[i] || row->kind == SETTING_string) continue;
        if (is_switch(row)) {
            double hi = row->kind == SETTING_bool ? 1 : (double)row->hi.i;
            double lo = row->kind == SETTING_bool ? 0 : (double)row->lo.i;
            store(t, row, floor(lo + u * (hi - lo + 1)));
        } else if (rng_below(&t->rng, 8) == 0) {
            store(t, row, 0.0);
        } else {
            store(t, row, (x > 0 ? x : 0.5) * exp2(4 * u - 2));
        }
    }
}

static bool try_row(Tune *t, uint32_t i) {
    static const double factors[] = {0, 0.5, 0.7, 0.85, 1.2, 1.5, 2};
    const Setting      *row = &t->with.rows[i];
    bool                any = false;
    double              x = fetch(t, row);
    if (t->kept[i] || row->kind == SETTING_string) return false;
    if (is_switch(row)) {
        int64_t lo = row->kind == SETTING_bool ? 0 : row->lo.i;
        int64_t hi = row->kind == SETTING_bool ? 1 : row->hi.i;
        for (int64_t k = lo; k <= hi; k++)
            if ((double)k != fetch(t, row)) {
                store(t, row, (double)k);
                any = try_now(t, row->key) || any;
            }
        return any;
    }
    for (uint32_t k = 0; k < sizeof factors / sizeof *factors; k++) {
        store(t, row, (x > 0 ? x : 0.5) * factors[k]);
        if (fetch(t, row) != x) any = try_now(t, row->key) || any;
    }
    return any;
}

static void search(Tune *t, uint32_t n_random, uint32_t n_rounds) {
    void *start = arena_alloc(&t->arena, 1, t->policy->settings_size, 64);
    memcpy(start, t->with.values, t->policy->settings_size);
    try_now(t, "start");
    for (uint32_t i = 0; i < n_random; i++) {
        memcpy(t->with.values, start, t->policy->settings_size);
        randomise(t);
        try_now(t, "random");
    }
    memcpy(t->with.values, t->best_values, t->policy->settings_size);
    bool any = true;
    for (uint32_t round = 0; round < n_rounds && any; round++) {
        any = false;
        for (uint32_t i = 0; i < t->with.n_rows; i++) any = try_row(t, i) || any;
    }
}

static void show_cells(Tune *t) {
    memcpy(t->with.values, t->best_values, t->policy->settings_size);
    show(t, evaluate(t), "best");
    for (uint32_t i = 0; i < t->n_cells; i++) {
        const Cell *c = &t->cells[i];
        bool        row =
            i == 0 || strcmp(c->workload, c[-1].workload) != 0 || c->bandwidth != c[-1].bandwidth;
        if (row) printf("\n%-4s %-6s %4g:", c->package, c->workload, c->bandwidth);
        printf("  %4.2f %5.1f", c->load, 100 * c->sla);
    }
    printf("\n");
}

static void keep(Tune *t, const char *key) {
    for (uint32_t i = 0; i < t->with.n_rows && i < ROWS; i++)
        if (strcmp(t->with.rows[i].key, key) == 0) t->kept[i] = true;
}

int main(int argc, char **argv) {
    static Tune t = {.best = -1, .requests = 300, .rng = {1}};
    uint32_t    n_random = 30, n_rounds = 2;
    if (argc < 2 || (t.policy = policies_chip_find(argv[1])) == NULL) {
        fprintf(stderr, "usage: bench_chip_tune POLICY [random=N] [rounds=N] [requests=N] "
                        "[KEY=VALUE|KEY ...]\n");
        return 2;
    }
    fail(arena_init(&t.arena, (size_t)8 << 30));
    t.with = (Settings){t.policy->rows, t.policy->n_rows,
                        arena_alloc(&t.arena, 1, t.policy->settings_size, 64), &t.arena};
    t.best_values = arena_alloc(&t.arena, 1, t.policy->settings_size, 64);
    settings_default(&t.with);
    for (int i = 2; i < argc; i++) {
        if (sscanf(argv[i], "random=%u", &n_random) == 1) continue;
        if (sscanf(argv[i], "rounds=%u", &n_rounds) == 1) continue;
        if (sscanf(argv[i], "requests=%u", &t.requests) == 1) continue;
        if (strchr(argv[i], '=') != NULL)
            fail(settings_set(&t.with, argv[i]));
        else
            keep(&t, argv[i]);
    }
    add_cells(&t);
    search(&t, n_random, n_rounds);
    show_cells(&t);
    arena_finish(&t.arena);
    return 0;
}
