#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "tests/chip/test_package.h"
#include "tests/runner.h"

static ChipResult simulate(TestPackage *y) {
    ChipResult r;
    assert_int_equal(chip_simulate(&y->run, &y->arena, &r), ERR_OK);
    return r;
}

// Random legal actions; checks the view at every call.
typedef struct RandomPolicy {
    Rng      rng;
    uint32_t drops, throttles, wakes, plans, commits;
} RandomPolicy;

static size_t random_policy_size(const ChipSetup *setup, const void *settings) {
    (void)setup, (void)settings;
    return sizeof(RandomPolicy);
}

static RandomPolicy random_policy_seen;  // of the last run

static void random_policy_init(void *state, const ChipSetup *setup, const void *settings,
                               const void *loaded) {
    (void)settings, (void)loaded;
    ((RandomPolicy *)state)->rng = setup->rng;
}

static void check_view(const ChipView *v) {
    uint32_t running = 0;
    uint64_t slots = 0;
    float    demand = 0;
    for (uint32_t i = 0; i < v->n_waiting; i++) {
        assert_true(v->waiting[i] < v->n_tasks && v->tasks[v->waiting[i]].unit == CHIP_NONE);
        assert_true(i == 0 ||
                    v->tasks[v->waiting[i]].request.id > v->tasks[v->waiting[i - 1]].request.id);
    }
    for (uint32_t i = 0; i < v->n_tasks; i++) {
        const ChipTask *t = &v->tasks[i];
        running += t->unit != CHIP_NONE;
        assert_true(t->unit == CHIP_NONE || v->units[t->unit].task == i);
        assert_true(t->slot < 64 && (slots >> t->slot & 1) == 0);
        assert_true(t->since <= v->now && t->request.arrival <= v->now);
        assert_true(t->layer < v->setup->tenants[t->request.tenant].model->n_layers);
        slots |= UINT64_C(1) << t->slot;
    }
    for (uint32_t u = 0; u < v->setup->n_units; u++) {
        demand += fminf(v->units[u].bytes_ns, v->units[u].cap);
        assert_true(v->units[u].free_at >= v->now);
    }
    for (uint32_t i = 0; i < v->n_free; i++) {
        assert_true(v->units[v->free[i]].task == CHIP_NONE);
        assert_true(v->units[v->free[i]].free_at == v->now);
        assert_true(i == 0 || v->free[i] > v->free[i - 1]);
    }
    assert_int_equal(running + v->n_waiting, v->n_tasks);
    assert_int_equal(running + v->n_free, v->setup->n_units);
    assert_true(fabsf(demand - v->demand) < 1e-3F);
}

static uint32_t random_policy_decide(void *state, const ChipView *v, ChipAction *out,
                                     uint32_t max) {
    RandomPolicy *c = state;
    uint32_t      n = 0, starts = test_package_decide(NULL, v, out, max / 4);
    bool          named[64] = {0};
    check_view(v);
    for (uint32_t i = 0; i < starts; i++) {
        if (v->n_free < v->setup->n_units && rng_below(&c->rng, 4) == 0) continue;
        out[n++] = out[i];
        named[out[i].task] = true;
    }
    uint32_t end = n;
    for (uint32_t w = 0; w < v->n_waiting; w++) {
        if (named[v->waiting[w]] || rng_below(&c->rng, 40) != 0) continue;
        out[end++] = (ChipAction){.verb = CHIP_DROP, .task = v->waiting[w]};
        c->drops++;
    }
    for (uint32_t u = 0; u < v->setup->n_units; u++) {
        if (v->units[u].task == CHIP_NONE || rng_below(&c->rng, 5) != 0) continue;
        float cap = rng_below(&c->rng, 2) == 0 ? INFINITY : 0.1F + 5 * rng_unit(&c->rng);
        out[end++] = (ChipAction){.verb = CHIP_THROTTLE, .unit = u, .cap = cap};
        c->throttles++;
    }
    out[end++] = (ChipAction){.verb = CHIP_WAKE, .at = v->now + 1 + (TimeNs)rng_below(&c->rng, 99)};
    c->wakes++;
    return end;
}

static void random_policy_plan(void *state, const ChipView *v, ChipPlanCost *cost) {
    RandomPolicy *c = state;
    check_view(v);
    assert_int_equal(v->now % v->setup->period, 0);
    assert_int_equal(c->plans, c->commits);
    c->plans++;
    *cost = (ChipPlanCost){.macs = (double)rng_below(&c->rng, 300), .ops = 1};
}

static void random_policy_commit(void *state) {
    RandomPolicy *c = state;
    c->commits++;
    assert_int_equal(c->plans, c->commits);
    random_policy_seen = *c;
}

static const ChipPolicy random_policy = {.name = "random_policy",
                                         .state_size = random_policy_size,
                                         .init = random_policy_init,
                                         .decide = random_policy_decide,
                                         .plan = random_policy_plan,
                                         .commit = random_policy_commit};

static void test_anything_legal_keeps_the_balance(void **state) {
    (void)state;
    Rng          rng = {11};
    RandomPolicy sum = {0};
    for (int round = 0; round < 300; round++) {
        TestPackage y;
        ChipResult  once, again;
        test_package_random(&y, &rng);
        y.run.policy = &random_policy;
        y.run.seed = (uint64_t)round;
        y.run.setup.period = 50;
        y.run.controller.mac_ns = 2;
        random_policy_seen = (RandomPolicy){0};
        once = simulate(&y);
        sum.drops += random_policy_seen.drops;
        sum.throttles += random_policy_seen.throttles;
        sum.plans += random_policy_seen.plans;
        again = simulate(&y);
        assert_memory_equal(once.answers, again.answers, once.n * sizeof *once.answers);
        assert_true(once.layers == again.layers && once.layer_pj == again.layer_pj);
        assert_true(once.decisions == again.decisions && once.policy_pj == again.policy_pj);
        test_package_close(&y);
    }
    assert_true(sum.drops > 100 && sum.throttles > 100 && sum.plans > 100);
}

// Plans start at multiples of the period while there are tasks, one at a time, and take effect
// after what they cost: 100 operations at 2 a nanosecond and 50 products at 1.
typedef struct CallLog {
    TimeNs   planned[8], decided[16];
    uint32_t n_planned, n_decided, n_commits, commits_at[16];
} CallLog;

static CallLog call_log;

static void log_plan(void *state, const ChipView *v, ChipPlanCost *cost) {
    (void)state;
    call_log.planned[call_log.n_planned++] = v->now;
    *cost = (ChipPlanCost){.macs = 50, .weight_bytes = 10, .ops = 100};
}

static void log_commit(void *state) {
    (void)state;
    call_log.n_commits++;
}

static uint32_t log_decide(void *state, const ChipView *v, ChipAction *out, uint32_t max) {
    call_log.commits_at[call_log.n_decided] = call_log.n_commits;
    call_log.decided[call_log.n_decided++] = v->now;
    return test_package_decide(state, v, out, max);
}

static const ChipPolicy logger = {
    .name = "logger", .plan = log_plan, .commit = log_commit, .decide = log_decide};

static void test_plans_take_time(void **state) {
    (void)state;
    TestPackage y;
    call_log = (CallLog){0};
    test_package_open(&y, 1, (uint32_t[]){1}, 8);
    test_package_tenant(&y, 1, (ChipCost[]){{150, 1, 0}});
    y.run.policy = &logger;
    y.run.setup.period = 60;
    y.run.controller =
        (ChipController){.mac_ns = 1, .op_ns = 2, .mac_pj = 3, .op_pj = 5, .byte_pj = 7};
    test_package_ask(&y, 0, 10, 1000);
    test_package_ask(&y, 0, 300, 1000);
    ChipResult r = simulate(&y);
    // arrives at 10, plans at 60 until 160, ends at 160; 120 is skipped, since a plan is in
    // progress. Arrives at 300, the start of a period, plans; at 420 again.
    static const TimeNs   planned[] = {60, 300, 420}, decided[] = {10, 160, 300, 400, 450};
    static const uint32_t commits_at[] = {0, 1, 1, 2, 2};
    assert_int_equal(r.plans, 3);
    assert_memory_equal(call_log.planned, planned, sizeof planned);
    assert_int_equal(r.decisions, 5);
    assert_memory_equal(call_log.decided, decided, sizeof decided);
    assert_memory_equal(call_log.commits_at, commits_at, sizeof commits_at);
    assert_true(r.planning_ns == 300 && r.policy_pj == 3 * (150 + 70 + 500));
    test_package_close(&y);
}

// Actions that the policy of test_illegal returns, once.
static ChipAction wrong[3];
static uint32_t   n_wrong;

static uint32_t decide_wrong(void *state, const ChipView *v, ChipAction *out, uint32_t max) {
    (void)state, (void)v, (void)max;
    memcpy(out, wrong, sizeof wrong);
    return n_wrong;
}

// The simulator aborts with a message.
static void expect_abort(const char *sentence) {
    static const ChipPolicy policy = {.name = "wrong", .decide = decide_wrong};
    int                     ends[2];
    char                    text[512] = "";
    assert_int_equal(pipe(ends), 0);
    pid_t child = fork();
    if (child == 0) {
        TestPackage y;
        ChipResult  r;
        (void)dup2(ends[1], STDERR_FILENO);
        test_package_open(&y, 2, (uint32_t[]){1, 1}, 8);
        test_package_tenant(&y, 1, (ChipCost[]){{100, 1, 1}, {INFINITY, 1, 1}});
        test_package_ask(&y, 0, 0, 150);
        test_package_ask(&y, 0, 0, 150);
        y.run.policy = &policy;
        signal(SIGABRT, SIG_DFL);
        (void)!chip_simulate(&y.run, &y.arena, &r);
        _exit(0);
    }
    int status = 0;
    close(ends[1]);
    assert_true(read(ends[0], text, sizeof text - 1) > 0);
    close(ends[0]);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
    if (strstr(text, sentence) == NULL) print_error("%s", text);
    assert_non_null(strstr(text, sentence));
}

static void test_illegal(void **state) {
    (void)state;
    const ChipAction start = {.verb = CHIP_START}, drop = {.verb = CHIP_DROP};
    const struct {
        ChipAction  at[3];
        uint32_t    n;
        const char *sentence;
    } cases[] = {
        {{{.verb = CHIP_START, .task = 2}}, 1, "starts a task that does not exist"},
        {{{.verb = CHIP_START, .unit = 2}}, 1, "on a unit that does not exist"},
        {{start, {.verb = CHIP_START, .unit = 1}}, 2, "starts a task that runs"},
        {{start, {.verb = CHIP_START, .task = 1}}, 2, "on a unit that is not free"},
        {{{.verb = CHIP_START, .unit = 1}}, 1, "on a unit that cannot compute it"},
        {{start, drop}, 2, "drops a task that runs"},
        {{drop, drop}, 2, "drops a task twice"},
        {{{.verb = CHIP_DROP, .task = 7}}, 1, "drops a task that does not exist"},
        {{{.verb = CHIP_THROTTLE, .cap = 1}}, 1, "throttles a unit that is free"},
        {{start, {.verb = CHIP_THROTTLE}}, 2, "throttles a unit to 0"},
        {{{.verb = CHIP_THROTTLE, .unit = 9, .cap = 1}}, 1, "throttles a unit that does not exist"},
        {{{.verb = CHIP_WAKE}}, 1, "asks for a wake-up in the past"},
        {{{.verb = (ChipVerb)9}}, 1, "an unknown verb"},
        {{start}, 100000, "returns more actions than max"},
        {{start}, 0, "policy_holds_requests_forever"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        memcpy(wrong, cases[i].at, sizeof wrong);
        n_wrong = cases[i].n;
        expect_abort(cases[i].sentence);
    }
}

// Tasks leave the waiting queue at both ends and in the middle.
static uint32_t decide_somehow(void *state, const ChipView *v, ChipAction *out, uint32_t max) {
    Rng *rng = state;
    (void)max;
    for (uint32_t i = 1; i < v->n_waiting; i++)
        assert_true(v->tasks[v->waiting[i - 1]].request.id < v->tasks[v->waiting[i]].request.id);
    if (v->n_waiting == 0 || v->n_free == 0) return 0;
    uint32_t at[] = {0, v->n_waiting - 1, (uint32_t)rng_below(rng, v->n_waiting)};
    out[0] = (ChipAction){
        .verb = CHIP_START, .task = v->waiting[at[rng_below(rng, 3)]], .unit = v->free[0]};
    return 1;
}

static size_t somehow_size(const ChipSetup *setup, const void *settings) {
    (void)setup, (void)settings;
    return sizeof(Rng);
}

static void test_a_long_queue(void **state) {
    (void)state;
    static const ChipPolicy somehow = {
        .name = "somehow", .state_size = somehow_size, .decide = decide_somehow};
    enum { N = 1500 };
    TestPackage  y;
    ChipRequest *many;
    test_package_open(&y, 1, (uint32_t[]){1}, 8);
    test_package_tenant(&y, 2, (ChipCost[]){{100, 1, 1}, {10, 1, 1}});
    many = arena_new(&y.arena, ChipRequest, N);
    for (uint32_t i = 0; i < N; i++) many[i] = (ChipRequest){.arrival = 3 * i, .deadline = 5 * i};
    y.run.trace = (ChipTrace){many, N};
    y.run.policy = &somehow;
    ChipResult r = simulate(&y);
    assert_int_equal(r.layers, 2 * N);
    assert_true(r.span == N * 110);
    test_package_close(&y);
}

// A clairvoyant policy sees all requests and can simulate other policies.
static uint32_t foreseen;
static uint8_t  foreseen_each[TEST_PACKAGE_REQUESTS];

static void seer_init(void *state, const ChipSetup *setup, const void *settings,
                      const void *loaded) {
    const ChipFuture *f = setup->future;
    (void)state, (void)settings, (void)loaded;
    assert_non_null(f);
    foreseen = f->simulate_with(f->engine, &test_package_fcfs, NULL, foreseen_each);
    assert_int_equal(foreseen, f->simulate_with(f->engine, &test_package_fcfs, NULL, NULL));
    assert_int_equal(f->n, 30);
}

static void test_rehearsal(void **state) {
    (void)state;
    static const ChipPolicy seer = {
        .name = "seer", .clairvoyant = true, .init = seer_init, .decide = test_package_decide};
    Rng      rng = {21};
    uint32_t sum = 0;
    for (int round = 0; round < 50; round++) {
        TestPackage y;
        test_package_random(&y, &rng);
        y.run.policy = &seer;
        ChipResult r = simulate(&y);
        uint32_t   met = 0;
        for (uint32_t i = 0; i < r.n; i++) {
            met += r.answers[i].outcome == OUTCOME_MET;
            assert_int_equal(foreseen_each[i], r.answers[i].outcome == OUTCOME_MET);
        }
        assert_int_equal(met, foreseen);
        sum += met;
        test_package_close(&y);
    }
    assert_true(sum > 100 && sum < 50 * 30);
}

// Recent requests weigh more: a hit, then misses.
static uint32_t decide_tallies(void *state, const ChipView *v, ChipAction *out, uint32_t max) {
    double rate[] = {1, 1, 0.98 / 1.98, 0.9604 / 2.9404};
    double n[] = {0, 1, 1.98, 2.9404};
    assert_true(fabs((double)v->tenant_stats[0].hit_rate - rate[v->now / 100]) < 1e-6);
    assert_true(fabs((double)v->tenant_stats[0].n - n[v->now / 100]) < 1e-6);
    return test_package_decide(state, v, out, max);
}

static void test_tallies(void **state) {
    (void)state;
    static const ChipPolicy policy = {.name = "tenant_stats", .decide = decide_tallies};
    TestPackage             y;
    test_package_open(&y, 1, (uint32_t[]){1}, 8);
    test_package_tenant(&y, 1, (ChipCost[]){{100, 1, 1}});
    y.run.policy = &policy;
    for (uint32_t i = 0; i < 3; i++) test_package_ask(&y, 0, 0, 150);
    ChipResult r = simulate(&y);
    assert_int_equal(r.decisions, 4);
    test_package_close(&y);
}

static void test_records(void **state) {
    (void)state;
    TestPackage y;
    test_package_open(&y, 1, (uint32_t[]){2}, 8);
    test_package_tenant(&y, 2, (ChipCost[]){{100, 1, 1}, {50, 1, 1}});
    test_package_ask(&y, 0, 5, 100);
    RecordList list = {.arena = &y.arena};
    y.run.records = record_list(&list);
    (void)simulate(&y);
    static const struct {
        RecordKind kind;
        TimeNs     at;
        uint32_t   first;
    } want[] = {{RECORD_ARRIVE, 5, 0},  {RECORD_START, 5, 0}, {RECORD_END, 105, 0},
                {RECORD_START, 105, 1}, {RECORD_END, 155, 1}, {RECORD_FINISH, 155, 0}};
    assert_int_equal(list.n, 6);
    for (uint32_t i = 0; i < 6; i++) {
        assert_int_equal(list.at[i].kind, want[i].kind);
        assert_int_equal(list.at[i].at, want[i].at);
        assert_int_equal(list.at[i].first, want[i].first);
        if (want[i].kind == RECORD_START || want[i].kind == RECORD_END)
            assert_true(list.at[i].cores.bits[0] == 1 && list.at[i].n_layers == 1);
    }
    assert_int_equal(list.at[5].outcome, OUTCOME_LATE);
    test_package_close(&y);
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_anything_legal_keeps_the_balance),
        cmocka_unit_test(test_plans_take_time),
        cmocka_unit_test(test_illegal),
        cmocka_unit_test(test_a_long_queue),
        cmocka_unit_test(test_rehearsal),
        cmocka_unit_test(test_tallies),
        cmocka_unit_test(test_records),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
