// Decoding of genomes, by hand and against small time steps; the genetic search.
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "policy/chip/magma/magma_search.h"
#include "tests/policy/chip_sample.h"
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

static MagmaGroup *new_group(const ChipView *v, uint32_t jobs, uint32_t depth) {
    MagmaGroup *g = arena_new(&arena, MagmaGroup, 1);
    TaskQueue   queue = {.heap = {.items = arena_new(&arena, HeapItem, v->n_waiting + 1)}};
    for (uint32_t i = 0; i < v->n_waiting; i++) task_queue_add(&queue, 0.0, v->waiting[i]);
    MagmaGroupLimits limits = {jobs, depth, 1.0};
    magma_group_fill(g, v, &queue, &limits);
    return g;
}

static MagmaGenome new_genome(const MagmaGroup *g, Rng *rng) {
    MagmaGenome x = {.kind = arena_new(&arena, uint8_t, MAGMA_JOBS),
                     .priority = arena_new(&arena, float, MAGMA_JOBS)};
    for (uint32_t i = 0; i < g->n_jobs; i++) {
        x.kind[i] = (uint8_t)rng_below(rng, g->setup->n_kinds);
        if (isinf(g->costs[i][x.kind[i]].ns)) x.kind[i] = 0;
        x.priority[i] = rng_unit(rng);
    }
    return x;
}

// Two chains of two layers on one unit of each kind; the memory has 10 bytes a nanosecond.
static void test_by_hand(void **state) {
    (void)state;
    static const ChipCost costs[] = {{100, 8, 1}, {200, 4, 1}, {50, 0, 1}, {80, 0, 1}};
    Rng                   rng = {1};
    ChipSample            s;
    chip_sample_init(&s, &arena, &rng, 2, 1);
    s.tenants[0].model = chip_sample_chain(&arena, 2, 2, costs);
    s.setup.bytes_ns = 10;
    ChipSampleView at = chip_sample_view(&s, &arena, &rng, 2, 0);
    for (uint32_t i = 0; i < 2; i++) {
        at.tasks[i].request.tenant = 0;
        at.tasks[i].layer = 0;
        at.tasks[i].request.deadline = at.view.now + 250;
    }
    MagmaGroup *g = new_group(&at.view, 64, 4);
    assert_true(g->n_chains == 2 && g->n_jobs == 4);
    uint8_t     kinds[] = {0, 0, 1, 0};
    float       priorities[] = {1, 1, 2, 2};
    MagmaGenome x = {kinds, priorities, 0};
    // 8 + 4 bytes of 10 until the first ends, at 120; the second has 100 ns left and continues
    // alone: 220. Then its last layer, 50 ns on the first unit.
    MagmaScore score = magma_group_decode(g, &x);
    assert_true(fabsf(score.makespan - 270) < 0.01F);
    assert_int_equal(score.late, 1);
    kinds[2] = 0;  // both on the first unit, the second chain first: 150 and 300
    score = magma_group_decode(g, &x);
    assert_true(fabsf(score.makespan - 300) < 0.01F);
    assert_int_equal(score.late, 1);
    arena_rewind(&arena, 0);
}

typedef struct Slow {  // the same in steps of a hundredth of a nanosecond's work
    uint32_t next[MAGMA_CHAINS], on[CHIP_UNITS];
    double   left[CHIP_UNITS], b[CHIP_UNITS], now, end;
    bool     runs[MAGMA_CHAINS];
} Slow;

static void slow_start(Slow *p, const MagmaGroup *g, const MagmaGenome *x, uint32_t u) {
    uint32_t best = CHIP_NONE, kind = g->setup->kind_of[u];
    for (uint32_t i = 0; i < g->n_chains; i++) {
        uint32_t job = p->next[i];
        if (p->runs[i] || job >= g->chains[i].first + g->chains[i].n || x->kind[job] != kind)
            continue;
        if (best == CHIP_NONE || x->priority[job] > x->priority[p->next[best]]) best = i;
    }
    if (best == CHIP_NONE) return;
    p->left[u] = (double)g->costs[p->next[best]][kind].ns;
    p->b[u] = (double)g->costs[p->next[best]][kind].bytes_ns;
    p->on[u] = best;
    p->runs[best] = true;
    p->next[best]++;
}

static double slow_makespan(const MagmaGroup *g, const MagmaGenome *x, double step) {
    Slow p = {0};
    for (uint32_t i = 0; i < g->n_chains; i++) p.next[i] = g->chains[i].first;
    for (uint32_t u = 0; u < g->setup->n_units; u++) {
        p.left[u] = (double)g->busy[u].ns;
        p.b[u] = (double)g->busy[u].bytes_ns;
        p.on[u] = g->busy[u].chain;
        if (p.on[u] != CHIP_NONE) p.runs[p.on[u]] = true;
    }
    for (bool any = true; any; p.now += step) {
        double asked = 0;
        any = false;
        for (uint32_t u = 0; u < g->setup->n_units; u++) {
            if (!(p.left[u] > 0)) slow_start(&p, g, x, u);
            if (p.left[u] > 0) asked += p.b[u], any = true;
        }
        double speed = asked > (double)g->setup->bytes_ns ? (double)g->setup->bytes_ns / asked : 1;
        for (uint32_t u = 0; u < g->setup->n_units; u++) {
            if (!(p.left[u] > 0)) continue;
            p.left[u] -= step * speed;
            if (p.left[u] > 0 || p.on[u] == CHIP_NONE) continue;
            p.runs[p.on[u]] = false;
            p.end = p.now + step;
        }
    }
    return p.end;
}

static void test_against_small_steps(void **state) {
    (void)state;
    Rng        rng = {2};
    ChipSample s;
    chip_sample_init(&s, &arena, &rng, 2, 2);
    for (uint32_t i = 0; i < 30; i++) {
        ChipSampleView at = chip_sample_view(&s, &arena, &rng, 1 + (uint32_t)rng_below(&rng, 8),
                                             (uint32_t)rng_below(&rng, 4));
        MagmaGroup    *g = new_group(&at.view, 24, 3);
        MagmaGenome    x = new_genome(g, &rng);
        double         quick = (double)magma_group_decode(g, &x).makespan;
        double         slow = slow_makespan(g, &x, 5.0);
        assert_true(fabs(quick - slow) < 5.0 * (g->n_jobs + 2) + 0.001 * slow);
    }
    arena_rewind(&arena, 0);
}

static MagmaParams rules(uint32_t evaluations) {
    return (MagmaParams){.population = 20,
                         .evaluations = evaluations,
                         .elite = 0.05,
                         .parents = 0.1,
                         .single = 0.9,
                         .range = 0.1,
                         .whole = 0.1,
                         .mutation = 0.05,
                         .late = 1};
}

static double search(const MagmaGroup *g, uint32_t evaluations, uint64_t seed) {
    size_t       bytes = (size_t)1 << 20;
    Carve        from = {.base = arena_alloc(&arena, 1, bytes, 64)};
    MagmaSearch *s = arena_new(&arena, MagmaSearch, 1);
    double       ops = 0;
    Rng          rng = {seed};
    magma_search_carve(s, 20, &from);
    assert_true(from.used <= bytes);
    s->cfg = rules(evaluations);
    s->rng = rng;
    for (uint32_t k = 0; k < 2; k++) {
        MagmaGenome *known = magma_search_known(s), x = new_genome(g, &rng);
        memcpy(known->kind, x.kind, g->n_jobs);
        memcpy(known->priority, x.priority, g->n_jobs * sizeof(float));
    }
    const MagmaGenome *best = magma_search_run(s, g, &ops);
    MagmaScore         score = magma_group_decode(g, best);
    double             cost = (double)score.makespan / (double)g->setup->period + score.late;
    assert_true(fabs(best->cost - cost) < 1e-9 && ops > 0);
    for (uint32_t i = 0; i < g->n_jobs; i++) assert_true(g->costs[i][best->kind[i]].ns < INFINITY);
    return cost;
}

static void test_breeding_helps(void **state) {
    (void)state;
    Rng        rng = {3};
    ChipSample s;
    chip_sample_init(&s, &arena, &rng, 2, 4);
    double   few = 0, many = 0;
    uint32_t better = 0;
    for (uint32_t i = 0; i < 10; i++) {
        ChipSampleView at = chip_sample_view(&s, &arena, &rng, 12, 4);
        MagmaGroup    *g = new_group(&at.view, 48, 4);
        double         little = search(g, 2, i), much = search(g, 400, i);
        assert_true(much <= little);
        assert_true(much == search(g, 400, i));
        few += little;
        many += much;
        better += much < little;
    }
    assert_true(better > 5 && many < few);
    arena_rewind(&arena, 0);
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_by_hand),
        cmocka_unit_test(test_against_small_steps),
        cmocka_unit_test(test_breeding_helps),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
