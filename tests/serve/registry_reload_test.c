// Versions loaded, replaced and unloaded under load: no request is lost, memory is returned.
#include "tests/serve/registry_fixture.h"

#include <pthread.h>  // the loader and the engine have threads: the thread sanitizer runs this

#include "tests/serve/registry_files.h"
#include "tests/runner.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#elif defined(__has_feature)
#define SANITIZED (__has_feature(address_sanitizer) || __has_feature(thread_sanitizer))
#else
#define SANITIZED 0
#endif

static RegistryFixture g;

static int open_fixture(void **state) {
    (void)state;
    fixture_open(&g);
    return 0;
}

static int close_fixture(void **state) {
    (void)state;
    fixture_close(&g);
    return 0;
}

typedef struct Said {
    uint32_t times, failed;
    char     why[512];
} Said;

static void say_why(void *self, const char *why) {
    Said *s = self;
    s->times++;
    if (why != NULL) (void)snprintf(s->why, sizeof s->why, "%s", why);
    if (why != NULL) s->failed++;
}

static void say_failed(void *self, uint32_t failed) {
    Said *s = self;
    s->times++;
    s->failed += failed;
}

static bool said(RegistryFixture *fixture, void *ctx) {
    (void)fixture;
    return ((Said *)ctx)->times > 0;
}

static void reload(Config *c, uint32_t failed) {
    Said s = {0};
    registry_reload(g.registry, c, say_failed, &s);
    fixture_until(&g, said, &s);
    assert_int_equal(s.times, 1);
    assert_int_equal(s.failed, failed);
}

static double answer(ModelInfo *s) {
    FixtureCall k;
    float       data[2] = {1, 1};
    Tensor      in = matrix(1, 2, data);
    fixture_ask(&g, &k, s, &in);
    assert_int_equal(k.end, LIVE_DONE);
    return k.first[0];
}

static bool is_gone(RegistryFixture *fixture, void *ctx) {
    return registry_count(fixture->registry) == *(uint32_t *)ctx;
}

// The old version answers until the new one is ready, and its last request is answered by it.
static void a_new_version_takes_over(void **state) {
    (void)state;
    FixtureCall k;
    float       data[2] = {1, 1};
    Tensor      in = matrix(1, 2, data);
    uint32_t    one = 1;
    Config      next;
    fixture_model(&g, "m", "1", write_adder(g.dir, "one", 1, 2));
    ConfigModel second = *fixture_model(&g, "m", "2", write_adder(g.dir, "two", 2, 2));
    g.config.n_models = 1;
    next = g.config;
    next.models = &second;
    fixture_start(&g);
    fixture_settle(&g);
    ModelInfo *old = fixture_find(&g, "m", NULL);
    registry_pin(old);
    reload(&next, 0);
    ModelInfo *new = fixture_find(&g, "m", NULL);
    assert_string_equal(new->version, "2");
    assert_int_equal(old->state, MODEL_UNLOADING);
    assert_true(registry_uses(g.registry, &g.config));
    assert_true(answer(new) == 3);
    fixture_ask(&g, &k, old, &in);
    assert_true(k.first[0] == 2);
    registry_release(g.registry, old);
    fixture_until(&g, is_gone, &one);
    assert_null(fixture_find(&g, "m", "1"));
    assert_false(registry_uses(g.registry, &g.config));
}

static void a_new_file_takes_over(void **state) {
    (void)state;
    const char *path = write_adder(g.dir, "m", 1, 2);
    char        hash[65];
    fixture_model(&g, "m", "1", path);
    fixture_start(&g);
    fixture_settle(&g);
    ModelInfo *s = fixture_find(&g, "m", NULL);
    assert_true(answer(s) == 2);
    memcpy(hash, s->sha256, sizeof hash);
    reload(&g.config, 0);
    assert_ptr_equal(fixture_find(&g, "m", NULL), s);
    (void)write_adder(g.dir, "m", 1, 2);  // the same under a new date
    reload(&g.config, 0);
    assert_ptr_equal(fixture_find(&g, "m", NULL), s);
    (void)write_adder(g.dir, "m", 5, 2);
    reload(&g.config, 0);
    fixture_settle(&g);
    s = fixture_find(&g, "m", NULL);
    assert_true(answer(s) == 6);
    assert_string_not_equal(s->sha256, hash);
    assert_int_equal(registry_count(g.registry), 1);
}

static void what_fails_keeps_the_old(void **state) {
    (void)state;
    const char *path = write_adder(g.dir, "m", 1, 2);
    Config      next;
    fixture_model(&g, "m", "1", path);
    ConfigModel second = *fixture_model(&g, "m", "2", "/nowhere/at/all.onnx");
    g.config.n_models = 1;
    fixture_start(&g);
    fixture_settle(&g);
    ModelInfo *s = fixture_find(&g, "m", NULL);
    write_bytes(path, "no model", 8);
    reload(&g.config, 1);
    assert_ptr_equal(fixture_find(&g, "m", NULL), s);
    assert_int_equal(s->state, MODEL_READY);
    assert_non_null(strstr(s->reason, "newer"));
    assert_true(answer(s) == 2);
    next = g.config;
    next.models = &second;
    reload(&next, 1);
    assert_ptr_equal(fixture_find(&g, "m", NULL), s);
    assert_true(answer(s) == 2);
    assert_int_equal(fixture_find(&g, "m", "2")->state, MODEL_UNAVAILABLE);
    (void)write_adder(g.dir, "m", 7, 2);
    reload(&g.config, 0);
    fixture_settle(&g);
    assert_true(answer(fixture_find(&g, "m", NULL)) == 8);
    assert_string_equal(fixture_find(&g, "m", NULL)->reason, "");
    assert_null(fixture_find(&g, "m", "2"));
}

static void many_loads_are_one(void **state) {
    (void)state;
    Said       s[100] = {0}, none = {0};
    ModelInfo *one = NULL;
    fixture_model(&g, "m", "1", write_adder(g.dir, "m", 1, 2));
    fixture_start(&g);
    for (int i = 0; i < 100; i++) registry_load(g.registry, "m", NULL, say_why, &s[i]);
    one = fixture_find(&g, "m", NULL);
    fixture_settle(&g);
    for (int i = 0; i < 100; i++) assert_int_equal(s[i].times, 1);
    for (int i = 0; i < 100; i++) assert_int_equal(s[i].failed, 0);
    assert_ptr_equal(fixture_find(&g, "m", NULL), one);
    registry_load(g.registry, "nobody", NULL, say_why, &none);
    assert_int_equal(none.failed, 1);
}

static void unload_and_load_in_any_order(void **state) {
    (void)state;
    Said        s[5] = {0};
    FixtureCall k;
    float       data[2] = {1, 1};
    Tensor      in = matrix(1, 2, data);
    fixture_model(&g, "m", "1", write_adder(g.dir, "m", 1, 2));
    fixture_start(&g);
    registry_unload(g.registry, "m", say_why, &s[0]);  // while it is loaded
    fixture_settle(&g);
    assert_int_equal(s[0].times, 1);
    assert_int_equal(fixture_find(&g, "m", NULL)->state, MODEL_UNAVAILABLE);
    assert_true(registry_ready(g.registry));
    registry_load(g.registry, "m", NULL, say_why, &s[1]);
    fixture_until(&g, said, &s[1]);
    ModelInfo *served = fixture_find(&g, "m", NULL);
    assert_int_equal(served->state, MODEL_READY);
    registry_pin(served);
    registry_unload(g.registry, "m", say_why, &s[2]);  // while it is used
    assert_int_equal(served->state, MODEL_UNLOADING);
    registry_load(g.registry, "m", NULL, say_why, &s[3]);  // while it is unloaded
    fixture_until(&g, said, &s[3]);
    assert_int_equal(s[2].times, 0);
    fixture_ask(&g, &k, served, &in);
    assert_true(k.first[0] == 2);
    assert_true(answer(fixture_find(&g, "m", NULL)) == 2);
    registry_release(g.registry, served);
    fixture_until(&g, said, &s[2]);
    assert_int_equal(registry_count(g.registry), 1);
    registry_unload(g.registry, "nobody", say_why, &s[4]);
    assert_int_equal(s[4].failed, 1);
}

// Weights in a file of their own count as well, though the model's file stays the same.
static void weights_beside_the_model(void **state) {
    (void)state;
    const int64_t dims[] = {1, 2}, one = 1;
    char          beside[96];
    float         add = 10;
    Msg           graph = {0}, a = tensor_head("a", 1, 1, &one), place = {0};
    msg_text(&place, 1, "location");
    msg_text(&place, 2, "weights");
    msg_sub(&a, 13, place);
    msg_int(&a, 14, 1);
    msg_sub(&graph, 1, node_of("Add", "x a", "y"));
    msg_sub(&graph, 5, a);
    msg_sub(&graph, 11, info_of("x", 1, 2, dims));
    msg_sub(&graph, 12, info_of("y", 1, 2, dims));
    (void)snprintf(beside, sizeof beside, "%s/weights", g.dir);
    write_bytes(beside, &add, sizeof add);
    fixture_model(&g, "m", "1", write_model(g.dir, "m", model_of(graph, 13)));
    fixture_start(&g);
    fixture_settle(&g);
    assert_true(answer(fixture_find(&g, "m", NULL)) == 11);
    add = 20;
    write_bytes(beside, &add, sizeof add);
    reload(&g.config, 0);
    fixture_settle(&g);
    assert_true(answer(fixture_find(&g, "m", NULL)) == 21);
}

static void a_load_ends_quarantine(void **state) {
    (void)state;
    Said s = {0};
    g.config.serve.quarantine = 1;
    g.config.serve.quarantine_s = 0;
    fixture_model(&g, "m", "1", write_adder(g.dir, "m", 1, 2));
    fixture_start(&g);
    fixture_settle(&g);
    ModelInfo *m = fixture_find(&g, "m", NULL);
    registry_note_result(g.registry, m, MODEL_FAILED);
    assert_true(m->quarantined > clock_now(clock_monotonic()));
    registry_load(g.registry, "m", NULL, say_why, &s);
    fixture_until(&g, said, &s);
    assert_int_equal(m->quarantined, 0);
}

static size_t resident(void) {
    unsigned long long pages = 0, mine = 0;
    FILE              *f = fopen("/proc/self/statm", "re");
    assert_non_null(f);
    assert_int_equal(fscanf(f, "%llu %llu", &pages, &mine), 2);
    (void)fclose(f);
    return (size_t)mine * (size_t)sysconf(_SC_PAGESIZE);
}

static void once(const char *name) {
    Said s = {0}, t = {0};
    registry_load(g.registry, name, NULL, say_why, &s);
    fixture_until(&g, said, &s);
    assert_int_equal(s.failed, 0);
    registry_unload(g.registry, name, say_why, &t);
    fixture_until(&g, said, &t);
    assert_int_equal(t.failed, 0);
}

static void unloading_gives_memory_back(void **state) {
    (void)state;
    enum { TIMES = SANITIZED ? 5 : 50, SOME = 4 << 20 };
    fixture_model(&g, "m", "1", "zoo:squeezenet1_1")->set.warmup = 1;
    fixture_start(&g);
    fixture_settle(&g);
    ModelInfo *s = fixture_find(&g, "m", NULL);
    assert_true(s->memory_bytes > (5 << 20));
    size_t loaded = resident();
    once("m");
    size_t before = resident();
    for (int i = 1; i < TIMES; i++) once("m");
    size_t after = resident();
    if (SANITIZED) skip();  // they keep what was freed
    if (after > before + SOME) fail_msg("%zu bytes became %zu", before, after);
    assert_true(loaded > before + SOME);
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_new_version_takes_over, open_fixture, close_fixture),
        cmocka_unit_test_setup_teardown(a_new_file_takes_over, open_fixture, close_fixture),
        cmocka_unit_test_setup_teardown(what_fails_keeps_the_old, open_fixture, close_fixture),
        cmocka_unit_test_setup_teardown(many_loads_are_one, open_fixture, close_fixture),
        cmocka_unit_test_setup_teardown(unload_and_load_in_any_order, open_fixture, close_fixture),
        cmocka_unit_test_setup_teardown(weights_beside_the_model, open_fixture, close_fixture),
        cmocka_unit_test_setup_teardown(a_load_ends_quarantine, open_fixture, close_fixture),
        cmocka_unit_test_setup_teardown(unloading_gives_memory_back, open_fixture, close_fixture),
    };
    return cmocka_run_group_tests(tests, fixture_begin, fixture_end);
}
