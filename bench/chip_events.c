// How many layers per second does the chip simulator process on one core? Packages of 8 and 64
// units, three workloads, cheap and expensive policies, both bandwidth-sharing rules. Best CPU time
// of several rounds; the time spent in the policy is measured in a separate round.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "chip/chip_scenario.h"
#include "policy/policies.h"
#include "tests/chip/test_package.h"

enum { ROUNDS = 5 };

static double rate(const ChipRun *run, Arena *a) {
    double best = 0;
    for (int i = 0; i < ROUNDS; i++) {
        size_t     mark = a->used;
        ChipResult r;
        clock_t    start = clock();
        if (chip_simulate(run, a, &r) != ERR_OK) exit(1);
        double s = (double)(clock() - start) / CLOCKS_PER_SEC;
        best = fmax(best, (double)r.layers / s);
        arena_rewind(a, mark);
    }
    return best;
}

static double decide_ns(ChipRun run, Arena *a) {
    size_t     mark = a->used;
    Clock      clock = clock_monotonic();
    ChipResult r;
    run.clock = &clock;
    if (chip_simulate(&run, a, &r) != ERR_OK) exit(1);
    arena_rewind(a, mark);
    return r.decide_ns / (double)r.layers;
}

static void *default_settings(const ChipPolicy *p, Arena *a) {
    Settings s = {.rows = p->rows, .n_rows = p->n_rows, .arena = a};
    if (p->settings_size == 0) return NULL;
    s.values = arena_alloc(a, 1, p->settings_size, 16);
    settings_default(&s);
    return s.values;
}

static void measure(const char *package, const char *mix, const ChipPolicy *p, double load,
                    ChipSharing sharing, Arena *a) {
    ChipScenarioOptions o = {.package = package, .workload = mix, .sharing = sharing};
    ChipTraffic         t = {.load = load, .requests = 10000, .seed = 1};
    ChipScenario        s;
    ChipTrace           trace;
    if (chip_scenario_open(&o, a, &s) != ERR_OK ||
        chip_scenario_trace(&s, &t, a, &trace) != ERR_OK) {
        fprintf(stderr, "%s\n", err_why());
        exit(1);
    }
    ChipRun run = chip_scenario_run(&s, trace);
    run.policy = p;
    run.settings = default_settings(p, a);
    printf("%-6s %-6s %-12s %5.2f %-7s %10.0f %8.0f\n", s.package.name, mix, p->name, load,
           sharing == CHIP_EQUAL ? "equal" : "maxmin", rate(&run, a), decide_ns(run, a));
}

int main(void) {
    static const char *const packages[] = {"4+4", "64", NULL};
    static const char *const mixes[] = {"light", "heavy", "mixed", NULL};
    const ChipPolicy        *edf = policies_chip_find("edf");
    Arena                    a;
    if (arena_init(&a, (size_t)1 << 36) != ERR_OK || edf == NULL) return 1;
    printf("%-6s %-6s %-12s %5s %-7s %10s %8s\n", "chip", "mix", "policy", "load", "sharing",
           "layers/s", "policy ns");
    for (int p = 0; packages[p] != NULL; p++)
        for (int m = 0; mixes[m] != NULL; m++) {
            measure(packages[p], mixes[m], &test_package_fcfs, 0.7, CHIP_EQUAL, &a);
            measure(packages[p], mixes[m], &test_package_fcfs, 0.7, CHIP_MAX_MIN, &a);
            measure(packages[p], mixes[m], &test_package_fcfs, 1.5, CHIP_EQUAL, &a);
            measure(packages[p], mixes[m], edf, 0.7, CHIP_EQUAL, &a);
        }
    arena_finish(&a);
    return 0;
}
