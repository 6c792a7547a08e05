// Tenants join and leave and policies change, from several threads: every request is answered once
// and memory does not grow.
#include <pthread.h>
#include <stdlib.h>

#include "tests/node/live_fixture.h"
#include "tests/runner.h"

enum { TENANTS = 3, THREADS = 2, ROUNDS = 60 };

static TestTenant tenants[TENANTS];

static int build(void **state) {
    (void)state;
    for (uint32_t i = 0; i < TENANTS; i++) tenant_build(&tenants[i], NULL, i + 1);
    return 0;
}

static int finish(void **state) {
    (void)state;
    for (uint32_t i = 0; i < TENANTS; i++) tenant_finish(&tenants[i]);
    return 0;
}

static uint32_t join(NodeLive *l, uint32_t tenant) {
    LiveTenant t = live_tenant_of(&tenants[tenant]);
    uint32_t   number = UINT32_MAX;
    tenant_check(node_live_join(l, &t, &number));
    return number;
}

static void numbers_are_used_again(void **state) {
    (void)state;
    NodeLive    *l = NULL;
    FifoSettings rule = {.layers = 2};
    TestRequest  s[4] = {0};
    tenant_check(node_live_create(&l, &(NodeLiveOptions){.cores = 2, .fixed = true, .tenants = 3}));
    NodeMachine m = test_machine(l);
    tenant_check(node_live_set_policy(l, &fifo_policy, &rule, &m));
    for (uint32_t i = 0; i < 3; i++) assert_int_equal(join(l, i), i);
    uint32_t   none = 0;
    LiveTenant more = live_tenant_of(&tenants[0]);
    assert_int_equal(node_live_join(l, &more, &none), ERR_LIMIT);
    test_request_submit(l, &s[0],
                        (EngineRequest){.tenant = 1});  // joined, but no policy instance has it yet
    assert_int_equal(test_request_wait(&s[0])->end, LIVE_REFUSED);
    tenant_check(node_live_set_policy(l, &fifo_policy, &rule, &m));
    s[1].of = &tenants[1];
    test_request_submit(l, &s[1], (EngineRequest){.tenant = 1});
    assert_int_equal(test_request_wait(&s[1])->end, LIVE_DONE);
    assert_true(s[1].right);
    node_live_leave(l, 1);
    test_request_submit(l, &s[2], (EngineRequest){.tenant = 1});
    assert_int_equal(test_request_wait(&s[2])->end, LIVE_REFUSED);
    assert_int_equal(join(l, 2), 1);
    tenant_check(node_live_set_policy(l, &fifo_policy, &rule, &m));
    s[3].of = &tenants[2];
    test_request_submit(l, &s[3], (EngineRequest){.tenant = 1});
    assert_int_equal(test_request_wait(&s[3])->end, LIVE_DONE);
    assert_true(s[3].right);
    node_live_destroy(l);
}

static void times_add_up(void **state) {
    (void)state;
    NodeLive    *l = NULL;
    FifoSettings rule = {.layers = 1};
    TestRequest  s[20] = {0};
    tenant_check(node_live_create(&l, &(NodeLiveOptions){.cores = 2, .fixed = true}));
    NodeMachine m = test_machine(l);
    for (uint32_t i = 0; i < TENANTS; i++) assert_int_equal(join(l, i), i);
    tenant_check(node_live_set_policy(l, &fifo_policy, &rule, &m));
    for (uint32_t i = 0; i < 20; i++)
        test_request_submit(l, &s[i],
                            (EngineRequest){.tenant = i % TENANTS, .deadline = i % 2 == 0 ? 1 : 0});
    for (uint32_t i = 0; i < 20; i++) {
        const EngineResult *a = test_request_wait(&s[i]);
        const LiveTiming   *t = &a->timing;
        uint32_t            layers = 0;
        for (uint32_t k = 0; k < LIVE_VERSIONS; k++) layers += t->versions[k];
        assert_int_equal(a->end, LIVE_DONE);
        assert_int_equal(t->queue_ns + t->compute_ns + t->paused_ns, a->finish - a->arrival);
        assert_int_equal(t->blocks, tenants[i % TENANTS].program.n_steps);
        assert_int_equal(layers, t->blocks);
        assert_true(t->cores_most == 1 && t->cores_least == 1 && t->core_ns >= t->compute_ns);
        assert_int_equal(a->outcome == OUTCOME_LATE, t->late_cause != LIVE_NO_CAUSE);
        assert_int_equal(a->outcome == OUTCOME_LATE, a->why != NULL);
        assert_true(t->pauses == 0 || t->paused_by < TENANTS);
    }
    assert_int_equal(s[0].answer.timing.behind, UINT32_MAX);
    node_live_destroy(l);
}

static long resident_kb(void) {
    char  line[256];
    FILE *f = fopen("/proc/self/statm", "re");
    assert_non_null(f);
    assert_non_null(fgets(line, sizeof line, f));
    assert_int_equal(fclose(f), 0);
    const char *second = strchr(line, ' ');
    assert_non_null(second);
    return strtol(second, NULL, 10) * (sysconf(_SC_PAGESIZE) / 1024);
}

static long mappings(void) {
    char  line[512];
    long  n = 0;
    FILE *f = fopen("/proc/self/maps", "re");
    assert_non_null(f);
    while (fgets(line, sizeof line, f) != NULL) n++;
    assert_int_equal(fclose(f), 0);
    return n;
}

static void memory_comes_back(void **state) {
    (void)state;
    NodeLive    *l = NULL;
    FifoSettings rule = {0};
    long         kb = 0, maps = 0;
    uint64_t     bytes = 0;
    LiveStatus   status;
    Arena        a;
    tenant_check(arena_init(&a, 1 << 20));
    tenant_check(node_live_create(&l, &(NodeLiveOptions){.cores = 2, .fixed = true, .tenants = 4}));
    NodeMachine m = test_machine(l);
    for (uint32_t i = 0; i < 300; i++) {
        TestRequest s = {.of = &tenants[i % TENANTS]};
        uint32_t    number = join(l, i % TENANTS);
        tenant_check(node_live_set_policy(l, &fifo_policy, &rule, &m));
        test_request_submit(l, &s, (EngineRequest){.tenant = number});
        assert_int_equal(test_request_wait(&s)->end, LIVE_DONE);
        assert_true(s.right);
        arena_rewind(&a, 0);
        tenant_check(node_live_status(l, &a, &status));
        bytes = status.tenants[number].memory_bytes;
        node_live_leave(l, number);
        tenant_check(node_live_set_policy(l, &fifo_policy, &rule, &m));
        if (i == 20) kb = resident_kb(), maps = mappings();
    }
    assert_true(bytes * 280 > (uint64_t)1 << 26);  // the size it would have without reuse
    assert_true(resident_kb() < kb + (16 << 10));
    assert_true(mappings() < maps + 8);
    node_live_destroy(l);
    arena_finish(&a);
}

typedef struct Submitter {
    NodeLive         *live;
    _Atomic uint32_t *numbers;  // [TENANTS] of tenants, or UINT32_MAX
    _Atomic uint32_t *users;    // [TENANTS] of those numbers
    _Atomic bool     *stop;
    uint64_t          seed;
    uint32_t          asked, ends[LIVE_STUCK + 1], wrong;
} Submitter;

static void wish(Submitter *c, Rng *r, TestRequest *s, uint32_t which) {
    uint32_t number = atomic_load(&c->numbers[which]);
    *s = (TestRequest){.of = &tenants[which]};
    test_request_submit(
        c->live, s,
        (EngineRequest){.tenant = number,
                        .deadline = (TimeNs)rng_below(r, 2000000) + 1,
                        .expire = rng_below(r, 3) == 0 ? (TimeNs)rng_below(r, 400000) + 1 : 0,
                        .on_miss = (OnMiss)rng_below(r, 3),
                        .priority = (double)rng_below(r, 3)});
    if (rng_below(r, 8) == 0) {
        atomic_store(&s->cancelled, true);
        node_live_cancel(c->live);
    }
}

// A thread counts as a user of a tenant before it looks up the tenant's number.
static void *ask_some(void *submitter) {
    Submitter *c = submitter;
    Rng        r = {c->seed};
    while (!atomic_load(c->stop)) {
        TestRequest s[8];
        uint32_t    which = (uint32_t)rng_below(&r, TENANTS), n = 1 + (uint32_t)rng_below(&r, 8);
        atomic_fetch_add(&c->users[which], 1);
        if (atomic_load(&c->numbers[which]) != UINT32_MAX)
            for (uint32_t i = 0; i < n; i++) wish(c, &r, &s[i], which);
        else
            n = 0;
        for (uint32_t i = 0; i < n; i++) {
            const EngineResult *a = test_request_wait(&s[i]);
            c->ends[a->end]++;
            c->wrong += a->end == LIVE_DONE && !s[i].right;
            c->wrong += atomic_load(&s[i].answers) != 1;
        }
        c->asked += n;
        atomic_fetch_sub(&c->users[which], 1);
    }
    return NULL;
}

static void change(NodeLive *l, const NodeMachine *m, Rng *r, _Atomic uint32_t *numbers,
                   _Atomic uint32_t *users) {
    static RandomPolicySettings chaotic[ROUNDS];
    static uint32_t             round;
    RandomPolicySettings       *s = &chaotic[round++ % ROUNDS];
    uint32_t                    which = (uint32_t)rng_below(r, TENANTS);
    uint32_t                    number = atomic_exchange(&numbers[which], UINT32_MAX);
    *s = (RandomPolicySettings){.seed = round, .rejects = (uint32_t)rng_below(r, 10)};
    if (number != UINT32_MAX) {
        while (atomic_load(&users[which]) > 0) (void)usleep(100);
        node_live_leave(l, number);
    }
    number = join(l, which);
    tenant_check(node_live_set_policy(l, &random_policy, s, m));
    atomic_store(&numbers[which], number);
}

static void everything_at_once(void **state) {
    (void)state;
    NodeLive        *l = NULL;
    Submitter        submitters[THREADS];
    pthread_t        threads[THREADS];
    _Atomic uint32_t numbers[TENANTS], users[TENANTS] = {0};
    _Atomic bool     stop = false;
    Rng              r = {11};
    Arena            a;
    tenant_check(arena_init(&a, 1 << 24));
    tenant_check(node_live_create(
        &l, &(NodeLiveOptions){.cores = 3, .fixed = true, .watchdog_ns = 1 << 30}));
    NodeMachine m = test_machine(l);
    for (uint32_t i = 0; i < TENANTS; i++) atomic_init(&numbers[i], UINT32_MAX);
    for (uint32_t i = 0; i < THREADS; i++) {
        submitters[i] = (Submitter){
            .live = l, .numbers = numbers, .users = users, .stop = &stop, .seed = i + 1};
        assert_int_equal(pthread_create(&threads[i], NULL, ask_some, &submitters[i]), 0);
    }
    for (uint32_t i = 0; i < ROUNDS; i++) {
        LiveStatus status;
        change(l, &m, &r, numbers, users);
        (void)usleep(10000);
        arena_rewind(&a, 0);
        tenant_check(node_live_status(l, &a, &status));
        assert_true(status.n_tenants <= TENANTS && status.busy <= 3);
    }
    atomic_store(&stop, true);
    for (uint32_t i = 0; i < THREADS; i++) assert_int_equal(pthread_join(threads[i], NULL), 0);
    for (uint32_t i = 0; i < THREADS; i++) {
        assert_int_equal(submitters[i].wrong, 0);
        assert_true(submitters[i].ends[LIVE_DONE] > 0);
        assert_int_equal(submitters[i].ends[LIVE_FAILED] + submitters[i].ends[LIVE_STUCK], 0);
    }
    for (uint32_t i = 0; i < TENANTS; i++)
        if (atomic_load(&numbers[i]) != UINT32_MAX) node_live_leave(l, numbers[i]);
    node_live_destroy(l);
    arena_finish(&a);
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_are_used_again),
        cmocka_unit_test(times_add_up),
        cmocka_unit_test(memory_comes_back),
        cmocka_unit_test(everything_at_once),
    };
    return cmocka_run_group_tests(tests, build, finish);
}
