// Faster kernel versions are searched beside serving, and replace those in service.
#include "tests/serve/registry_fixture.h"

#include <math.h>
#include <pthread.h>
#include <unistd.h>

#include "base/file.h"
#include "compile/interp/interp.h"
#include "node/version_search.h"
#include "serve/models/registry_int.h"
#include "tests/runner.h"
#include "tests/serve/registry_files.h"

enum { CALLS = 4, OUTPUTS = 4096, ENDLESS_S = 3600 };

static RegistryFixture g;
static ModelTuned      last_tuned;
static uint32_t        n_tuned;
static char            last_kept[512];
static const char     *last_name;

static int open_fixture(void **state) {
    (void)state;
    fixture_open(&g);
    n_tuned = 0;
    last_tuned = (ModelTuned){0};
    return 0;
}

static int close_fixture(void **state) {
    (void)state;
    fixture_close(&g);
    return 0;
}

static void note_tuned(void *self, const ModelInfo *m, const ModelTuned *t) {
    (void)self;
    assert_int_equal(m->state, MODEL_READY);
    last_tuned = *t;
    last_name = m->name;
    (void)snprintf(last_kept, sizeof last_kept, "%s", t->kept != NULL ? t->kept : "");
    n_tuned++;
}

static void start(const char *tune, double seconds) {
    g.config.serve.tune = tune;
    g.config.serve.tune_s = seconds;
    check(registry_create(&g.registry, &(ModelRegistryOptions){.loop = g.loop,
                                                               .engine = g.engine,
                                                               .host = &fixture_host,
                                                               .config = &g.config,
                                                               .policy = &fixture_policy,
                                                               .changed = fixture_changed,
                                                               .tuned = note_tuned,
                                                               .self = &g}));
    fixture_settle(&g);
}

static void empty_store(void) {
    profile_store_close(&fixture_host.store);
    assert_int_equal(truncate(fixture_store, 0), 0);
    profile_store_open(&fixture_host.store, fixture_store, &fixture_host.cpu, fixture_host.isa);
    assert_non_null(fixture_host.store.db);
}

static Program *program_of(ModelInfo *s) {
    return &model_version_of(s)->shapes[0].prepared.program;
}

// The store's only version of a layer: the last that its kernel offers.
static void store_last_version(const Program *p, const Step *t) {
    static Version all[PROFILE_CANDIDATES];
    uint32_t       n = t->kind->versions(t, &p->caches, all, PROFILE_CANDIDATES);
    Candidate      c = {.version = all[n - 1], .tasks = 1, .time_ns = {1}};
    LayerProfile   f = {
          .n_counts = 1, .counts = {1}, .n_kept = 1, .finished = true, .n = 1, .candidates = &c};
    assert_true(profile_store_put(&fixture_host.store, t->key, &f));
}

static uint32_t store_last_versions(const Program *p) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < p->n_steps; i++) {
        if (p->steps[i].key == NULL) continue;
        store_last_version(p, &p->steps[i]);
        n++;
    }
    return n;
}

static uint32_t count_other_versions(const Program *p, const Version *before) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < p->n_steps; i++)
        n += p->steps[i].key != NULL && !version_same(&p->steps[i].versions[0], &before[i]);
    return n;
}

// The output of the reference kernels for inputs of a model's own.
typedef struct Reference {
    Arena    arena;
    Source   source;
    Tensor  *inputs, out[8];
    uint32_t bad, right;
} Reference;

static void make_reference(Reference *r, const char *what, ModelInfo *s) {
    ShapedGraph *shaped = NULL;
    *r = (Reference){0};
    check(arena_init_growing(&r->arena, 1 << 20, (size_t)1 << 34));
    check(source_read(&r->source, what, &(SourceOptions){0}));
    uint32_t n = r->source.model.graph->n_inputs;
    r->inputs = arena_new(&r->arena, Tensor, n);
    for (uint32_t i = 0; i < n; i++) {
        r->inputs[i] = model_version_of(s)->shapes[0].shapes[i];
        check(tensor_alloc(&r->inputs[i], &r->arena));
        for (int64_t k = 0; r->inputs[i].dtype == DT_F32 && k < tensor_count(&r->inputs[i]); k++)
            ((float *)r->inputs[i].data)[k] = (float)(k % 7) / 7 - 0.4f;
    }
    check(shaped_graph_make(r->source.model.graph, r->inputs, interp_eval, &r->arena, &shaped));
    check(interp_run(shaped, r->inputs, &(InterpLimits){0}, &r->arena, r->out));
}

static void drop_reference(Reference *r) {
    source_finish(&r->source);
    arena_finish(&r->arena);
}

// A request that is sent again as soon as it is answered, until told to end.
typedef struct Stream {
    Reference       *of;
    ModelInfo       *s;
    LoopPost         post;
    ServedShape      shape;
    bool             over, ended;
    _Atomic uint32_t good;
} Stream;

static void stream_answer(void *self, const EngineResult *a) {
    Stream      *k = self;
    const Tensor want = k->of->out[0];
    bool         good = a->end == LIVE_DONE && tensor_count(&a->outputs[0]) == tensor_count(&want);
    for (int64_t i = 0; good && i < tensor_count(&want); i++) {
        float x = ((const float *)a->outputs[0].data)[i], y = ((const float *)want.data)[i];
        good = fabsf(x - y) <= 1e-3f * (1 + fabsf(y));
    }
    atomic_store(&k->good, good ? 1 : 0);
}

static void stream_released(void *self) { loop_post(g.loop, &((Stream *)self)->post); }

static void stream_send(Stream *k) {
    TimeNs t = clock_now(clock_monotonic());
    k->s = fixture_find(&g, "kws", NULL);
    assert_int_equal(k->s->state, MODEL_READY);
    registry_pin(k->s);
    assert_int_equal(registry_find_shape(g.registry, k->s, k->of->inputs, 0, &k->post, &k->shape),
                     SHAPE_READY);
    assert_true(node_live_submit(g.engine, &(EngineRequest){.tenant = k->shape.tenant,
                                                            .program = k->shape.program,
                                                            .arrival = t,
                                                            .deadline = t + 1000000000,
                                                            .on_miss = ON_MISS_SERVE_LATE,
                                                            .inputs = k->of->inputs,
                                                            .done = stream_answer,
                                                            .released = stream_released,
                                                            .self = k}));
}

static void stream_next(void *self) {
    Stream *k = self;
    registry_release_shape(g.registry, k->s, &k->shape);
    registry_release(g.registry, k->s);
    k->of->right += atomic_load(&k->good);
    k->of->bad += 1 - atomic_load(&k->good);
    if (k->over)
        k->ended = true;
    else
        stream_send(k);
}

static bool streams_ended(RegistryFixture *f, void *ctx) {
    const Stream *all = ctx;
    (void)f;
    for (uint32_t i = 0; i < CALLS; i++)
        if (!all[i].ended) return false;
    return true;
}

static bool was_tuned(RegistryFixture *f, void *ctx) {
    (void)f;
    return n_tuned == *(const uint32_t *)ctx;
}

static void until_tuned(uint32_t n) { fixture_until(&g, was_tuned, &n); }

// Requests in flight while versions are replaced get the answers of the reference kernels.
static void requests_while_versions_are_replaced(void **state) {
    (void)state;
    static Version before[4096];
    Reference      r;
    Stream         all[CALLS];
    empty_store();
    fixture_model(&g, "kws", "1", "zoo:lstm_kws");
    start("off", 0);
    ModelInfo     *s = fixture_find(&g, "kws", NULL);
    TimeNs         target = s->target_ns;
    const Program *p = program_of(s);
    assert_true(p->untuned > 0 && p->n_steps <= 4096);
    for (uint32_t i = 0; i < p->n_steps; i++) before[i] = p->steps[i].versions[0];
    uint32_t stored = store_last_versions(p);
    make_reference(&r, "zoo:lstm_kws", s);
    for (uint32_t i = 0; i < CALLS; i++) {
        all[i] = (Stream){.of = &r, .post = {.run = stream_next, .self = &all[i]}};
        stream_send(&all[i]);
    }
    check(model_version_load_tuned(model_version_of(s), 1));
    assert_true(s->tuning);
    until_tuned(1);
    ModelInfo *now = fixture_find(&g, "kws", NULL);
    for (uint32_t i = 0; i < CALLS; i++) all[i].over = true;
    fixture_until(&g, streams_ended, all);
    assert_true(now != s && !now->tuning && now->target_ns == target);
    assert_true(last_tuned.kept == NULL && last_tuned.before_ms > 0 && last_tuned.after_ms > 0);
    assert_int_equal(program_of(now)->untuned, 0);
    assert_true(stored > 0 && count_other_versions(program_of(now), before) > 0);
    assert_true(r.right >= CALLS && r.bad == 0);
    drop_reference(&r);
}

static bool no_search(RegistryFixture *f, void *ctx) {
    (void)ctx;
    return !f->registry->tuning.busy;
}

// The next start finds all layers in the store, and there is nothing to search.
static void a_model_is_searched_once(void **state) {
    (void)state;
    empty_store();
    fixture_model(&g, "kws", "1", "zoo:lstm_kws");
    start("background", 1);
    assert_true(program_of(fixture_find(&g, "kws", NULL))->untuned > 0);
    until_tuned(1);
    assert_false(last_tuned.failed);
    fixture_close(&g);
    fixture_open(&g);
    fixture_model(&g, "kws", "1", "zoo:lstm_kws");
    start("background", 1);
    assert_int_equal(program_of(fixture_find(&g, "kws", NULL))->untuned, 0);
    assert_false(g.registry->tuning.busy);
    assert_false(fixture_find(&g, "kws", NULL)->tuning);
}

static void note_unloaded(void *self, const char *why) {
    assert_null(why);
    *(bool *)self = true;
}

static bool is_set(RegistryFixture *f, void *ctx) {
    (void)f;
    return *(bool *)ctx;
}

// Unloading does not wait for the search, which then goes on with the next model.
static void unloading_ends_the_search(void **state) {
    (void)state;
    bool unloaded = false;
    empty_store();
    fixture_model(&g, "a", "1", "zoo:lstm_kws");
    fixture_model(&g, "b", "1", "zoo:lstm_kws");
    start("background", ENDLESS_S);
    assert_true(fixture_find(&g, "a", NULL)->tuning);
    registry_unload(g.registry, "a", note_unloaded, &unloaded);
    assert_null(g.registry->tuning.of);
    fixture_until(&g, is_set, &unloaded);
    until_tuned(1);
    assert_string_equal(last_name, "b");
}

// The version that was to replace it is dropped with it.
static void unloading_while_versions_are_compiled(void **state) {
    (void)state;
    bool unloaded = false;
    fixture_model(&g, "kws", "1", "zoo:lstm_kws");
    start("off", 0);
    ModelInfo *s = fixture_find(&g, "kws", NULL);
    check(model_version_load_tuned(model_version_of(s), 1));
    registry_unload(g.registry, "kws", note_unloaded, &unloaded);
    fixture_until(&g, is_set, &unloaded);
    assert_int_equal(fixture_find(&g, "kws", NULL)->state, MODEL_UNAVAILABLE);
    assert_int_equal(n_tuned, 0);
}

static void draining_ends_the_search(void **state) {
    (void)state;
    empty_store();
    fixture_model(&g, "kws", "1", "zoo:lstm_kws");
    start("background", ENDLESS_S);
    assert_true(fixture_find(&g, "kws", NULL)->tuning);
    registry_stop_tuning(g.registry);
    assert_false(fixture_find(&g, "kws", NULL)->tuning);
    fixture_until(&g, no_search, NULL);
    model_tuning_next(g.registry);
    assert_false(g.registry->tuning.busy);
    assert_int_equal(n_tuned, 0);
}

// A search is not for another file: the version in service stays.
static void a_changed_file_is_not_taken(void **state) {
    (void)state;
    FixtureCall k;
    float       data[2] = {1, 2};
    Tensor      in = matrix(1, 2, data);
    empty_store();
    fixture_model(&g, "adder", "1", write_adder(g.dir, "adder", 10, 2));
    start("off", 0);
    ModelInfo *s = fixture_find(&g, "adder", NULL);
    (void)write_adder(g.dir, "adder", 1000, 2);
    check(model_version_load_tuned(model_version_of(s), 1));
    until_tuned(1);
    assert_true(last_tuned.failed);
    assert_non_null(strstr(last_kept, "has changed"));
    assert_ptr_equal(fixture_find(&g, "adder", NULL), s);
    assert_false(s->tuning);
    assert_string_equal(s->reason, "");
    fixture_ask(&g, &k, s, &in);
    assert_true(k.first[0] == 11);
}

// A search needs idle cores; one that is told to stop leaves finished layers in the store.
static void a_search_that_is_stopped(void **state) {
    (void)state;
    VersionGain gain;
    WorkFlag    stop = WORK_STOP;
    empty_store();
    fixture_model(&g, "kws", "1", "zoo:lstm_kws");
    start("off", 0);
    const ModelVersion *mv = model_version_of(fixture_find(&g, "kws", NULL));
    VersionSearch       search = {.what = "zoo:lstm_kws",
                                  .stamp = &mv->stamp,
                                  .shapes = mv->shapes[0].shapes,
                                  .host = &fixture_host,
                                  .engine = g.engine,
                                  .seconds = ENDLESS_S,
                                  .stop = &stop};
    while (node_live_idle(g.engine) < 2) (void)usleep(1000);  // the end of warming up
    assert_int_equal(version_search_run(&search, &gain), ERR_LIMIT);
    search.stamp = &(SourceStamp){.bytes = 1};
    atomic_store(&stop, WORK_GO);
    assert_int_equal(version_search_run(&search, &gain), ERR_INVALID);
}

#define T(f) cmocka_unit_test_setup_teardown(f, open_fixture, close_fixture)

TEST_MAIN() {
    const struct CMUnitTest tests[] = {
        T(requests_while_versions_are_replaced),
        T(a_model_is_searched_once),
        T(unloading_ends_the_search),
        T(unloading_while_versions_are_compiled),
        T(draining_ends_the_search),
        T(a_changed_file_is_not_taken),
        T(a_search_that_is_stopped),
    };
    return cmocka_run_group_tests(tests, fixture_begin, fixture_end);
}
