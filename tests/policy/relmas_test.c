// relmas: legal actions, features in bounds, prices, preferences of the heuristic, invalid weights.
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/file.h"
#include "learn/actor_critic.h"
#include "learn/weights_file.h"
#include "policy/chip/relmas/relmas.h"
#include "tests/policy/chip_sample.h"
#include "tests/runner.h"

enum { MAX = 512, HIDDEN = 8 };

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

typedef struct Fixture {
    RelmasSettings settings;
    RelmasLoaded   loaded;
    Relmas        *state;
} Fixture;

static void fixture_open(Fixture *d, const ChipSample *s, uint64_t seed) {
    const ChipPolicy *p = &chip_policy_relmas;
    Settings          with = {p->rows, p->n_rows, &d->settings, &arena};
    Rng               rng = {seed};
    settings_default(&with);
    if (seed > 0) {
        Actor    actor = relmas_actor(HIDDEN);
        FloatVec w = float_vec_new(&arena, actor_params(actor));
        for (size_t i = 0; i < w.n; i++) w.at[i] = 2 * rng_unit(&rng) - 1;
        d->loaded = (RelmasLoaded){.actor = actor, .w = w.at};
    } else {
        d->loaded = (RelmasLoaded){.w = NULL};
    }
    d->state = arena_alloc(&arena, p->state_size(&s->setup, &d->settings), 1, 64);
    p->init(d->state, &s->setup, &d->settings, &d->loaded);
}

static uint32_t fixture_decide(Fixture *d, const ChipView *v, bool think, ChipAction *out,
                               uint32_t max) {
    ChipPlanCost cost = {0};
    if (think) {
        chip_policy_relmas.plan(d->state, v, &cost);
        chip_policy_relmas.commit(d->state);
        assert_true(d->loaded.w == NULL ? cost.macs == 0 : cost.weight_bytes > 0);
    }
    return chip_policy_relmas.decide(d->state, v, out, max);
}

static void check_plan(const ChipView *v, const ChipAction *at, uint32_t n) {
    bool named[CHIP_SAMPLE_SLOTS] = {0}, busy[CHIP_UNITS];
    for (uint32_t u = 0; u < v->setup->n_units; u++) busy[u] = v->units[u].task != CHIP_NONE;
    for (uint32_t i = 0; i < n; i++) {
        const ChipAction *a = &at[i];
        if (a->verb == CHIP_THROTTLE) {
            assert_true(a->unit < v->setup->n_units && busy[a->unit] && a->cap > 0);
            continue;
        }
        assert_true(a->task < v->n_tasks && !named[a->task]);
        assert_int_equal(v->tasks[a->task].unit, CHIP_NONE);
        named[a->task] = true;
        if (a->verb == CHIP_DROP) continue;
        assert_int_equal(a->verb, CHIP_START);
        const ChipTask *t = &v->tasks[a->task];
        assert_true(a->unit < v->setup->n_units && !busy[a->unit]);
        assert_true(isfinite(chip_cost(v->setup->tenants[t->request.tenant].model, t->layer,
                                       v->setup->kind_of[a->unit])
                                 ->ns));
        busy[a->unit] = true;
    }
}

static void try_views(uint32_t n_kinds, uint32_t n_each, uint64_t seed, bool drop) {
    Rng        rng = {seed};
    ChipSample s;
    Fixture    one, two;
    ChipAction a[MAX], b[MAX];
    chip_sample_init(&s, &arena, &rng, n_kinds, n_each);
    fixture_open(&one, &s, seed);
    fixture_open(&two, &s, seed);
    one.state->dispatch.scorer.cfg.drop = two.state->dispatch.scorer.cfg.drop = drop;
    size_t mark = arena.used;
    for (uint32_t i = 0; i < 300; i++) {
        uint32_t       waiting = (uint32_t)rng_below(&rng, i % 2 == 0 ? 5 : 120);
        uint32_t       max = i % 7 == 0 ? 1 + (uint32_t)rng_below(&rng, 4) : MAX;
        ChipSampleView x =
            chip_sample_view(&s, &arena, &rng, waiting, (uint32_t)rng_below(&rng, 12));
        uint32_t n = fixture_decide(&one, &x.view, i % 3 == 0, a, max);
        assert_true(n <= max);
        check_plan(&x.view, a, n);
        assert_int_equal(fixture_decide(&two, &x.view, i % 3 == 0, b, max), n);
        for (uint32_t k = 0; k < n; k++) {
            assert_true(a[k].verb == b[k].verb && a[k].task == b[k].task && a[k].unit == b[k].unit);
            assert_true(a[k].cap == b[k].cap);
        }
        if (x.view.n_free == s.setup.n_units && x.view.n_waiting > 0 && !drop) assert_true(n > 0);
        arena_rewind(&arena, mark);
    }
    arena_rewind(&arena, 0);
}

static void test_plans(void **state) {
    (void)state;
    try_views(2, 4, 1, false);
    try_views(2, 4, 2, true);
    try_views(3, 2, 3, false);
    try_views(1, 1, 4, false);
    try_views(2, 32, 5, false);
    try_views(2, 4, 0, false);
}

static void test_rows_are_bounded(void **state) {
    (void)state;
    Rng               rng = {7};
    ChipSample        s;
    Fixture           d;
    RelmasObservation look;
    chip_sample_init(&s, &arena, &rng, 2, 4);
    fixture_open(&d, &s, 1);
    size_t mark = arena.used;
    for (uint32_t i = 0; i < 200; i++) {
        ChipSampleView x = chip_sample_view(&s, &arena, &rng, (uint32_t)rng_below(&rng, 120),
                                            (uint32_t)rng_below(&rng, 12));
        relmas_observe(&d.state->dispatch.scorer, &x.view, &look);
        assert_true(look.n <= RELMAS_WINDOW && look.n <= x.view.n_tasks);
        for (uint32_t k = 0; k < look.n * RELMAS_FEATURES; k++)
            assert_true(look.x[k] >= -1 && look.x[k] <= 1);
        for (uint32_t k = 0; k < look.n; k++) {
            assert_false(look.at[k].infeasible);
            assert_true(k == 0 || look.at[k - 1].slack_ns <= look.at[k].slack_ns);
        }
        arena_rewind(&arena, mark);
    }
    for (uint32_t f = 0; f < RELMAS_FEATURES; f++) assert_non_null(relmas_feature_name(f));
    assert_null(relmas_feature_name(RELMAS_FEATURES));
    arena_rewind(&arena, 0);
}

static void test_log2(void **state) {
    (void)state;
    for (float x = 1e-20f; x < 1e20f; x *= 1.013f)
        assert_true(fabs((double)relmas_log2(x) - log2((double)x)) < 3e-5);
    assert_true(relmas_log2(1) == 0 && relmas_log2(8) == 3);
}

// All units and the memory together cost 1 a nanosecond; the share of the memory is near 0 with
// ample bandwidth and near 1 with very little.
static void test_prices(void **state) {
    (void)state;
    Rng        rng = {3};
    ChipSample s;
    chip_sample_init(&s, &arena, &rng, 2, 4);
    float share[3];
    for (uint32_t i = 0; i < 3; i++) {
        s.setup.bytes_ns = i == 0 ? 1e4f : i == 1 ? 16.0f : 0.01f;
        RelmasPrice p = relmas_price_find(&s.setup);
        float       all = p.byte * s.setup.bytes_ns;
        share[i] = all;
        for (uint32_t k = 0; k < 2; k++) all += p.kind[k] * (float)s.setup.kinds[k].n_units;
        assert_true(fabsf(all - 1) < 0.01f);
    }
    assert_true(share[0] < 0.01f && share[2] > 0.9f);
    assert_true(share[0] <= share[1] && share[1] <= share[2]);
    arena_rewind(&arena, 0);
}

// Two tasks and one unit: which one starts.
static uint32_t served(const ChipSample *s, Fixture *d, ChipTask *tasks, uint32_t n) {
    uint32_t        waiting[8], free[1] = {0};
    ChipUnit        units[1] = {{CHIP_NONE, 1000, 0, INFINITY}};
    ChipTenantStats tenant_stats[CHIP_SAMPLE_TENANTS] = {0};
    ChipView        v = {.now = 1000,
                         .setup = &s->setup,
                         .tasks = tasks,
                         .waiting = waiting,
                         .units = units,
                         .free = free,
                         .n_tasks = n,
                         .n_waiting = n,
                         .n_free = 1,
                         .tenant_stats = tenant_stats};
    ChipAction      out[8];
    for (uint32_t i = 0; i < n; i++) waiting[i] = i;
    uint32_t count = chip_policy_relmas.decide(d->state, &v, out, 8);
    return count > 0 && out[0].verb == CHIP_START ? out[0].task : CHIP_NONE;
}

static ChipTask task_of(uint32_t id, uint32_t tenant, TimeNs deadline) {
    ChipTask t = {.slot = id, .unit = CHIP_NONE};
    t.request = (ChipRequest){.id = id, .deadline = deadline, .tenant = tenant};
    return t;
}

static void test_preferences(void **state) {
    (void)state;
    Rng        rng = {5};
    ChipSample s;
    Fixture    d;
    chip_sample_init(&s, &arena, &rng, 1, 1);
    fixture_open(&d, &s, 0);
    TimeNs   far = (TimeNs)1 << 40;
    ChipTask big_first[] = {task_of(0, 3, far), task_of(1, 0, far)};
    assert_int_equal(served(&s, &d, big_first, 2), 1);
    ChipTask infeasible[] = {task_of(2, 0, 1001), task_of(3, 3, far)};
    assert_int_equal(served(&s, &d, infeasible, 2), 3 - 2);
    ChipTask late[] = {task_of(4, 0, 1001)};
    assert_int_equal(served(&s, &d, late, 1), CHIP_NONE);  // dropped
    d.state->dispatch.scorer.cfg.drop = false;
    assert_int_equal(served(&s, &d, late, 1), 0);
    ChipTask urgent[] = {task_of(5, 1, far), task_of(6, 1, far / 1000)};
    assert_int_equal(served(&s, &d, urgent, 2), 1);
    s.tenants[3].target = 1;
    d.state->dispatch.scorer.cfg.fair = 100;
    ChipTask poor[] = {task_of(7, 0, far), task_of(8, 3, far)};
    assert_int_equal(served(&s, &d, poor, 2), 1);
    arena_rewind(&arena, 0);
}

static char *temp_path(void) {
    const char *dir = getenv("TMPDIR");
    return arena_printf(&arena, "%s/relmas_test.%ld", dir != NULL ? dir : "/tmp", (long)getpid());
}

static void test_weights(void **state) {
    (void)state;
    char        *path = temp_path(), *bytes;
    size_t       len;
    FloatVec     w = float_vec_new(&arena, actor_params(relmas_actor(HIDDEN)));
    RelmasLoaded l;
    w.at[3] = 0.5f;
    assert_int_equal(relmas_weights_save(path, HIDDEN, w, "seed=1\n", &arena), ERR_OK);
    assert_int_equal(relmas_weights_load(path, &arena, &l), ERR_OK);
    assert_true(l.actor.trunk.hidden == HIDDEN && l.w[3] == 0.5f);
    assert_int_equal(file_read(path, 1 << 20, &arena, &bytes, &len), ERR_OK);
    bytes[len / 2] ^= 1;
    assert_int_equal(file_replace(path, bytes, len), ERR_OK);
    assert_int_not_equal(relmas_weights_load(path, &arena, &l), ERR_OK);
    assert_int_equal(file_replace(path, bytes, len / 2), ERR_OK);
    assert_int_not_equal(relmas_weights_load(path, &arena, &l), ERR_OK);
    assert_int_equal(relmas_weights_save(path, HIDDEN + 1, w, "", &arena), ERR_OK);
    assert_int_equal(relmas_weights_load(path, &arena, &l), ERR_INVALID);
    assert_non_null(strstr(err_why(), "chip train"));
    assert_int_equal(weights_save(path, "policy=relmas\nfeatures=7\noutputs=4\nhidden=8\n", w),
                     ERR_OK);
    assert_int_not_equal(relmas_weights_load(path, &arena, &l), ERR_OK);
    assert_non_null(strstr(err_why(), "chip train"));
    assert_int_equal(unlink(path), 0);
    assert_int_not_equal(relmas_weights_load(path, &arena, &l), ERR_OK);
    assert_int_equal(relmas_weights_load("none", &arena, &l), ERR_OK);
    assert_null(l.w);
    assert_int_equal(relmas_weights_load("", &arena, &l), ERR_OK);
    assert_non_null(l.w);
    arena_rewind(&arena, 0);
}

typedef struct Heard {
    uint32_t pairs, starts;
} Heard;

static void hear_pair(void *self, uint32_t task, uint32_t unit, float wait_ns, float fit,
                      const float parts[RELMAS_TERMS]) {
    float sum = 0;
    (void)task;
    (void)unit;
    assert_true(wait_ns >= 0);
    for (uint32_t k = RELMAS_TASK_TERMS; k < RELMAS_TERMS; k++) sum += parts[k];
    assert_true(fabsf(sum - fit) <= 1e-4f * (1 + fabsf(fit)));
    ((Heard *)self)->pairs++;
}

static void hear_verdict(void *self, uint32_t task, uint32_t unit, RelmasDecision v) {
    (void)task;
    (void)unit;
    ((Heard *)self)->starts += v == RELMAS_START;
}

// An explanation decides as the policy does, and its terms add up.
static void test_explained(void **state) {
    (void)state;
    Rng        rng = {9};
    ChipSample s;
    Fixture    d;
    ChipAction a[MAX], b[MAX];
    chip_sample_init(&s, &arena, &rng, 2, 4);
    fixture_open(&d, &s, 3);
    size_t mark = arena.used;
    for (uint32_t i = 0; i < 100; i++) {
        Heard               h = {0};
        RelmasDecisionTrace w = {hear_pair, hear_verdict, &h};
        ChipSampleView x = chip_sample_view(&s, &arena, &rng, (uint32_t)rng_below(&rng, 40), 3);
        uint32_t       n = relmas_explain(d.state, &x.view, &w, a, MAX), starts = 0;
        assert_int_equal(fixture_decide(&d, &x.view, false, b, MAX), n);
        for (uint32_t k = 0; k < n; k++) {
            assert_true(a[k].verb == b[k].verb && a[k].task == b[k].task && a[k].unit == b[k].unit);
            starts += a[k].verb == CHIP_START;
        }
        assert_int_equal(h.starts, starts);
        arena_rewind(&arena, mark);
    }
    arena_rewind(&arena, 0);
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_plans),     cmocka_unit_test(test_rows_are_bounded),
        cmocka_unit_test(test_log2),      cmocka_unit_test(test_prices),
        cmocka_unit_test(test_weights),   cmocka_unit_test(test_preferences),
        cmocka_unit_test(test_explained),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
