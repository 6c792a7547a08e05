#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "base/coroutine.h"
#include "base/json.h"
#include "base/rng.h"
#include "base/text.h"
#include "tests/serve/exposition.h"
#include "serve/observe/metrics.h"
#include "tests/runner.h"

enum { MS = 1000000 };

static Arena arena;

static int setup(void **state) {
    (void)state;
    return arena_init(&arena, 256 << 20) != ERR_OK;
}

static int teardown(void **state) {
    (void)state;
    arena_finish(&arena);
    return 0;
}

static Receipt receipt(uint32_t slot, TimeNs took) {
    return (Receipt){.slot = slot,
                     .model = "digits",
                     .version = "1",
                     .batch = 2,
                     .met = took <= 20 * MS,
                     .arrived = 5000 * (TimeNs)MS,
                     .decoded = 5000 * (TimeNs)MS + 1000,
                     .submitted = 5000 * (TimeNs)MS + 2000,
                     .finished = 5000 * (TimeNs)MS + took - 500,
                     .answered = 5000 * (TimeNs)MS + took,
                     .deadline = 5020 * (TimeNs)MS,
                     .timing = {.queue_ns = took / 2 + 2000,
                                .compute_ns = took / 4,
                                .paused_ns = took / 8,
                                .core_ns = took / 2,
                                .blocks = 2,
                                .pauses = 1}};
}

static Metrics *fresh(bool triton) {
    Metrics *m;
    arena_rewind(&arena, 0);
    assert_int_equal(metrics_create(&m, triton), ERR_OK);
    metrics_register(m, 0, "digits", "1", 20 * MS, 99);
    return m;
}

static void look(const Metrics *m, const MetricsNow *now, Exposition *e) {
    Str text;
    assert_int_equal(metrics_text(m, now, &arena, &text), ERR_OK);
    exposition_read(e, text, &arena);
    assert_string_equal(e->fault, "");
}

static void test_counts(void **state) {
    (void)state;
    Metrics   *m = fresh(true);
    Exposition e;
    metrics_tuned(m, 0);
    for (int i = 0; i < 90; i++) {
        Receipt r = receipt(0, 10 * MS);
        metrics_note(m, &r);
    }
    for (int i = 0; i < 10; i++) {
        Receipt r = receipt(0, 31 * MS);
        r.timing.degraded = i < 3;
        r.timing.yields = 2;
        r.timing.demotions = i < 4;
        metrics_note(m, &r);
    }
    LiveTenantStatus tenants[3] = {{.cores = 9}, {.cores = 2, .waiting = 5}, {.cores = 1}};
    LiveStatus       live = {
              .cores = 4, .budget = 3, .busy = 2, .demoted = 6, .tenants = tenants, .n_tenants = 3};
    MetricsNow now = {
        .live = &live, .names = {"http"}, .listeners = {{.open = 7}}, .open_requests = 3};
    metrics_tenant(m, 1, 0);
    metrics_tenant(m, 2, 0);
    look(m, &now, &e);
    const char *digits = "model=\"digits\"";
    assert_float_equal(
        exposition_value(&e, "cotenant_deadline_total", "model=\"digits\",outcome=\"met\""), 90, 0);
    assert_float_equal(
        exposition_value(&e, "cotenant_deadline_total", "model=\"digits\",outcome=\"missed\""), 10,
        0);
    assert_float_equal(
        exposition_value(&e, "cotenant_misses_total", "model=\"digits\",cause=\"queueing\""), 10,
        0);
    assert_float_equal(exposition_value(&e, "cotenant_request_duration_seconds_bucket",
                                        "model=\"digits\",le=\"0.01\""),
                       90, 0);
    assert_float_equal(exposition_value(&e, "cotenant_request_duration_seconds_bucket",
                                        "model=\"digits\",le=\"0.03\""),
                       90, 0);
    assert_float_equal(exposition_value(&e, "cotenant_request_duration_seconds_bucket",
                                        "model=\"digits\",le=\"0.04\""),
                       100, 0);
    assert_float_equal(exposition_value(&e, "cotenant_request_duration_seconds_sum", digits), 1.21,
                       1e-9);
    assert_float_equal(exposition_value(&e, "cotenant_preemptions_total", digits), 100, 0);
    assert_float_equal(exposition_value(&e, "cotenant_model_tuned_total", digits), 1, 0);
    assert_float_equal(exposition_value(&e, "cotenant_model_tuning", digits), 0, 0);
    assert_float_equal(exposition_value(&e, "cotenant_degraded_total", digits), 3, 0);
    assert_float_equal(exposition_value(&e, "cotenant_yields_total", digits), 20, 0);
    assert_float_equal(exposition_value(&e, "cotenant_demotions_total", digits), 4, 0);
    assert_float_equal(exposition_value(&e, "cotenant_demoted", ""), 6, 0);
    assert_float_equal(exposition_value(&e, "cotenant_cores_allocated", digits), 3, 0);
    assert_float_equal(exposition_value(&e, "cotenant_queue_length", digits), 5, 0);
    assert_float_equal(exposition_value(&e, "cotenant_hit_ratio", digits), 0.9, 1e-12);
    assert_float_equal(exposition_value(&e, "cotenant_target_attained", digits), 0, 0);
    assert_float_equal(exposition_value(&e, "cotenant_cores", "state=\"busy\""), 2, 0);
    assert_float_equal(exposition_value(&e, "cotenant_connections", "listener=\"http\""), 7, 0);
    assert_float_equal(exposition_value(&e, "nv_inference_count", "model=\"digits\",version=\"1\""),
                       200, 0);
    assert_float_equal(
        exposition_value(&e, "nv_inference_queue_duration_us", "model=\"digits\",version=\"1\""),
        605000, 0);
    assert_true(exposition_value(&e, "process_resident_memory_bytes", "") > 1e5);
    assert_true(exposition_value(&e, "process_open_fds", "") >= 3);
    metrics_destroy(m);
}

// Whatever comes in whatever order, every text is well formed and counts only grow.
static void test_any_traffic(void **state) {
    (void)state;
    Metrics   *m = fresh(true);
    Rng        rng = {3};
    MetricsNow now = {0};
    Exposition before = {0}, after;
    metrics_register(m, 1, "quote\"back\\slash\nline\x01\xff", "v\"2", 0, 50);
    metrics_register(m, 700, "far", "1", 1, 100);
    look(m, &now, &before);
    for (int round = 0; round < 12; round++) {
        for (int i = 0; i < 200; i++) {
            static const uint32_t seats[] = {0, 1, 700, 5, REGISTRY_SLOTS, UINT32_MAX};
            Receipt r = receipt(seats[rng_below(&rng, 6)], (TimeNs)rng_below(&rng, 200 * MS));
            r.end = (ReceiptEnd)rng_below(&rng, RECEIPT_ENDS);
            r.batch = (uint32_t)rng_below(&rng, 20);
            r.timing.late_cause = (uint32_t)rng_below(&rng, 7);
            if (rng_below(&rng, 4) == 0) r.version = "never seen";
            if (rng_below(&rng, 4) == 0) r.submitted = r.finished = 0;
            if (rng_below(&rng, 4) == 0) r.deadline = 0;
            metrics_note(m, &r);
        }
        look(m, &now, &after);
        assert_null(exposition_shrunk(&before, &after));
        before = after;
    }
    metrics_destroy(m);
}

static void test_strangers_get_no_labels(void **state) {
    (void)state;
    Metrics   *m = fresh(false);
    MetricsNow now = {0};
    Exposition before, after;
    look(m, &now, &before);
    for (uint32_t i = 0; i < 1000; i++) {
        char    name[32];
        Receipt r = receipt(i % 2 == 0 ? UINT32_MAX : i + 1, MS);
        (void)snprintf(name, sizeof name, "stranger%u", i);
        r.model = r.version = name;
        r.end = RECEIPT_UNKNOWN;
        metrics_note(m, &r);
    }
    look(m, &now, &after);
    assert_int_equal(before.n, after.n);
    assert_float_equal(
        exposition_value(&after, "cotenant_unmatched_requests_total", "end=\"not_found\""), 1000,
        0);
    metrics_destroy(m);
}

static void test_target_moves(void **state) {
    (void)state;
    Metrics   *m = fresh(false);
    MetricsNow now = {0};
    Exposition e;
    Receipt    r = receipt(0, 10 * MS);
    metrics_note(m, &r);
    metrics_register(m, 0, "digits", "2", 20 * MS, 99);  // the same target: goes on
    look(m, &now, &e);
    const char *count = "cotenant_request_duration_seconds_count", *digits = "model=\"digits\"";
    assert_float_equal(exposition_value(&e, count, digits), 1, 0);
    metrics_register(m, 0, "digits", "2", 40 * MS, 99);
    look(m, &now, &e);
    assert_float_equal(exposition_value(&e, count, digits), 0, 0);
    assert_float_equal(exposition_value(&e, "cotenant_request_duration_seconds_bucket",
                                        "model=\"digits\",le=\"0.16\""),
                       0, 0);
    assert_float_equal(
        exposition_value(&e, "cotenant_deadline_total", "model=\"digits\",outcome=\"met\""), 1, 0);
    metrics_destroy(m);
}

static void test_recent_window(void **state) {
    (void)state;
    Metrics   *m = fresh(false);
    MetricsNow now = {0};
    Exposition e;
    for (int i = 0; i < 3000; i++) {
        Receipt r = receipt(0, i < 1500 ? 30 * MS : 10 * MS);
        metrics_note(m, &r);
    }
    look(m, &now, &e);
    assert_float_equal(exposition_value(&e, "cotenant_hit_ratio", "model=\"digits\""), 1, 0);
    for (int i = 0; i < 512; i++) {
        Receipt r = receipt(0, 30 * MS);
        metrics_note(m, &r);
    }
    look(m, &now, &e);
    assert_float_equal(exposition_value(&e, "cotenant_hit_ratio", "model=\"digits\""), 0.5, 0);
    metrics_destroy(m);
}

static json_t *stats(const Metrics *m, const char *name, const char *version) {
    Str     text, none = {0};
    json_t *o;
    assert_int_equal(metrics_stats(m, NULL, name != NULL ? text_of(name) : none,
                                   version != NULL ? text_of(version) : none, &arena, &text),
                     ERR_OK);
    assert_int_equal(json_parse("stats", text.at, text.len, &o), ERR_OK);
    return o;
}

static void test_stats(void **state) {
    (void)state;
    Metrics   *m = fresh(false);
    MetricsRow row;
    metrics_register(m, 0, "digits", "2", 20 * MS, 99);
    metrics_register(m, 3, "big", "1", 100 * MS, 95);
    for (int i = 0; i < 12; i++) {
        Receipt r = receipt(0, 8 * MS);
        r.batch = (uint32_t)i % 3 + 1;
        r.end = i < 9 ? RECEIPT_OK : RECEIPT_REJECTED;
        metrics_note(m, &r);
    }
    json_t *o = stats(m, NULL, NULL), *list = json_object_get(o, "model_stats");
    assert_int_equal(json_array_size(list), 3);
    json_decref(o);
    o = stats(m, "digits", "1");
    list = json_object_get(o, "model_stats");
    assert_int_equal(json_array_size(list), 1);
    json_t *first = json_array_get(list, 0), *sums = json_object_get(first, "inference_stats");
    assert_int_equal(json_integer_value(json_object_get(first, "inference_count")), 18);
    assert_int_equal(json_integer_value(json_object_get(first, "execution_count")), 9);
    assert_int_equal(json_array_size(json_object_get(first, "batch_stats")), 3);
    json_t *success = json_object_get(sums, "success"), *fail = json_object_get(sums, "fail");
    assert_int_equal(json_integer_value(json_object_get(success, "count")), 9);
    assert_int_equal(json_integer_value(json_object_get(success, "ns")), 72 * MS);
    assert_int_equal(json_integer_value(json_object_get(fail, "count")), 3);
    json_t *ours = json_object_get(first, "cotenant");
    json_t *misses = json_object_get(ours, "misses"), *p = json_object_get(ours, "latency_ms");
    assert_int_equal(json_integer_value(json_object_get(misses, "rejected")), 3);
    assert_float_equal(json_number_value(json_object_get(p, "p99")), 8, 0.1);
    json_decref(o);
    o = stats(m, "nobody", NULL);
    assert_int_equal(json_array_size(json_object_get(o, "model_stats")), 0);
    json_decref(o);
    assert_true(metrics_read(m, 0, "1", &row));
    assert_int_equal(row.success.count, 9);
    assert_true(row.last_ms > 0);
    assert_false(metrics_read(m, 0, "3", &row));
    assert_false(metrics_read(m, 1, "1", &row));
    assert_false(metrics_read(m, UINT32_MAX, "1", &row));
    metrics_destroy(m);
}

static void test_versions_are_bounded(void **state) {
    (void)state;
    static char names[200][8];
    Metrics    *m = fresh(true);
    MetricsRow  row;
    for (int i = 0; i < 200; i++) {
        (void)snprintf(names[i], sizeof names[i], "%d", i);
        metrics_register(m, 0, "digits", names[i], 20 * MS, 99);
    }
    assert_true(metrics_read(m, 0, "199", &row));
    assert_true(metrics_read(m, 0, "184", &row));
    assert_false(metrics_read(m, 0, "183", &row));
    json_t *o = stats(m, NULL, NULL);
    assert_int_equal(json_array_size(json_object_get(o, "model_stats")), METRICS_VERSIONS);
    json_decref(o);
    metrics_destroy(m);
}

static void test_no_room(void **state) {
    (void)state;
    Metrics   *m = fresh(true);
    MetricsNow now = {0};
    Arena      tiny;
    Str        text;
    assert_int_equal(arena_init(&tiny, 4096), ERR_OK);
    assert_int_equal(metrics_text(m, &now, &tiny, &text), ERR_LIMIT);
    assert_int_equal(tiny.used, 0);
    assert_int_equal(metrics_stats(m, NULL, (Str){0}, (Str){0}, &tiny, &text), ERR_OK);
    arena_finish(&tiny);
    metrics_destroy(m);
}

typedef struct Page {
    const Metrics *m;
    bool           stats;
    Arena          arena;
    Str            text;
    Err            result;
    uint32_t       slices;
} Page;

static void write_page(void *self) {
    Page      *p = self;
    MetricsNow now = {0};
    p->result = p->stats ? metrics_stats(p->m, NULL, (Str){0}, (Str){0}, &p->arena, &p->text)
                         : metrics_text(p->m, &now, &p->arena, &p->text);
}

static Page page_of(const Metrics *m, bool stats) {
    Page p = {.m = m, .stats = stats};
    assert_int_equal(arena_init(&p.arena, 128 << 20), ERR_OK);
    return p;
}

// A slice of no time ends at the first point that reads the clock, on any machine. In each of them
// a model is added.
static Page sliced(Metrics *m, bool stats, uint32_t n_models) {
    static char names[64][8];
    Coroutine  *c;
    Page        p = page_of(m, stats);
    assert_int_equal(coroutine_create(&c), ERR_OK);
    coroutine_begin(c, write_page, &p);
    for (; !coroutine_resume(c, 0); p.slices++) {
        if (p.slices >= 64) continue;
        (void)snprintf(names[p.slices], sizeof names[0], "new%u", p.slices);
        metrics_register(m, n_models + p.slices, names[p.slices], "1", 20 * MS, 99);
    }
    coroutine_destroy(c);
    return p;
}

// What both have up to the figures of the process, which change.
static bool same_text(Str a, Str b) {
    const char *end = memmem(a.at, a.len, "# HELP process", 14);
    size_t      n = end != NULL ? (size_t)(end - a.at) : a.len;
    return n <= b.len && memcmp(a.at, b.at, n) == 0;
}

static void test_written_in_slices(void **state) {
    static char names[400][8];
    (void)state;
    for (int stats = 0; stats < 2; stats++) {
        Metrics *m = fresh(true);
        for (uint32_t i = 0; i < 400; i++) {
            (void)snprintf(names[i], sizeof names[0], "m%u", i);
            metrics_register(m, i, names[i], "1", 20 * MS, 99);
        }
        Page whole = page_of(m, stats);
        write_page(&whole);
        Page parts = sliced(m, stats, 400);
        assert_int_equal(whole.result, ERR_OK);
        assert_int_equal(parts.result, ERR_OK);
        assert_true(same_text(whole.text, parts.text));
        assert_true(parts.slices >= 50);
        arena_finish(&whole.arena);
        arena_finish(&parts.arena);
        metrics_destroy(m);
    }
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_counts),
        cmocka_unit_test(test_any_traffic),
        cmocka_unit_test(test_strangers_get_no_labels),
        cmocka_unit_test(test_target_moves),
        cmocka_unit_test(test_recent_window),
        cmocka_unit_test(test_stats),
        cmocka_unit_test(test_versions_are_bounded),
        cmocka_unit_test(test_written_in_slices),
        cmocka_unit_test(test_no_room),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
