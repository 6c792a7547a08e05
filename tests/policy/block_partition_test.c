// Block partition against a slow, literal implementation of its definition.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "policy/node/common/block_partition.h"
#include "tests/policy/node_sample.h"
#include "tests/runner.h"

static Arena arena;

static int setup(void **state) {
    (void)state;
    return arena_init(&arena, (size_t)1 << 30) == ERR_OK ? 0 : -1;
}

static int teardown(void **state) {
    (void)state;
    arena_finish(&arena);
    return 0;
}

typedef struct Slow {
    const NodeModel       *m;
    const PartitionParams *rule;
    uint32_t               level;
    double                 planned, theta;
} Slow;

static double slow_time(const Slow *s, uint32_t first, uint32_t end, uint32_t k) {
    float sum = 0;
    for (uint32_t l = end; l-- > first;) {
        uint32_t v = s->rule->best ? node_best_versions(s->m, k, s->level)[l] : 0;
        sum += node_time(s->m, l, v, k, s->level);
    }
    return (double)sum;
}

static uint32_t slow_least(const Slow *s, uint32_t first, uint32_t end, double ns) {
    uint32_t fastest = 0;
    for (uint32_t k = 0; k < s->m->n_counts; k++) {
        if (slow_time(s, first, end, k) <= ns) return k;
        if (slow_time(s, first, end, k) < slow_time(s, first, end, fastest)) fastest = k;
    }
    return fastest;
}

// ends[l]: whether a block ends before layer l, by the pseudo-code.
static void slow_blocks(const Slow *s, const BlockPartition *c, uint32_t list, bool *ends) {
    uint32_t n = s->m->n_layers, ref = slow_least(s, 0, n, s->planned), first = 0;
    double   flat = s->m->counts[ref];
    assert_int_equal(c->flat[list], s->m->counts[ref]);
    for (uint32_t l = 0; l < n; l++) {
        double need = c->need[(size_t)list * n + l], mean = 0, took = 0;
        double own = slow_time(s, l, l + 1, ref);
        for (uint32_t i = first; i < l; i++) {
            mean += c->need[(size_t)list * n + i] / (double)(l - first);
            took += slow_time(s, i, i + 1, ref);
        }
        bool pivot = need > (1 + s->theta) * flat || need < flat / (1 + s->theta);
        bool differs = fabs(need - mean) > s->theta * flat + 1e-9;
        ends[l] = l > 0 &&
                  (((pivot || differs) && took >= s->rule->min_ns) || took + own > s->rule->max_ns);
        if (ends[l]) first = l;
    }
}

// A count is right when it fits and the next smaller does not, up to rounding.
static void check_count(const Slow *s, uint32_t first, uint32_t end, uint32_t cores, double ns) {
    uint32_t k = node_count_index(s->m, cores);
    assert_int_equal(s->m->counts[k], cores);
    if (slow_time(s, first, end, k) > ns * 1.0001) {
        for (uint32_t j = 0; j < s->m->n_counts; j++)
            assert_true(slow_time(s, first, end, k) <= slow_time(s, first, end, j) * 1.0001);
        return;
    }
    for (uint32_t j = 0; j < k; j++) assert_true(slow_time(s, first, end, j) > ns * 0.9999);
}

static void check_list(const Slow *s, const BlockPartition *c, uint32_t list) {
    uint32_t n = s->m->n_layers, end = n, ref = slow_least(s, 0, n, s->planned);
    double   all = slow_time(s, 0, n, ref);
    bool    *ends = arena_new(&arena, bool, n + 1);
    slow_blocks(s, c, list, ends);
    for (uint32_t l = n; l-- > 0;) {
        PartitionBlock b = block_partition_at(c, list, l);
        assert_int_equal(l + b.n_layers, end);
        double share = slow_time(s, l, end, ref) / all, own = slow_time(s, l, l + 1, ref) / all;
        check_count(s, l, end, b.cores, s->planned * share);
        check_count(s, l, l + 1, c->need[(size_t)list * n + l], s->planned * own);
        if (ends[l]) end = l;
    }
}

static void try_rule(PartitionParams rule, uint64_t seed) {
    Rng        rng = {seed};
    NodeSample s;
    node_sample_init(&s, &arena, &rng, 64);
    for (uint32_t t = 0; t < NODE_SAMPLE_TENANTS; t++) {
        Carve          count = {0};
        BlockPartition c;
        block_partition_carve(&c, &rule, &s.tenants[t], &count);
        Carve real = {.base = arena_alloc(&arena, 1, count.used, 64)};
        block_partition_carve(&c, &rule, &s.tenants[t], &real);
        block_partition_init(&c, &rule, &s.tenants[t]);
        for (uint32_t theta = 0; theta < PARTITION_THETAS; theta += 3)
            for (uint32_t level = 0; level < c.n_levels; level += 4) {
                double load = theta / (PARTITION_THETAS - 1.0);
                Slow   slow = {.m = s.tenants[t].model,
                               .rule = &rule,
                               .level = level,
                               .theta = rule.th_lo + (rule.th_hi - rule.th_lo) * load};
                slow.planned = (rule.lo + (rule.hi - rule.lo) * load) * (double)s.tenants[t].qos_ns;
                check_list(&slow, &c, block_partition_list(&c, theta, level));
            }
    }
    arena_rewind(&arena, 0);
}

static void test_blocks(void **state) {
    (void)state;
    PartitionParams rule = {
        .lo = 0.4, .hi = 0.9, .th_lo = 0.1, .th_hi = 2, .min_ns = 3e5, .max_ns = 2e6};
    try_rule(rule, 1);
    rule.best = true;
    try_rule(rule, 2);
    rule.blind = true;
    try_rule(rule, 3);
}

static void test_extremes(void **state) {
    (void)state;
    Rng        rng = {4};
    NodeSample s;
    node_sample_init(&s, &arena, &rng, 64);
    const NodeModel *m = s.tenants[1].model;
    const uint32_t   sizes[] = {1, 5, UINT16_MAX};
    for (uint32_t i = 0; i < 3; i++) {
        PartitionParams rule = {.lo = 0.9, .hi = 0.9, .fixed = sizes[i], .blind = true};
        Carve           from = {.base = arena_alloc(&arena, 1, 1 << 20, 64)};
        BlockPartition  c;
        block_partition_carve(&c, &rule, &s.tenants[1], &from);
        block_partition_init(&c, &rule, &s.tenants[1]);
        PartitionBlock first = block_partition_at(&c, 0, 0), second = block_partition_at(&c, 0, 3);
        assert_int_equal(first.n_layers, sizes[i] < m->n_layers ? sizes[i] : m->n_layers);
        if (sizes[i] == 1) assert_int_equal(second.cores, c.need[3]);
        if (sizes[i] == 5) assert_int_equal(second.n_layers, 2);
        if (sizes[i] == UINT16_MAX) assert_int_equal(first.cores, c.flat[0]);
    }
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_blocks),
        cmocka_unit_test(test_extremes),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
