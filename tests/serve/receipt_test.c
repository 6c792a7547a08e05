#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "serve/observe/receipt.h"
#include "tests/runner.h"

enum { MS = 1000000 };

static Receipt late(void) {  // 62.3 ms of 50
    return (Receipt){.id = "r-7",
                     .model = "digits",
                     .version = "1",
                     .end = RECEIPT_OK,
                     .began = 999 * MS,
                     .arrived = 1000 * MS,
                     .decoded = 1000 * MS + 100000,
                     .submitted = 1000 * MS + 200000,
                     .finished = 1062 * MS,
                     .answered = 1062 * MS + 300000,
                     .deadline = 1050 * MS,
                     .behind = "big",
                     .timing = {.queue_ns = 48 * MS + 200000,
                                .compute_ns = 14 * MS,
                                .blocks = 3,
                                .cores_most = 1,
                                .cores_least = 1,
                                .waiting = 3,
                                .late_cause = LIVE_QUEUEING}};
}

static void test_late(void **state) {
    (void)state;
    Receipt r = late();
    assert_int_equal(receipt_latency(&r), 62 * MS + 300000);
    assert_int_equal(receipt_queued(&r), 48 * MS);
    assert_int_equal(receipt_outcome(&r), RECEIPT_OUTCOME_MISSED);
    assert_int_equal(receipt_cause(&r), RECEIPT_CAUSE_QUEUEING);
    receipt_explain(&r);
    assert_string_equal(r.cause, "late by 12.3 ms of 50: queued 48 ms behind model 'big' (3 waited "
                                 "before it); computed 14 ms on 1 core");
}

// Queueing behind blocks that other processes held up is their fault, not the queue's.
static void test_other_programs(void **state) {
    (void)state;
    Receipt r = late();
    r.timing.queue_stolen_ns = 30 * MS;
    r.timing.taken_ns = 60 * MS;
    r.timing.taken_of_ns = 100 * MS;
    r.timing.late_cause = LIVE_PREEMPTED;
    assert_int_equal(receipt_cause(&r), RECEIPT_CAUSE_SYSTEM);
    receipt_explain(&r);
    assert_string_equal(r.cause,
                        "late by 12.3 ms of 50: queued 48 ms behind model 'big' (3 waited before "
                        "it), 30 ms of it because other programs took 60 ms of 100 ms of CPU; "
                        "computed 14 ms on 1 core");
    r.timing.late_cause = LIVE_THROTTLED;
    assert_int_equal(receipt_cause(&r), RECEIPT_CAUSE_THROTTLED);
}

// The loop was ready to decode and to answer, but other processes had its CPU.
static void test_delayed_front_end(void **state) {
    (void)state;
    Receipt r = late();
    r.timing.queue_ns = 2 * MS + 200000;
    r.timing.compute_ns = 10 * MS;
    r.finished = 1012 * MS + 300000;
    assert_int_equal(receipt_cause(&r), RECEIPT_CAUSE_FRONTEND);
    r.loop_delay_ns = 20 * MS;
    assert_int_equal(receipt_cause(&r), RECEIPT_CAUSE_FRONTEND);
    r.loop_delay_ns = 40 * MS;
    assert_int_equal(receipt_cause(&r), RECEIPT_CAUSE_SYSTEM);
    receipt_explain(&r);
    assert_string_equal(r.cause, "late by 12.3 ms of 50: computed 10 ms on 1 core; response sent "
                                 "50 ms later; other programs took 40 ms of the server's front "
                                 "end");
    r.loop_delay_ns = 90 * MS;  // at most what decoding and answering took
    receipt_explain(&r);
    assert_non_null(strstr(r.cause, "took 50.1 ms of the server's front end"));
    r = late();
    r.loop_delay_ns = 60 * MS;  // while the engine had it: its front end took no time
    assert_int_equal(receipt_cause(&r), RECEIPT_CAUSE_QUEUEING);
}

typedef struct CauseCase {
    TimeNs       queued, queue_stolen, stolen, interference;  // ms
    LiveCause    engine;
    ReceiptCause cause;
} CauseCase;

static void test_cause_is_the_largest_part(void **state) {
    (void)state;
    static const CauseCase cases[] = {
        {48, 0, 0, 0, LIVE_QUEUEING, RECEIPT_CAUSE_QUEUEING},
        {48, 0, 0, 0, LIVE_OVERLOAD, RECEIPT_CAUSE_OVERLOAD},
        {48, 10, 0, 0, LIVE_OVERLOAD, RECEIPT_CAUSE_OVERLOAD},
        {48, 40, 0, 0, LIVE_PREEMPTED, RECEIPT_CAUSE_SYSTEM},
        {30, 10, 15, 0, LIVE_PREEMPTED, RECEIPT_CAUSE_SYSTEM},  // both parts together
        {10, 0, 40, 5, LIVE_PREEMPTED, RECEIPT_CAUSE_SYSTEM},
        {10, 0, 5, 40, LIVE_CONTENTION, RECEIPT_CAUSE_CONTENTION},
        {10, 60, 0, 12, LIVE_CONTENTION, RECEIPT_CAUSE_CONTENTION},  // at most what it queued
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const CauseCase *c = &cases[i];
        Receipt          r = late();
        r.timing.queue_ns = c->queued * MS + 200000;
        r.timing.queue_stolen_ns = c->queue_stolen * MS;
        r.timing.stolen_ns = c->stolen * MS;
        r.timing.interference_ns = c->interference * MS;
        r.timing.compute_ns = (62 - c->queued) * MS;
        r.timing.late_cause = c->engine;
        if (receipt_cause(&r) != c->cause)
            fail_msg("case %zu: %s", i, receipt_cause_name(receipt_cause(&r)));
    }
}

static void test_in_time(void **state) {
    (void)state;
    Receipt r = late();
    r.met = true;
    receipt_explain(&r);
    assert_string_equal(r.cause, "");
    assert_int_equal(receipt_outcome(&r), RECEIPT_OUTCOME_MET);
    assert_int_equal(receipt_cause(&r), RECEIPT_CAUSE_NONE);
    r.met = false;
    r.deadline = 0;
    receipt_explain(&r);
    assert_string_equal(r.cause, "");
    assert_int_equal(receipt_outcome(&r), RECEIPT_NO_OUTCOME);
}

static void test_paused_and_slowed(void **state) {
    (void)state;
    Receipt r = late();
    r.paused_by = "noisy";
    r.timing = (LiveTiming){.queue_ns = 200000,
                            .compute_ns = 30 * MS,
                            .paused_ns = 31 * MS,
                            .interference_ns = 10 * MS,
                            .core_shortage_ns = 5 * MS,
                            .stolen_ns = 4 * MS,
                            .blocks = 9,
                            .level = 2,
                            .cores_least = 1,
                            .cores_most = 4,
                            .late_cause = LIVE_PREEMPTED};
    receipt_explain(&r);
    assert_string_equal(r.cause,
                        "late by 12.3 ms of 50: computed 30 ms on 1 to 4 cores, 10 ms of it by "
                        "interference (level 2), 5 ms by too few cores, 4 ms of it while other "
                        "programs ran on its cores; "
                        "paused 31 ms for model 'noisy'");
    assert_int_equal(receipt_cause(&r), RECEIPT_CAUSE_PREEMPTED);
}

// Each part of a request's time, when it is the longest that need not have been, is to blame.
static void test_who_is_to_blame(void **state) {
    (void)state;
    const struct {
        LiveTiming   t;
        ReceiptCause want;
    } cases[] = {
        {{.queue_ns = 40 * MS, .compute_ns = 22 * MS}, RECEIPT_CAUSE_QUEUEING},
        {{.queue_ns = 55 * MS, .compute_ns = 7 * MS, .late_cause = LIVE_OVERLOAD},
         RECEIPT_CAUSE_OVERLOAD},
        {{.queue_ns = 10 * MS, .compute_ns = 22 * MS, .paused_ns = 30 * MS},
         RECEIPT_CAUSE_PREEMPTED},
        {{.queue_ns = MS, .compute_ns = 61 * MS}, RECEIPT_CAUSE_COMPUTE},
        {{.queue_ns = 5 * MS, .compute_ns = 57 * MS, .interference_ns = 9 * MS},
         RECEIPT_CAUSE_CONTENTION},
        {{.queue_ns = 5 * MS,
          .compute_ns = 57 * MS,
          .interference_ns = 9 * MS,
          .core_shortage_ns = 20 * MS},
         RECEIPT_CAUSE_CONFLICT},
        {{.queue_ns = 5 * MS, .compute_ns = 57 * MS, .stolen_ns = 30 * MS}, RECEIPT_CAUSE_SYSTEM},
        {{.compute_ns = 57 * MS, .stolen_ns = 30 * MS, .late_cause = LIVE_THROTTLED},
         RECEIPT_CAUSE_THROTTLED},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        Receipt r = late();
        r.timing = cases[i].t;
        r.timing.blocks = 1;
        assert_string_equal(receipt_cause_name(receipt_cause(&r)),
                            receipt_cause_name(cases[i].want));
    }
    Receipt r = late();
    r.timing = (LiveTiming){.queue_ns = 50 * MS, .compute_ns = 12 * MS, .blocks = 1};
    r.submitted = r.arrived + 49 * MS;
    assert_int_equal(receipt_cause(&r), RECEIPT_CAUSE_COMPILING);
    r.decoded = r.submitted;
    assert_int_equal(receipt_cause(&r), RECEIPT_CAUSE_FRONTEND);
}

static void test_expired(void **state) {
    (void)state;
    Receipt r = late();
    r.end = RECEIPT_EXPIRED;
    r.deadline = 1020 * MS;
    r.expire = 1020 * MS;
    r.finished = r.answered = 1020 * MS + 114000;
    r.timing.blocks = 0;
    receipt_explain(&r);
    assert_string_equal(
        r.cause, "deadline of 20000 us passed after 20114 us while queued behind model 'big'");
    r.timing = (LiveTiming){0};
    r.submitted = r.finished = r.answered = 0;  // times unknown: not before the deadline
    receipt_explain(&r);
    assert_string_equal(r.cause,
                        "deadline of 20000 us passed after 20000 us while compiling its shapes");
    assert_int_equal(receipt_cause(&r), RECEIPT_CAUSE_COMPILING);
    r.decoded = 0;
    receipt_explain(&r);
    assert_string_equal(r.cause, "deadline of 20000 us passed after 20000 us while decoding");
    assert_int_equal(receipt_cause(&r), RECEIPT_CAUSE_FRONTEND);
}

static void test_every_end_and_cause(void **state) {
    (void)state;
    for (int end = 0; end < RECEIPT_ENDS; end++)
        for (uint32_t cause = 0; cause < 9; cause++) {  // two beyond the engine's
            Receipt r = late();
            r.end = (ReceiptEnd)end;
            r.timing.late_cause = cause;
            receipt_explain(&r);
            assert_in_range(strlen(r.cause), 1, RECEIPT_CAUSE - 1);
            ReceiptOutcome o = receipt_outcome(&r);
            ReceiptCause   c = receipt_cause(&r);
            assert_int_equal(c == RECEIPT_CAUSE_NONE, o == RECEIPT_NO_OUTCOME);
            assert_int_equal(*receipt_advice(c) == '\0', c == RECEIPT_CAUSE_NONE);
            assert_true(receipt_http_status((ReceiptEnd)end) >= 200);
            assert_int_equal(receipt_grpc_status((ReceiptEnd)end) == 0, end == RECEIPT_OK);
        }
}

static void test_long_names_are_cut(void **state) {
    (void)state;
    char name[500];
    memset(name, 'x', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    Receipt r = late();
    r.behind = r.paused_by = name;
    r.timing.paused_ns = 40 * MS;
    receipt_explain(&r);
    assert_int_equal(strlen(r.cause), RECEIPT_CAUSE - 1);
}

static void test_empty(void **state) {
    (void)state;
    for (int end = 0; end < RECEIPT_ENDS; end++) {
        Receipt r = {.end = (ReceiptEnd)end};
        receipt_explain(&r);
        assert_int_equal(receipt_latency(&r), 0);
        assert_int_equal(receipt_cause(&r), RECEIPT_CAUSE_NONE);
    }
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_late),
        cmocka_unit_test(test_other_programs),
        cmocka_unit_test(test_delayed_front_end),
        cmocka_unit_test(test_cause_is_the_largest_part),
        cmocka_unit_test(test_in_time),
        cmocka_unit_test(test_paused_and_slowed),
        cmocka_unit_test(test_who_is_to_blame),
        cmocka_unit_test(test_expired),
        cmocka_unit_test(test_every_end_and_cause),
        cmocka_unit_test(test_long_names_are_cut),
        cmocka_unit_test(test_empty),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
