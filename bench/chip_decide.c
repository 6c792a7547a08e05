// How long does a chip policy take to decide? 64 ready layers, 8 units of two kinds, some busy.
// Policies alternate; minimum, median and 90th percentile of decide(), and of plan() where present.
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/stats.h"
#include "tests/policy/chip_sample.h"

enum { POLICIES = 32, MOMENTS = 16, ROUNDS = 120, READY = 64, MAX = 512 };

static double decide_ns(const ChipSamplePolicy *p, const ChipView *v, ChipAction *plan) {
    TimeNs   start = clock_now(clock_monotonic());
    uint32_t n = p->policy->decide(p->state, v, plan, MAX);
    TimeNs   end = clock_now(clock_monotonic());
    return (double)(end - start) + (n > MAX ? 1 : 0);
}

static double plan_ns(const ChipSamplePolicy *p, const ChipView *v) {
    ChipPlanCost cost = {0};
    TimeNs       start = clock_now(clock_monotonic());
    p->policy->plan(p->state, v, &cost);
    TimeNs end = clock_now(clock_monotonic());
    p->policy->commit(p->state);
    return (double)(end - start);
}

static int print_row(Arena *a, const char *name, const char *what, double *ns) {
    double *sorted;
    size_t  n = (size_t)ROUNDS * MOMENTS;
    if (stats_sort(a, ns, n, &sorted) != ERR_OK) return 1;
    printf("%-12s %-8s %10.2f %10.2f %10.2f\n", name, what, sorted[0] / 1e3,
           stats_percentile(sorted, n, 50) / 1e3, stats_percentile(sorted, n, 90) / 1e3);
    return 0;
}

int main(void) {
    Arena arena;
    if (arena_init(&arena, (size_t)1 << 30) != ERR_OK) return 1;
    Rng        rng = {1};
    ChipSample s;
    chip_sample_init(&s, &arena, &rng, 2, 4);
    ChipSamplePolicy policies[POLICIES];
    uint32_t         n_policies = 0;
    for (uint32_t i = 0; policies_chip_at(i) != NULL && n_policies < POLICIES; i++) {
        const ChipPolicy *p = policies_chip_at(i);
        if (!p->clairvoyant) policies[n_policies++] = chip_sample_policy(&s, &arena, p);
    }
    ChipSampleView moments[MOMENTS];
    for (uint32_t i = 0; i < MOMENTS; i++)
        moments[i] = chip_sample_view(&s, &arena, &rng, READY, i % 8);
    size_t      n = (size_t)ROUNDS * MOMENTS;
    double     *decided = arena_new(&arena, double, n_policies *n);
    double     *planned = arena_new(&arena, double, n_policies *n);
    ChipAction *plan = arena_new(&arena, ChipAction, MAX);
    for (uint32_t round = 0; round < ROUNDS; round++)
        for (uint32_t p = 0; p < n_policies; p++)
            for (uint32_t i = 0; i < MOMENTS; i++) {
                size_t at = p * n + round * MOMENTS + i;
                if (policies[p].policy->plan != NULL)
                    planned[at] = plan_ns(&policies[p], &moments[i].view);
                decided[at] = decide_ns(&policies[p], &moments[i].view, plan);
            }
    printf("%-12s %-8s %10s %10s %10s  microseconds\n", "policy", "", "least", "median", "p90");
    for (uint32_t p = 0; p < n_policies; p++) {
        const ChipPolicy *policy = policies[p].policy;
        if (print_row(&arena, policy->name, "decides", decided + p * n) != 0) return 1;
        if (policy->plan != NULL && print_row(&arena, policy->name, "plans", planned + p * n) != 0)
            return 1;
    }
    arena_finish(&arena);
    return 0;
}
