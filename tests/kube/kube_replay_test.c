// Records of random pictures, read back: a policy whose plan is a hash of its whole view gives the
// same plan again.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/hash.h"
#include "kube/kube_replay.h"
#include "kube/kube_task_field.h"
#include "tests/runner.h"

enum { SLOTS = 12, SERVERS = 70, STEPS = 60 };

static uint64_t add(uint64_t h, const void *at, size_t n) { return hash_fnv(h, at, n); }

static uint64_t hash_task(uint64_t h, const ClusterTask *t, uint32_t n_servers) {
    for (uint32_t i = 0; i < KUBE_TASK_FIELDS; i++)
        h = add(h, (const char *)t + kube_task_fields[i].offset, kube_task_fields[i].size);
    for (uint32_t i = 0; i < t->n_slices; i++) {
        const ClusterSlice *s = &t->slices[i];
        const uint64_t      all[] = {s->mask,      s->server,      s->gpus,
                                     s->gpu_milli, s->cores_milli, s->memory_mib};
        h = add(h, all, sizeof all);
    }
    if (t->job.servers != NULL) h = add(h, t->job.servers, (n_servers + 63) / 64 * 8);
    return h;
}

// State: decisions since the setup was made.
static uint32_t hash_decide(void *state, const ClusterView *v, ClusterAction *out, uint32_t max) {
    uint32_t *n = state;
    uint64_t  h = add(HASH_FNV_START, &v->now, sizeof v->now);
    (void)max;
    ++*n;
    h = add(h, n, sizeof *n);
    h = add(h, &v->reason, sizeof v->reason);
    h = add(h, &v->alive_ns, sizeof v->alive_ns);
    h = add(h, &v->busy_ns, sizeof v->busy_ns);
    for (uint32_t i = 0; i < v->n_waiting; i++)
        h = hash_task(h, &v->tasks[v->waiting[i]], v->setup->n_servers);
    for (uint32_t i = 0; i < v->n_running; i++)
        h = hash_task(h, &v->tasks[v->running[i]], v->setup->n_servers);
    for (uint32_t i = 0; i < v->setup->n_servers; i++) {
        const ClusterServer *s = &v->setup->servers[i];
        const ServerState   *f = &v->servers[i];
        const uint64_t       all[] = {s->gpus,      s->cores_milli, s->memory_mib,  s->rack,
                                      s->type,      f->gpus,        f->cores_milli, f->memory_mib,
                                      f->gpu_milli, f->n_residents};
        h = add(h, s->name, strlen(s->name));
        h = add(h, all, sizeof all);
    }
    for (uint32_t i = 0; i < v->setup->n_tenants; i++)
        h = add(h, v->setup->tenants[i].name, strlen(v->setup->tenants[i].name));
    out[0] = (ClusterAction){.verb = CLUSTER_WAKE, .at = (TimeNs)(h >> 1)};
    return 1;
}

static size_t hash_state(const ClusterSetup *setup, const void *settings) {
    (void)setup, (void)settings;
    return sizeof(uint32_t);
}

static const ClusterPolicy hashing = {
    .name = "hashing", .about = "", .state_size = hash_state, .decide = hash_decide};

static Err choose(void *self, KubeReplayRun *run, Arena *a) {
    (void)a;
    if (strcmp(run->head.policy, "hashing") != 0) return err_set(ERR_ARG, "unknown policy");
    run->policy = &hashing;
    run->profiles = self;
    return ERR_OK;
}

typedef struct World {
    Rng          rng;
    ClusterTask  tasks[SLOTS];
    ClusterSlice slices[SLOTS][2];
    KubeServer   servers[SERVERS];
    const char  *tenants[3];
    uint64_t     sets[4][2];
    uint32_t     waiting[SLOTS], running[SLOTS];
    uint64_t     entries;
    KubePicture  picture;
} World;

static uint32_t below(World *w, uint32_t n) { return (uint32_t)rng_below(&w->rng, n); }

static double real(World *w) {
    return below(w, 4) == 0 ? 0 : rng_normal(&w->rng) * (below(w, 2) == 0 ? 1e-9 : 1e12);
}

static void change_task(World *w, uint32_t i) {
    ClusterTask *t = &w->tasks[i];
    bool         runs = below(w, 2) == 0;
    *t = (ClusterTask){.state = runs ? CLUSTER_RUNNING : CLUSTER_WAITING,
                       .entry = ++w->entries,
                       .since = (TimeNs)rng_below(&w->rng, 1ULL << 62),
                       .left = below(w, 3) == 0 ? CLUSTER_UNKNOWN : 12345,
                       .rate = real(w),
                       .measured = real(w),
                       .spread = {real(w), real(w), real(w), real(w)},
                       .lent = below(w, 2) == 0,
                       .slices = w->slices[i],
                       .n_slices = runs ? 1 + below(w, 2) : 0};
    t->job = (ClusterJob){.id = w->entries,
                          .gpus = below(w, 9),
                          .gpu_milli = 1 + below(w, 1000),
                          .class = CLUSTER_NONE,
                          .tenant = below(w, 2) == 0 ? CLUSTER_NONE : below(w, 3),
                          .priority = (int32_t)below(w, 100) - 50,
                          .servers = below(w, 2) == 0 ? NULL : w->sets[below(w, 4)]};
    for (uint32_t k = 0; k < t->n_slices; k++)
        w->slices[i][k] = (ClusterSlice){.mask = 1 + below(w, 3),
                                         .server = 2 * below(w, 30) + k,
                                         .gpus = 1,
                                         .gpu_milli = 1000,
                                         .cores_milli = below(w, 9),
                                         .memory_mib = below(w, 9)};
    if (below(w, 5) == 0) *t = (ClusterTask){.state = CLUSTER_GONE};
}

static void change(World *w) {
    KubePicture *p = &w->picture;
    for (uint32_t i = 0; i < 3; i++) change_task(w, below(w, SLOTS));
    if (below(w, 4) == 0) w->servers[below(w, SERVERS)].cores_milli = below(w, 100000);
    if (below(w, 6) == 0) {  // other sets under the same pointers
        p->generation++;
        for (uint32_t i = 0; i < 4; i++) w->sets[i][0] = rng_u64(&w->rng);
    }
    p->now += below(w, 1000000);
    p->reason = below(w, 64);
    p->n_waiting = p->n_running = 0;
    for (uint64_t e = 1; e <= w->entries; e++)
        for (uint32_t i = 0; i < SLOTS; i++) {
            if (w->tasks[i].entry != e) continue;
            if (w->tasks[i].state == CLUSTER_WAITING) w->waiting[p->n_waiting++] = i;
            if (w->tasks[i].state == CLUSTER_RUNNING) w->running[p->n_running++] = i;
        }
}

static void begin(World *w) {
    static char names[SERVERS][8];
    *w = (World){.rng = {7}, .tenants = {"a", "b\"", "c"}};
    for (uint32_t i = 0; i < SERVERS; i++) {
        (void)snprintf(names[i], sizeof names[i], "n%u", i);
        w->servers[i] = (KubeServer){
            names[i], i % 2 == 0 ? "V100" : "", i % 3 == 0 ? "r0" : "r1", 4, 64000, 999};
    }
    w->picture = (KubePicture){.now = INT64_C(1700000000000000000),
                               .servers = w->servers,
                               .tenants = w->tenants,
                               .tasks = w->tasks,
                               .waiting = w->waiting,
                               .running = w->running,
                               .n_servers = SERVERS,
                               .n_tenants = 3,
                               .n_slots = SLOTS};
}

static const KubeRecordHead record_head = {
    .policy = "hashing", .scheduler = "cotenant", .rules = {.seed = 5}};

// Plans as the policy makes them live, beside the recorder.
static void record(KubeRecorder *r, World *w, uint32_t steps) {
    KubeView      v;
    uint32_t      state = 0;
    ClusterAction plan[3 * SLOTS + 2];
    kube_view_init(&v);
    for (uint32_t i = 0; i < steps; i++) {
        bool anew;
        change(w);
        if (below(w, 5) == 0) {  // a view that no decision was made on
            assert_int_equal(kube_view_build(&v, &w->picture, &record_head.rules, &anew), ERR_OK);
            if (anew) state = 0;
            change(w);
        }
        assert_int_equal(kube_view_build(&v, &w->picture, &record_head.rules, &anew), ERR_OK);
        if (anew) state = 0;
        uint32_t       n = hash_decide(&state, &v.view, plan, 3 * SLOTS + 2);
        KubeRecordView of = {&w->picture, v.setups, v.view.alive_ns, v.view.busy_ns};
        kube_recorder_decision(r, &of, plan, n);
    }
    kube_view_finish(&v);
}

static void record_file(const char *path, size_t most) {
    static World  w;
    KubeRecorder *r;
    begin(&w);
    assert_int_equal(kube_recorder_open(&r, path, most, &record_head), ERR_OK);
    record(r, &w, STEPS);
    const KubeRecordOutcome o = {
        .what = "bind", .namespace_name = "d", .pod = "p", .node = "n", .result = "done", .at = 1};
    kube_recorder_outcome(r, &o);
    kube_recorder_header(r, &record_head);
    record(r, &w, STEPS);
    assert_int_equal(kube_recorder_close(r), ERR_OK);
}

static Err replay(const char *path, Arena *a, KubeReplayCounts *c) {
    static ClusterProfiles none;
    return kube_replay(path, choose, &none, a, c);
}

static void test_round_trip(void **state) {
    (void)state;
    char             path[] = "/tmp/kube-replay-XXXXXX";
    Arena            a;
    KubeReplayCounts c;
    int              fd = mkstemp(path);
    assert_true(fd >= 0);
    record_file(path, 0);
    assert_int_equal(arena_init(&a, 1 << 24), ERR_OK);
    Err e = replay(path, &a, &c);
    if (e != ERR_OK) fail_msg("%s", err_why());
    assert_int_equal(c.decisions, 2 * STEPS);
    if (c.same != c.decisions)
        fail_msg("line %llu: %s, again %s", (unsigned long long)c.first, c.recorded, c.again);
    assert_int_equal(c.headers, 2);
    assert_int_equal(c.outcomes, 1);
    // A file that was cut in its last line.
    assert_int_equal(ftruncate(fd, lseek(fd, 0, SEEK_END) - 10), 0);
    assert_int_equal(replay(path, &a, &c), ERR_OK);
    assert_true(c.cut && c.decisions == 2 * STEPS - 1 && c.same == c.decisions);
    arena_finish(&a);
    (void)close(fd);
    (void)unlink(path);
}

// Another plan is noticed, with its line.
static void test_difference(void **state) {
    (void)state;
    char                   path[] = "/tmp/kube-replay-XXXXXX";
    char                   text[1 << 20];
    Arena                  a;
    KubeReplayCounts       c;
    static ClusterProfiles none;
    int                    fd = mkstemp(path);
    assert_true(fd >= 0);
    record_file(path, 0);
    ssize_t n = read(fd, text, sizeof text - 1);
    assert_true(n > 0 && n < (ssize_t)sizeof text - 1);
    text[n] = '\0';
    char *at = strstr(text, "\"verb\":\"wake\",\"at\":") + strlen("\"verb\":\"wake\",\"at\":");
    at += strspn(at, "0123456789") - 1;
    *at = *at == '1' ? '2' : '1';
    assert_int_equal(arena_init(&a, 1 << 24), ERR_OK);
    assert_int_equal(kube_replay_text("r", text, (size_t)n, choose, &none, &a, &c), ERR_OK);
    assert_int_equal(c.same, c.decisions - 1);
    assert_int_equal(c.first, 2);
    arena_finish(&a);
    (void)close(fd);
    (void)unlink(path);
}

static void test_limit(void **state) {
    (void)state;
    char             path[] = "/tmp/kube-replay-XXXXXX";
    Arena            a;
    KubeReplayCounts c;
    int              fd = mkstemp(path);
    assert_true(fd >= 0);
    record_file(path, 40000);
    assert_true(lseek(fd, 0, SEEK_END) < 40100);
    assert_int_equal(arena_init(&a, 1 << 24), ERR_OK);
    assert_int_equal(replay(path, &a, &c), ERR_OK);
    assert_true(c.full && c.decisions > 0 && c.same == c.decisions && c.decisions < 2 * STEPS);
    arena_finish(&a);
    (void)close(fd);
    (void)unlink(path);
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_round_trip),
                                       cmocka_unit_test(test_difference),
                                       cmocka_unit_test(test_limit)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
