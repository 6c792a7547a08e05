// How long does a policy take to decide? A 64-core server with 100 requests waiting, three models
// of 20, 53 and 101 layers. Policies take turns; the least and the median time per decision.
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/stats.h"
#include "tests/policy/node_sample.h"

enum { POLICIES = 16, MOMENTS = 16, ROUNDS = 240, WAITING = 100, MAX = 512 };

static double decide_ns(const NodeSamplePolicy *p, const NodeView *v, NodeAction *plan) {
    TimeNs   start = clock_now(clock_monotonic());
    uint32_t n = p->policy->decide(p->state, v, plan, MAX);
    TimeNs   end = clock_now(clock_monotonic());
    return (double)(end - start) + (n > MAX ? 1 : 0);
}

int main(void) {
    Arena arena;
    if (arena_init(&arena, (size_t)1 << 30) != ERR_OK) return 1;
    Rng        rng = {1};
    NodeSample s;
    node_sample_init(&s, &arena, &rng, 64);
    NodeSamplePolicy policies[POLICIES];
    uint32_t         n_policies = 0;
    for (; policies_node_at(n_policies) != NULL && n_policies < POLICIES; n_policies++)
        policies[n_policies] = node_sample_policy(&s, &arena, policies_node_at(n_policies));
    NodeSampleView moments[MOMENTS];
    for (uint32_t i = 0; i < MOMENTS; i++)
        moments[i] = node_sample_view(&s, &arena, &rng, WAITING, i % 8);
    double     *took = arena_new(&arena, double, (size_t)n_policies *ROUNDS *MOMENTS);
    NodeAction *plan = arena_new(&arena, NodeAction, MAX);
    for (uint32_t round = 0; round < ROUNDS; round++)
        for (uint32_t p = 0; p < n_policies; p++)
            for (uint32_t i = 0; i < MOMENTS; i++)
                took[(p * ROUNDS + round) * MOMENTS + i] =
                    decide_ns(&policies[p], &moments[i].view, plan);
    printf("%-12s %10s %10s %10s  microseconds\n", "policy", "least", "median", "p90");
    for (uint32_t p = 0; p < n_policies; p++) {
        double *sorted, *mine = took + (size_t)p * ROUNDS * MOMENTS;
        size_t  n = (size_t)ROUNDS * MOMENTS;
        if (stats_sort(&arena, mine, n, &sorted) != ERR_OK) return 1;
        printf("%-12s %10.2f %10.2f %10.2f\n", policies[p].policy->name, sorted[0] / 1e3,
               stats_percentile(sorted, n, 50) / 1e3, stats_percentile(sorted, n, 90) / 1e3);
    }
    arena_finish(&arena);
    return 0;
}
