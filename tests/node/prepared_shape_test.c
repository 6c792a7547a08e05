// A model with open dimensions: one set of shapes is measured, times of others are scaled, and a
// tenant of the engine runs programs for all smaller sizes.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "node/node_model.h"
#include "node/prepared_shape.h"
#include "node/scaled_times.h"
#include "tests/compile/open_model.h"
#include "tests/runner.h"

enum { LARGEST = 48, PAUSE_US = 200 };

static Host          host;
static Source        source;
static PreparedModel base, large;

static void check(Err e) {
    if (e != ERR_OK) fail_msg("%s", err_why());
}

static Tensor ids(int64_t length) { return tensor_of(DT_I64, 2, (int64_t[]){1, length}, NULL); }

static int open_all(void **state) {
    (void)state;
    Tensor         shape = ids(LARGEST);
    PrepareOptions o = {.runs = 2};
    check(host_open(&host, 2, "/dev/null/none"));
    source = (Source){.open = true};
    check(open_model_make(&source.model, open_encoder));
    check(packed_weights_create(&source.packed, &source.model.arena));
    check(prepared_model_make(&base, &source, &host, &o));
    o = (PrepareOptions){.shapes = &shape, .like = &base};
    check(prepared_model_make(&large, &source, &host, &o));
    return 0;
}

static int close_all(void **state) {
    (void)state;
    prepared_model_finish(&large);
    prepared_model_finish(&base);
    source_finish(&source);
    host_close(&host);
    return 0;
}

static void the_same_shapes_have_the_same_times(void **state) {
    (void)state;
    PreparedModel  same;
    Tensor         shape = ids(1);
    PrepareOptions o = {.shapes = &shape, .like = &base};
    check(prepared_model_make(&same, &source, &host, &o));
    assert_int_equal(same.table.n_layers, base.table.n_layers);
    for (uint32_t l = 0; l < base.table.n_layers; l++)
        for (uint32_t k = 0; k < base.table.n_counts; k++) {
            double was = (double)node_time(&base.table, l, 0, k, 0);
            assert_true(fabs((double)node_time(&same.table, l, 0, k, 0) - was) <= 2 + 1e-3 * was);
        }
    prepared_model_finish(&same);
}

static void larger_shapes_take_longer(void **state) {
    (void)state;
    assert_false(large.measured);
    assert_true(program_same_layers(&large.program, &base.program));
    for (uint32_t l = 0; l < base.table.n_layers; l++)
        assert_true(node_time(&large.table, l, 0, 0, 0) >= node_time(&base.table, l, 0, 0, 0));
    assert_true(large.solo_ns[0] > base.solo_ns[0]);
}

static void larger_shapes_do_not_fit(void **state) {
    (void)state;
    PreparedShape s;
    bool          fits = true;
    Tensor        shape = ids(LARGEST + 1), bad = tensor_of(DT_F32, 2, (int64_t[]){1, 4}, NULL);
    check(prepared_shape_make(&s, &large, &shape, NULL, &fits));
    assert_false(fits);
    assert_int_equal(prepared_shape_make(&s, &large, &bad, NULL, &fits), ERR_INVALID);
    assert_false(fits);
}

static uint32_t start_first(void *state, const NodeView *v, NodeAction *out, uint32_t max) {
    (void)state, (void)max;
    if (v->n_waiting == 0 || v->n_free == 0) return 0;
    const NodeRequest *r = &v->requests[v->waiting[0]];
    const NodeModel   *m = v->setup->tenants[r->tenant].model;
    out[0] = (NodeAction){.verb = NODE_START,
                          .request = v->waiting[0],
                          .n_layers = m->n_layers - r->next,
                          .wanted = v->n_free,
                          .cores = v->free,
                          .versions = node_best_versions(m, 0, v->level)};
    return 1;
}

static const NodePolicy policy = {.name = "first", .decide = start_first};

typedef struct Asked {
    Tensor           in, want;
    _Atomic uint32_t released;
    LiveEnd          end;
    double           apart;
} Asked;

static void done(void *self, const EngineResult *a) {
    Asked *k = self;
    k->end = a->end;
    if (a->outputs == NULL || !tensor_same_shape(&a->outputs[0], &k->want)) return;
    const float *x = a->outputs[0].data, *y = k->want.data;
    k->apart = 0;
    for (int64_t i = 0; i < tensor_count(&k->want); i++)
        k->apart = fmax(k->apart, fabs((double)x[i] - (double)y[i]));
}

static void released(void *self) { atomic_store(&((Asked *)self)->released, 1); }

static void ask(NodeLive *l, uint32_t tenant, PreparedShape *s, int64_t length) {
    Asked         k = {.in = ids(length), .apart = INFINITY};
    EngineRequest q = {.tenant = tenant,
                       .arrival = clock_monotonic_ns(),
                       .on_miss = ON_MISS_SERVE_LATE,
                       .inputs = &k.in,
                       .program = &s->program,
                       .done = done,
                       .released = released,
                       .self = &k};
    Arena         a;
    check(arena_init_growing(&a, 1 << 20, (size_t)1 << 32));
    check(tensor_alloc(&k.in, &a));
    for (int64_t i = 0; i < length; i++) ((int64_t *)k.in.data)[i] = i % OPEN_WORDS;
    check(interp_run(s->shaped, &k.in, &(InterpLimits){0}, &a, &k.want));
    q.deadline = q.arrival + INT64_C(1000000000);
    assert_true(node_live_submit(l, &q));
    while (atomic_load(&k.released) == 0) (void)usleep(PAUSE_US);
    assert_int_equal(k.end, LIVE_DONE);
    if (!(k.apart < 1e-3)) fail_msg("length %lld is %g apart", (long long)length, k.apart);
    arena_finish(&a);
}

static void a_tenant_runs_all_smaller_sizes(void **state) {
    (void)state;
    NodeLive  *l = NULL;
    uint32_t   tenant = 0;
    Arena      scratch;
    LiveTenant t = prepared_model_tenant(&large, "open", INT64_C(1000000000), 1);
    t.haste = true;
    assert_null(t.inputs);
    check(arena_init_growing(&scratch, 1 << 23, (size_t)1 << 37));
    check(node_live_create(&l, &(NodeLiveOptions){.cores = 2}));
    check(node_live_join(l, &t, &tenant));
    check(node_live_set_policy(l, &policy, NULL, &host.machine));
    for (int64_t n = 2; n <= LARGEST; n++) {
        PreparedShape s;
        bool          fits = false;
        Tensor        shape = ids(n);
        check(prepared_shape_make(&s, &large, &shape, &scratch, &fits));
        if (n > LARGEST / 2) assert_true(fits);
        if (!fits) continue;
        ask(l, tenant, &s, n);
        prepared_shape_finish(&s);
    }
    node_live_leave(l, tenant);
    node_live_destroy(l);
    arena_finish(&scratch);
}

// At most half as much again as is needed, and few sizes.
static void sizes_are_rounded_up(void **state) {
    (void)state;
    int64_t  last = 0;
    uint32_t sizes = 0;
    for (int64_t n = 1; n <= 128; n++) {
        int64_t rounded = prepared_shape_round(n);
        assert_true(rounded >= n && rounded < n + (n + 1) / 2 + 1 && rounded >= last);
        assert_int_equal(prepared_shape_round(rounded), rounded);
        sizes += rounded != last;
        last = rounded;
    }
    assert_int_equal(sizes, 14);
    assert_int_equal(prepared_shape_round(0), 0);
    assert_int_equal(prepared_shape_round(INT64_MAX), INT64_MAX);
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_same_shapes_have_the_same_times),
        cmocka_unit_test(larger_shapes_take_longer),
        cmocka_unit_test(larger_shapes_do_not_fit),
        cmocka_unit_test(a_tenant_runs_all_smaller_sizes),
        cmocka_unit_test(sizes_are_rounded_up),
    };
    return cmocka_run_group_tests(tests, open_all, close_all);
}
