// Illegal plans abort the simulator; a few legal edge cases do not.
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "cluster/sim/cluster_run.h"
#include "tests/runner.h"

static Arena arena;

static int begin(void **state) {
    (void)state;
    return arena_init(&arena, (size_t)1 << 26) == ERR_OK ? 0 : -1;
}

static int end(void **state) {
    (void)state;
    arena_finish(&arena);
    return 0;
}

// Job 0 has a GPU, job 1 requests two, job 2 half of one; job 3 two, and may have 1 to 3.
// A job is stopped at most once. Classes 0 and 1 of the profiles do not fit into a GPU's memory
// together.
typedef struct Fault {
    const char   *what;
    ClusterAction steps[4];
    uint32_t      n;
    bool          legal;
} Fault;

#define ON(...)                                                                                    \
    (const ClusterSlice[]) { __VA_ARGS__ }
#define START(t, k, of)                                                                            \
    { .verb = CLUSTER_START, .task = (t), .n_slices = (k), .slices = of }
#define LEVEL(t, k, of)                                                                            \
    { .verb = CLUSTER_RESIZE, .task = (t), .n_slices = (k), .slices = of }
#define THREE(mask_) ON({.server = 1, .gpus = (uint32_t)__builtin_popcount(mask_), .mask = (mask_)})
#define STOP(t)                                                                                    \
    { .verb = CLUSTER_PREEMPT, .task = (t) }

static const Fault *fault;

static uint32_t fault_decide(void *state, const ClusterView *v, ClusterAction *out, uint32_t max) {
    static ClusterSlice all[4][2] = {{{.server = 0, .gpus = 1, .mask = 1}},
                                     {{.server = 0, .gpus = 2, .mask = 6}},
                                     {{.server = 1, .gpus = 1, .mask = 1}},
                                     {{.server = 1, .gpus = 2, .mask = 6}}};
    (void)state;
    (void)max;
    uint32_t n = 0;
    if ((v->reason & CLUSTER_JOB_ARRIVED) != 0) {
        out[n++] = (ClusterAction){.verb = CLUSTER_START, .n_slices = 1, .slices = all[0]};
        for (uint32_t i = 0; i < fault->n; i++) out[n++] = fault->steps[i];
        return n;
    }
    for (uint32_t i = 0; i < v->n_waiting; i++)
        out[n++] = (ClusterAction){.verb = CLUSTER_START,
                                   .task = v->waiting[i],
                                   .n_slices = 1,
                                   .slices = all[v->waiting[i]]};
    return n;
}

static const ClusterPolicy fault_policy = {.name = "fault", .decide = fault_decide};

static void run_fault(void) {
    static Job jobs[] = {
        {.id = "a", .work = 1000, .gpus = 1, .gpu_milli = 1000},
        {.id = "b", .work = 1000, .gpus = 2, .gpu_milli = 1000},
        {.id = "c", .work = 1000, .gpus = 1, .gpu_milli = 500},
        {.id = "d", .work = 1000, .gpus = 2, .gpus_min = 1, .gpus_max = 3, .gpu_milli = 1000}};
    static uint32_t        class_of[] = {0, 1, 0, 0};
    static ClusterProfile  two[2];
    static double          pair[PROFILE_CLASSES * PROFILE_CLASSES];
    static ClusterProfiles p = {.at = two, .n = 2, .pair = pair};
    ServerList             servers;
    ServerSpec        like = {.gpus = 4, .cores_milli = 8000, .memory_mib = 8000, .gpu_type = ""};
    JobList           l = {.at = jobs, .n = 4};
    ClusterResult     r;
    const ProfileGrid one = {.rows = 1, .columns = 1, .row = {1}, .column = {1}, .at = {{1}}};
    two[0] = two[1] = (ClusterProfile){.speed = one, .spread = one};
    pair[0] = 0.5;
    assert_int_equal(server_list_equal(2, &like, &arena, &servers), ERR_OK);
    ClusterRun x = {.jobs = &l,
                    .servers = &servers,
                    .policy = &fault_policy,
                    .profiles = &p,
                    .params = {.gpus_only = true, .stops = {.max_stops = 1}},
                    .class_of = class_of};
    assert_int_equal(cluster_simulate(&x, &arena, &r), ERR_OK);
}

static bool dies(void) {
    int   status = 0;
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        signal(SIGABRT, SIG_DFL);
        if (freopen("/dev/null", "w", stderr) == NULL) _exit(1);
        run_fault();
        _exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status) || WEXITSTATUS(status) == 0);
    return WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT;
}

static void test_what_is_not_allowed_aborts(void **state) {
    (void)state;
    const Fault faults[] = {
        {"nothing", {STOP(0)}, 0, true},
        {"half beside a half",
         {LEVEL(0, 1, ON({.server = 0, .gpus = 1, .mask = 1, .gpu_milli = 500})),
          START(2, 1, ON({.server = 0, .gpus = 1, .mask = 1}))},
         2,
         true},
        {"a lesser part", {START(1, 1, ON({.server = 0, .gpus = 2, .gpu_milli = 400}))}, 1, true},
        {"a gang on two",
         {START(1, 2, ON({.server = 0, .gpus = 1}, {.server = 1, .gpus = 1}))},
         1,
         true},
        {"a GPU twice", {START(1, 1, ON({.server = 0, .gpus = 2, .mask = 3}))}, 1, false},
        {"part of a full GPU", {START(2, 1, ON({.server = 0, .gpus = 1, .mask = 1}))}, 1, false},
        {"half a gang", {START(1, 1, ON({.server = 0, .gpus = 1}))}, 1, false},
        {"more than the gang", {START(1, 1, ON({.server = 0, .gpus = 3}))}, 1, false},
        {"a server twice",
         {START(1, 2, ON({.server = 1, .gpus = 1}, {.server = 1, .gpus = 1}))},
         1,
         false},
        {"a slice without GPUs",
         {START(1, 2, ON({.server = 0, .gpus = 2}, {.server = 1, .gpus = 0}))},
         1,
         false},
        {"more than is asked for",
         {START(2, 1, ON({.server = 1, .gpus = 1, .gpu_milli = 501}))},
         1,
         false},
        {"too many cores",
         {START(1, 1, ON({.server = 0, .gpus = 2, .cores_milli = 8001}))},
         1,
         false},
        {"too much memory",
         {LEVEL(0, 1, ON({.server = 0, .gpus = 1, .memory_mib = 8001}))},
         1,
         false},
        {"another server", {LEVEL(0, 1, ON({.server = 1, .gpus = 1}))}, 1, false},
        {"other GPUs", {LEVEL(0, 1, ON({.server = 0, .gpus = 1, .mask = 2}))}, 1, false},
        {"a level above what is asked for",
         {LEVEL(0, 1, ON({.server = 0, .gpus = 1, .gpu_milli = 1001}))},
         1,
         false},
        {"a job that waits is stopped", {STOP(1)}, 1, false},
        {"a job that runs is started", {START(0, 1, ON({.server = 1, .gpus = 1}))}, 1, false},
        {"a job that is not there", {STOP(7)}, 1, false},
        {"a server that is not there", {START(1, 1, ON({.server = 2, .gpus = 2}))}, 1, false},
        {"an elastic job on fewer GPUs", {START(3, 1, THREE(2))}, 1, true},
        {"an elastic job on too many GPUs",
         {START(3, 1, ON({.server = 1, .gpus = 4, .mask = 15}))},
         1,
         false},
        {"rescaled, and rescaled again",
         {START(3, 1, THREE(6)), STOP(3), START(3, 1, THREE(2)), STOP(3)},
         4,
         true},
        {"stopped twice",
         {START(3, 1, THREE(6)), STOP(3), START(3, 1, THREE(12)), STOP(3)},
         4,
         false},
        {"two that do not fit into a GPU's memory",
         {LEVEL(0, 1, ON({.server = 0, .gpus = 1, .mask = 1, .gpu_milli = 500})),
          START(1, 1, ON({.server = 0, .gpus = 2, .mask = 3, .gpu_milli = 500}))},
         2,
         false},
    };
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
        fault = &faults[i];
        if (dies() == fault->legal)
            fail_msg("%s: %s", fault->what, fault->legal ? "died" : "lived");
    }
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_what_is_not_allowed_aborts)};
    return cmocka_run_group_tests(tests, begin, end);
}
