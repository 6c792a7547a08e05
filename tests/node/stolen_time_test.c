// Waits are blamed on other processes where these caused them, in a simulated queue.
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "node/live/stolen_time.h"
#include "tests/runner.h"

enum { US = 1000, CORES = 2, REQUESTS = 2000, START = 1000000000, TARGET = 5000000 };

typedef struct Case {
    const char *name;
    TimeNs      work_us, every_us;  // of a request; between two arrivals
    uint32_t    stall_every;
    TimeNs      stall_us;  // every so many blocks, other processes take a core
    bool        blamed;    // waits are due to other processes
} Case;

typedef struct Total {
    double wait, stolen;
} Total;

// First come, first served on CORES cores.
static Total simulate(const Case *c) {
    StolenTime s = {0};
    TimeNs     free_at[CORES] = {START, START}, held[CORES] = {0};
    Total      sum = {0};
    for (uint32_t i = 0; i < REQUESTS; i++) {
        TimeNs   arrival = START + i * c->every_us * US;
        uint32_t core = free_at[0] <= free_at[1] ? 0 : 1;
        if (free_at[core] <= arrival) stolen_time_idle(&s);
        TimeNs least = stolen_time_arrive(&s, (double)(c->work_us * US), CORES, arrival);
        TimeNs begin = free_at[core] > arrival ? free_at[core] : arrival;
        stolen_time_take(&s, (double)held[core]);
        StolenWait w =
            stolen_time_wait(&s, (StolenQuestion){begin - arrival, least, TARGET, CORES, begin, 0});
        assert_true(w.ns >= 0 && w.ns <= begin - arrival && w.taken <= w.of_ns);
        sum.wait += (double)(begin - arrival);
        sum.stolen += (double)w.ns;
        held[core] = c->stall_every > 0 && i % c->stall_every == 0 ? c->stall_us * US : 0;
        free_at[core] = begin + c->work_us * US + held[core];
    }
    return sum;
}

static void waits_are_blamed_on_their_cause(void **state) {
    (void)state;
    static const Case cases[] = {
        {"half load, both cores half taken", 300, 300, 10, 6000, true},
        {"light load, long stalls", 300, 1000, 20, 30000, true},
        {"overload, nothing taken", 300, 100, 0, 0, false},
        {"overload, little taken", 300, 100, 50, 1000, false},
        {"overload by far, cores half taken", 300, 30, 10, 3000, false},
        {"full load, nothing taken", 300, 151, 0, 0, false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        Total  t = simulate(&cases[i]);
        double share = t.wait > 0 ? t.stolen / t.wait : 0;
        if (cases[i].blamed ? share < 0.5 : share > 0.2)
            fail_msg("%s: %.2f of the waiting is blamed on others", cases[i].name, share);
    }
}

static void a_queue_that_was_empty_starts_anew(void **state) {
    (void)state;
    StolenTime s = {0};
    (void)stolen_time_arrive(&s, 1e6, 1, START);
    stolen_time_take(&s, 8e6);
    assert_int_equal(
        stolen_time_wait(&s, (StolenQuestion){9000000, 0, TARGET, 1, START + 9000000, 0}).ns,
        8000000);
    stolen_time_idle(&s);
    (void)stolen_time_arrive(&s, 1e6, 1, START + 20000000);
    StolenWait w =
        stolen_time_wait(&s, (StolenQuestion){9000000, 0, TARGET, 1, START + 29000000, 0});
    assert_int_equal(w.ns, 0);
    assert_int_equal(w.taken, 0);
}

// All cores stand still, but only the block on one of them has ended.
static void running_blocks_count(void **state) {
    (void)state;
    StolenTime s = {0};
    TimeNs     now = START + 9000000;
    (void)stolen_time_arrive(&s, 1e6, 2, START);
    stolen_time_take(&s, 8e6);
    assert_int_equal(stolen_time_wait(&s, (StolenQuestion){9000000, 0, TARGET, 2, now, 0}).ns,
                     4000000);
    StolenWait w = stolen_time_wait(&s, (StolenQuestion){9000000, 0, TARGET, 2, now, 8e6});
    assert_int_equal(w.ns, 8000000);
    assert_int_equal(w.taken, 16000000);
    stolen_time_idle(&s);
    assert_int_equal(stolen_time_wait(&s, (StolenQuestion){9000000, 0, TARGET, 2, now, 8e6}).ns, 0);
}

// A burst would miss the target without other processes, but by far less.
static void a_small_part_without_them_leaves_the_blame(void **state) {
    (void)state;
    StolenTime s = {0};
    TimeNs     now = START + 100000000;
    (void)stolen_time_arrive(&s, 1e6, 1, START);
    stolen_time_take(&s, 90e6);
    StolenQuestion q = {100000000, 6000000, TARGET, 1, now, 0};
    assert_int_equal(stolen_time_wait(&s, q).ns, 90000000);
    q.least = 30000000;
    assert_int_equal(stolen_time_wait(&s, q).ns, 0);
}

// The virtual queue: work that waits although no time was taken.
static void backlog_drains_on_all_cores(void **state) {
    (void)state;
    StolenTime s = {0};
    assert_int_equal(stolen_time_arrive(&s, 8e6, 2, START), 0);
    assert_int_equal(stolen_time_arrive(&s, 8e6, 2, START), 4000000);
    assert_int_equal(stolen_time_arrive(&s, 8e6, 2, START + 3000000), 5000000);
    assert_int_equal(stolen_time_arrive(&s, 8e6, 2, START + 100000000), 0);
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(waits_are_blamed_on_their_cause),
        cmocka_unit_test(a_queue_that_was_empty_starts_anew),
        cmocka_unit_test(running_blocks_count),
        cmocka_unit_test(a_small_part_without_them_leaves_the_blame),
        cmocka_unit_test(backlog_drains_on_all_cores),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
