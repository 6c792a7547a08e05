#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <unistd.h>

#include "node/live/workers.h"
#include "tests/runner.h"

enum { WORKERS = 4, ROUNDS = 300 };

typedef struct Job {
    _Atomic uint32_t done[WORKERS];
    uint32_t         seen[WORKERS];  // the index it came with; the worker's own
} Job;

static void run(void *ctx, uint32_t core, void *job, uint32_t index) {
    Job *j = job;
    assert_ptr_equal(ctx, NULL);
    j->seen[core] = index;
    atomic_fetch_add(&j->done[core], 1);
}

// Every job reaches its worker once, whether the worker spins or sleeps.
static void every_job_is_run_once(TimeNs spin_ns) {
    Workers       *w = NULL;
    Job            job = {0};
    WorkersOptions o = {.n = WORKERS, .spin_ns = spin_ns, .run = run};
    assert_int_equal(workers_create(&w, &o), ERR_OK);
    for (uint32_t i = 1; i <= ROUNDS; i++) {
        for (uint32_t c = 0; c < WORKERS; c++) workers_post(w, c, &job, i + c);
        for (uint32_t c = 0; c < WORKERS; c++)
            while (atomic_load(&job.done[c]) != i) (void)sched_yield();
        for (uint32_t c = 0; c < WORKERS; c++) assert_int_equal(job.seen[c], i + c);
        if (i % 100 == 0) (void)usleep(2000);
    }
    workers_destroy(w);
}

static void sleepers(void **state) {
    (void)state;
    every_job_is_run_once(1);
}

static void spinners(void **state) {
    (void)state;
    every_job_is_run_once(1000000);
}

static void multiply(void *ctx, uint32_t core, void *job, uint32_t index) {
    volatile float *small = ctx;
    Job            *j = job;
    *small = *small * 0.5f;
    j->seen[core] = index;
    atomic_fetch_add(&j->done[core], 1);
}

// Denormal numbers are flushed to 0, so that no input slows down arithmetic.
static void tiny_numbers_are_flushed(void **state) {
    (void)state;
#if defined(__x86_64__) || defined(__aarch64__)
    Workers       *w = NULL;
    volatile float small = 2e-38f;  // normal, its half is not
    Job            job = {0};
    WorkersOptions o = {.n = 1, .spin_ns = 1, .run = multiply, .ctx = (void *)&small};
    assert_int_equal(workers_create(&w, &o), ERR_OK);
    workers_post(w, 0, &job, 1);
    while (atomic_load(&job.done[0]) != 1) (void)sched_yield();
    workers_destroy(w);
    assert_true(small == 0);
#endif
}

static void on_their_own_cpu(void **state) {
    (void)state;
    Workers       *w = NULL;
    int            here = sched_getcpu();
    uint32_t       cpu = here > 0 ? (uint32_t)here : 0;
    Job            job = {0};
    WorkersOptions o = {.n = 1, .cpus = &cpu, .spin_ns = 1000, .run = run};
    assert_int_equal(workers_create(&w, &o), ERR_OK);
    workers_post(w, 0, &job, 1);
    while (atomic_load(&job.done[0]) != 1) (void)sched_yield();
    workers_destroy(w);
    workers_destroy(NULL);
}

typedef struct Wait {
    _Atomic bool     go;
    _Atomic uint32_t begun, ended;
    pthread_t        by;
} Wait;

static void wait_to_go(void *ctx, uint32_t core, void *job, uint32_t index) {
    Wait *w = job;
    (void)ctx, (void)core, (void)index;
    w->by = pthread_self();
    atomic_fetch_add(&w->begun, 1);
    while (!atomic_load(&w->go)) (void)sched_yield();
    atomic_fetch_add(&w->ended, 1);
}

static void begin(Workers *w, Wait *job) {
    workers_post(w, 0, job, 0);
    while (atomic_load(&job->begun) == 0) (void)sched_yield();
}

static void end(Wait *job) {
    atomic_store(&job->go, true);
    while (atomic_load(&job->ended) == 0) (void)sched_yield();
}

// A spare takes the place of a demoted thread, which is the next spare; a lowered one ends.
static void demoted_threads_become_spares(void **state) {
    (void)state;
    Workers       *w = NULL;
    Cores          all = cores_all(1);
    WorkersOptions o = {.n = 1, .spin_ns = 1, .run = wait_to_go};
    assert_int_equal(workers_create(&w, &o), ERR_OK);
    assert_int_equal(workers_add_spare(w), ERR_OK);
    pthread_t first = {0};
    for (uint32_t i = 0; i < 4; i++) {
        Wait slow = {0}, other = {0};
        begin(w, &slow);
        Worker *list = workers_demote(w, &all);
        assert_int_equal(workers_spares(w), 0);
        begin(w, &other);
        end(&other);
        workers_move(w, list, 0);
        assert_true(worker_list_cpu_ns(list) > 0);
        if (i == 3) workers_lower(list);
        end(&slow);
        workers_take_back(w, list);
        assert_int_equal(workers_spares(w), i < 3 ? 1 : 0);
        if (i == 0) first = slow.by;
        assert_int_equal(pthread_equal(first, i % 2 == 0 ? slow.by : other.by), true);
        assert_false(pthread_equal(slow.by, other.by));
    }
    workers_join_ended(w);
    workers_destroy(w);
}

enum { TRIES = 10000, WAITS = 10000 };

static bool begun_at_last(const Wait *job) {
    for (uint32_t i = 0; i < WAITS && atomic_load(&job->begun) == 0; i++) (void)usleep(1000);
    return atomic_load(&job->begun) != 0;
}

// A job given to a thread that sleeps; the thread is demoted before it is woken. False: the thread
// did not sleep.
static bool demoted_asleep(Workers *w, const Cores *all) {
    Wait job = {0};
    bool slept = workers_give(w, 0, &job, 0);
    if (slept) {
        Worker *list = workers_demote(w, all);
        workers_wake(w, 0);
        assert_true(begun_at_last(&job));
        end(&job);
        workers_take_back(w, list);
    } else {
        end(&job);
    }
    return slept;
}

static void demoted_threads_do_not_sleep_on(void **state) {
    (void)state;
    Workers       *w = NULL;
    Cores          all = cores_all(1);
    WorkersOptions o = {.n = 1, .spin_ns = 1, .run = wait_to_go};
    uint32_t       slept = 0;
    assert_int_equal(workers_create(&w, &o), ERR_OK);
    assert_int_equal(workers_add_spare(w), ERR_OK);
    for (uint32_t i = 0; i < TRIES && slept < 3; i++) {
        (void)usleep(2000);
        slept += demoted_asleep(w, &all);
    }
    assert_int_equal(slept, 3);
    workers_destroy(w);
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sleepers),
        cmocka_unit_test(spinners),
        cmocka_unit_test(on_their_own_cpu),
        cmocka_unit_test(tiny_numbers_are_flushed),
        cmocka_unit_test(demoted_threads_become_spares),
        cmocka_unit_test(demoted_threads_do_not_sleep_on),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
