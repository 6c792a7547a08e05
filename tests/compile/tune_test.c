#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include <pthread.h>
#include <time.h>
#include <unistd.h>

#include "compile/tune/stopwatch.h"
#include "compile/tune/tune.h"
#include "tests/base/cpu_grid.h"
#include "tests/runner.h"

enum { VERSIONS = 12, MEMBERS = 2, SCRATCH = 1000, SLOW = 2000 };

static const Pressure machine = {
    .l3_bytes = 16 << 20, .l3_one = 80, .l3_all = 160, .dram_one = 35, .dram_all = 70};

// A layer that counts its runs; version.depth is the duration of one, version.pack 99 fails to
// prepare.
typedef struct Fake {
    _Atomic uint32_t runs[MEMBERS];
    _Atomic uint32_t bad, warmed;
    uint32_t         prepared;
} Fake;

static Version versions[VERSIONS];
static Arena   arena;
static Team   *team;

static int setup(void **state) {
    (void)state;
    for (uint32_t i = 0; i < VERSIONS; i++)
        versions[i] = (Version){.rows = (uint16_t)i, .depth = i == 4 ? 1 : SLOW};
    if (arena_init(&arena, 1 << 26) != ERR_OK) return -1;
    return team_create(&team, MEMBERS, NULL) == ERR_OK ? 0 : -1;
}

static int teardown(void **state) {
    (void)state;
    team_destroy(team);
    arena_finish(&arena);
    return 0;
}

static void run(void *self, const Version *v, Part part) {
    Fake *f = self;
    if (part.index >= part.count || part.count > MEMBERS || (uintptr_t)part.scratch % 64 != 0)
        atomic_fetch_add(&f->bad, 1);
    memset(part.scratch, 1, SCRATCH);
    volatile uint32_t spin = 0;
    for (uint32_t i = 0; i < 200u * v->depth / part.count; i++) spin = spin + 1;
    atomic_fetch_add(&f->runs[part.index], 1);
}

static void warm(void *self, Part part) {
    Fake *f = self;
    atomic_fetch_add(part.index < part.count ? &f->warmed : &f->bad, 1);
}

static Err prepare(void *self, const Version *v) {
    ((Fake *)self)->prepared++;
    return v->pack == 99 ? err_set(ERR_LIMIT, "no") : ERR_OK;
}

static uint32_t tasks(void *self, const Version *v) {
    (void)self;
    return 10u + v->rows;
}

static Traffic traffic(void *self, const Version *v, uint32_t parts) {
    (void)self;
    return (Traffic){.l3_bytes = (size_t)v->rows << 16, .beyond_l2_bytes = parts};
}

static TuneLayer layer(const char *key, Fake *f) {
    return (TuneLayer){.key = key,
                       .candidates = versions,
                       .n = VERSIONS,
                       .macs = 1e6,
                       .scratch_bytes_max = SCRATCH,
                       .self = f,
                       .prepare = prepare,
                       .run = run,
                       .tasks = tasks,
                       .traffic = traffic};
}

static TuneOptions options(double seconds, ProfileStore *store) {
    return (TuneOptions){.team = team,
                         .n_counts = 2,
                         .counts = {1, 2},
                         .seconds = seconds,
                         .l2_bytes = 1 << 16,
                         .pressure = &machine,
                         .store = store};
}

static void test_timer(void **state) {
    (void)state;
    Fake       f = {0};
    Stopwatch *t = NULL;
    for (uint32_t n = 1; n <= MEMBERS; n++) {
        bool clean;
        assert_int_equal(stopwatch_create(&t, team, SCRATCH, 1 << 16, n * 100000u), ERR_OK);
        assert_true(stopwatch_run(t, (StopwatchWork){run, warm, &f, &versions[4]}, n, &clean) > 0);
        stopwatch_destroy(t);
    }
    assert_int_equal(f.warmed, 3);
    assert_int_equal(f.runs[0], 2);
    assert_int_equal(f.runs[1], 1);
    assert_int_equal(f.bad, 0);
    stopwatch_destroy(NULL);
}

static TimeNs cpu_time(void) {
    struct timespec t;
    (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (TimeNs)t.tv_sec * 1000000000 + t.tv_nsec;
}

static void run_last(void *self, const Version *v, Part part) {
    (void)self, (void)v;
    if (part.index + 1 < part.count) return;
    for (TimeNs end = cpu_time() + 300000; cpu_time() < end;) continue;
}

// The busiest thread determines the time, however the threads are delayed.
static void test_uneven(void **state) {
    (void)state;
    Stopwatch *t = NULL;
    assert_int_equal(stopwatch_create(&t, team, SCRATCH, 0, 0), ERR_OK);
    for (int i = 0; i < 100; i++) {
        bool          clean;
        StopwatchWork w = {.run = run_last};
        assert_true(stopwatch_run(t, w, MEMBERS, &clean) > 250000);
    }
    stopwatch_destroy(t);
}

static void test_search(void **state) {
    (void)state;
    Fake         f = {0};
    TuneLayer    l = layer("a", &f);
    TuneOptions  o = options(20, NULL);
    LayerProfile p;
    assert_int_equal(tune_layers(&l, 1, &o, &arena, &p), ERR_OK);
    assert_int_equal(f.bad, 0);
    assert_true(p.finished);
    assert_int_equal(p.n, VERSIONS);
    assert_in_range(p.n_kept, 1, PROFILE_KEPT);
    assert_int_equal(p.candidates[p.kept[0]].version.rows, 4);
    for (uint32_t i = 0; i < VERSIONS; i++) {
        assert_true(version_same(&p.candidates[i].version, &versions[i]));
        assert_int_equal(p.candidates[i].tasks, 10 + i);
        assert_int_equal(p.candidates[i].traffic.l3_bytes, (size_t)i << 16);
        assert_int_equal(p.candidates[i].traffic.beyond_l2_bytes, 2);
        assert_true(p.candidates[i].time_ns[0] > 0);
    }
}

static void test_refused(void **state) {
    (void)state;
    Fake         f = {0};
    TuneLayer    l = layer("a", &f);
    TuneOptions  o = options(20, NULL);
    LayerProfile p;
    versions[0].pack = 99;
    assert_int_equal(tune_layers(&l, 1, &o, &arena, &p), ERR_OK);
    assert_int_equal(p.n, VERSIONS - 1);
    for (uint32_t i = 0; i < p.n; i++) assert_int_not_equal(p.candidates[i].version.pack, 99);
}

static void test_no_time(void **state) {
    (void)state;
    Fake         f = {0};
    TuneLayer    l = layer("a", &f);
    TuneOptions  o = options(0, NULL);
    WorkFlag     stop = WORK_STOP;
    LayerProfile p;
    assert_int_equal(tune_layers(&l, 1, &o, &arena, &p), ERR_OK);
    assert_int_equal(p.n + p.n_kept, 0);
    o = options(1000, NULL);
    o.stop = &stop;
    assert_int_equal(tune_layers(&l, 1, &o, &arena, &p), ERR_OK);
    assert_int_equal(p.n + p.n_kept, 0);
    assert_int_equal(f.runs[0], 0);
    assert_int_equal(tune_layers(NULL, 0, &o, &arena, NULL), ERR_OK);
}

typedef struct Told {
    int64_t last, of;
    bool    back;
} Told;

static void told(void *self, int64_t done, int64_t of) {
    Told *t = self;
    t->back = t->back || done < t->last || done > of;
    t->last = done;
    t->of = of;
}

// Layers with one key are measured once, and a second search finds all in the store.
static void test_store(void **state) {
    (void)state;
    char file[] = "/tmp/tune_test.XXXXXX";
    int  fd = mkstemp(file);
    assert_true(fd >= 0);
    (void)close(fd);
    Cpu          cpu = cpu_grid(&arena, (CpuGrid){1, 0, 2, 1});
    ProfileStore s;
    profile_store_open(&s, file, &cpu, &isa_baseline);
    Fake         f[3] = {0};
    TuneLayer    l[3] = {layer("a", &f[0]), layer("b", &f[1]), layer("a", &f[2])};
    TuneOptions  o = options(60, &s);
    LayerProfile p[3], q[3];
    Told         t = {0};
    o.sink = (ProgressSink){told, &t};
    assert_int_equal(tune_layers(l, 3, &o, &arena, p), ERR_OK);
    assert_false(t.back);
    assert_int_equal(t.last, t.of);
    assert_true(f[0].runs[0] > 0 && f[1].runs[0] > 0);
    assert_int_equal(f[2].runs[0], 0);
    assert_int_equal(p[2].kept[0], p[0].kept[0]);
    uint32_t before = f[0].runs[0];
    assert_int_equal(tune_layers(l, 3, &o, &arena, q), ERR_OK);
    assert_int_equal(f[0].runs[0], before);
    assert_int_equal(q[2].n, VERSIONS);
    assert_int_equal(q[1].n_kept, p[1].n_kept);
    assert_true(tune_known(&l[0], &o, &arena, &q[0]));
    o.counts[1] = 3;  // other core counts
    assert_false(tune_known(&l[0], &o, &arena, &q[0]));
    o.counts[1] = 2;
    versions[4].rows = 777;  // no longer offered
    assert_false(tune_known(&l[0], &o, &arena, &q[0]));
    profile_store_close(&s);
    assert_int_equal(unlink(file), 0);
}

// Other work beside a search: it ends the search after some samples, and disturbs the first ones.
typedef struct Beside {
    uint32_t waits, samples, most, disturbed;
} Beside;

static bool wait_for_gap(void *self) {
    Beside *b = self;
    return ++b->waits <= b->most;
}

static bool disturbs(void *self) {
    Beside *b = self;
    return b->samples++ < b->disturbed;
}

static ProfileStore open_store(char *file) {
    int fd = mkstemp(file);
    assert_true(fd >= 0);
    (void)close(fd);
    Cpu          cpu = cpu_grid(&arena, (CpuGrid){1, 0, 2, 1});
    ProfileStore s;
    profile_store_open(&s, file, &cpu, &isa_baseline);
    return s;
}

// The search beside other work finds what the one on an idle machine finds, and leaves it alone.
static void test_paced(void **state) {
    (void)state;
    char         file[] = "/tmp/tune_test.XXXXXX";
    ProfileStore s = open_store(file);
    Fake         f = {0};
    TuneLayer    l = layer("a", &f);
    Beside       b = {.most = UINT32_MAX, .disturbed = 20};
    TunePace     pace = {wait_for_gap, disturbs, &b};
    TuneOptions  o = options(60, &s), all = options(60, &s);
    LayerProfile p, q;
    o.n_counts = 1;
    o.pace = &pace;
    assert_int_equal(tune_layers(&l, 1, &o, &arena, &p), ERR_OK);
    assert_true(p.finished && p.n == VERSIONS && p.n_counts == 1);
    assert_int_equal(p.candidates[p.kept[0]].version.rows, 4);
    assert_true(b.waits == b.samples && b.waits == f.runs[0]);
    assert_false(tune_known(&l, &all, &arena, &q));
    assert_int_equal(tune_layers(&l, 1, &all, &arena, &q), ERR_OK);
    assert_int_equal(q.candidates[q.kept[0]].version.rows, 4);
    assert_true(q.n_counts == 2 && b.waits == b.samples);
    uint32_t before = b.waits;
    assert_int_equal(tune_layers(&l, 1, &o, &arena, &p), ERR_OK);
    assert_int_equal(p.n_counts, 2);
    assert_int_equal(b.waits, before);
    profile_store_close(&s);
    assert_int_equal(unlink(file), 0);
}

// The layer in which a search ends is searched again the next time, finished ones are not.
static void test_paced_end(void **state) {
    (void)state;
    char         file[] = "/tmp/tune_test.XXXXXX";
    ProfileStore s = open_store(file);
    Fake         f[2] = {0};
    TuneLayer    l[2] = {layer("a", &f[0]), layer("b", &f[1])};
    Beside       b = {.most = UINT32_MAX};
    TunePace     pace = {wait_for_gap, disturbs, &b};
    TuneOptions  o = options(60, &s);
    LayerProfile p[2];
    o.n_counts = 1;
    o.pace = &pace;
    assert_int_equal(tune_layers(l, 1, &o, &arena, p), ERR_OK);
    uint32_t first = f[0].runs[0];
    b.most = b.waits + 5;
    assert_int_equal(tune_layers(l, 2, &o, &arena, p), ERR_OK);
    assert_int_equal(f[0].runs[0], first);
    assert_int_equal(f[1].runs[0], 5);
    assert_true(p[0].n_kept > 0 && p[1].n == 0);
    assert_false(tune_known(&l[1], &o, &arena, &p[1]));
    b.most = UINT32_MAX;
    assert_int_equal(tune_layers(l, 2, &o, &arena, p), ERR_OK);
    assert_true(f[0].runs[0] == first && p[1].n == VERSIONS);
    profile_store_close(&s);
    assert_int_equal(unlink(file), 0);
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

TEST_MAIN() {
    const struct CMUnitTest tests[] = {
        T(test_timer),   T(test_uneven), T(test_search), T(test_refused),
        T(test_no_time), T(test_store),  T(test_paced),  T(test_paced_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
