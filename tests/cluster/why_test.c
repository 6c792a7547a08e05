// Reasons for waiting in small cases; with the missing resource added, the job starts.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "cluster/sim/job_event_log.h"
#include "cluster/profile/profiles.h"
#include "cluster/sim/why.h"
#include "policy/policies.h"
#include "tests/runner.h"

enum { MOST = 16 };
#define SECOND CLUSTER_SECOND

typedef struct Case {
    Job             jobs[MOST];
    ServerSpec      servers[4];
    uint32_t        class_of[MOST];
    JobList         list;
    ServerList      room;
    ClusterRun      run;
    ClusterResult   result;
    ClusterProfiles profiles;
} Case;

static Arena arena, own;

static int begin(void **state) {
    (void)state;
    if (arena_init(&own, (size_t)1 << 28) != ERR_OK) return -1;
    return arena_init(&arena, (size_t)1 << 28) == ERR_OK ? 0 : -1;
}

static int end(void **state) {
    (void)state;
    arena_finish(&arena);
    arena_finish(&own);
    return 0;
}

static const void *defaults(const ClusterPolicy *p) {
    if (p->settings_size == 0) return NULL;
    Settings s = {.rows = p->rows,
                  .n_rows = p->n_rows,
                  .values = arena_alloc(&arena, 1, p->settings_size, 16),
                  .arena = &arena};
    settings_default(&s);
    return s.values;
}

static void open_case(Case *c, uint32_t servers, uint32_t gpus, const char *policy) {
    *c = (Case){
        .list = {.at = c->jobs, .name = "case", .format = "plain"},
        .room = {.at = c->servers, .n = servers, .racks = 1, .gpus = (uint64_t)servers * gpus}};
    for (uint32_t i = 0; i < servers; i++)
        c->servers[i] = (ServerSpec){.name = "s",
                                     .gpus = gpus,
                                     .cores_milli = gpus * 3000,
                                     .memory_mib = gpus * 64000,
                                     .gpu_type = ""};
    c->run = (ClusterRun){
        .jobs = &c->list, .servers = &c->room, .policy = policies_cluster_find(policy)};
    assert_non_null(c->run.policy);
    c->run.knows = c->run.policy->knows;
    c->run.settings = defaults(c->run.policy);
    assert_int_equal(cluster_sim_params("own", c->run.policy, &c->run.params), ERR_OK);
    c->run.params.stops = (ClusterStopLimits){.min_run = 0};  // jobs of a minute are stopped, too
}

static Job *add_job(Case *c, uint32_t at_s, uint32_t gpus, uint32_t work_s) {
    Job *j = &c->jobs[c->list.n++];
    *j = (Job){.id = "j",
               .submit = at_s * SECOND,
               .work = work_s * SECOND,
               .gpus = gpus,
               .gpu_milli = gpus > 0 ? CLUSTER_WHOLE_GPU : 0,
               .model = JOB_NONE,
               .tenant = JOB_NONE,
               .row = c->list.n - 1};
    return j;
}

static TimeNs waited(Case *c, uint32_t job) {
    ClusterSetup setup;
    assert_int_equal(cluster_setup(&c->run, &arena, &setup), ERR_OK);
    if (c->run.policy->load != NULL)
        assert_int_equal(c->run.policy->load(&setup, c->run.settings, &arena, &c->run.loaded),
                         ERR_OK);
    assert_int_equal(cluster_simulate(&c->run, &arena, &c->result), ERR_OK);
    return c->result.ends[job].waited;
}

// Two runs, as the command does; the reasons' times add up to the simulator's waiting time.
static const Why *explain(Case *c, uint32_t job) {
    Why          *w;
    ClusterResult r;
    (void)waited(c, job);
    assert_int_equal(why_open(&c->run, job, c->result.ends, &own, &w), ERR_OK);
    ClusterRun watched = c->run;
    watched.after = why_note;
    watched.watcher = w;
    assert_int_equal(cluster_simulate(&watched, &arena, &r), ERR_OK);
    assert_memory_equal(r.ends, c->result.ends, r.n * sizeof *r.ends);
    assert_int_equal(why_waited(w), r.ends[job].waited);
    return w;
}

static void too_few_gpus(void **state) {
    (void)state;
    Case c;
    open_case(&c, 1, 8, "fifo");
    add_job(&c, 0, 6, 100);
    add_job(&c, 10, 4, 50);
    const Why *w = explain(&c, 1);
    assert_int_equal(why_most(w), WHY_GPUS);
    assert_int_equal(why_for(w, WHY_GPUS), 90 * SECOND);
    assert_int_equal(why_lack(w, WHY_GPUS).first, 2 * CLUSTER_WHOLE_GPU);
    c.servers[0].gpus += 2;  // what was missing
    c.room.gpus += 2;
    assert_int_equal(waited(&c, 1), 0);
    c.servers[0].gpus -= 1;
    c.room.gpus -= 1;
    assert_int_equal(waited(&c, 1), 90 * SECOND);
}

static void scattered_gpus(void **state) {
    (void)state;
    Case c;
    open_case(&c, 2, 8, "fifo");
    add_job(&c, 0, 5, 100);
    add_job(&c, 0, 5, 200);
    add_job(&c, 10, 4, 50);
    const Why *w = explain(&c, 2);
    assert_int_equal(why_most(w), WHY_SCATTERED);
    assert_int_equal(why_waited(w), 90 * SECOND);
    assert_int_equal(why_lack(w, WHY_SCATTERED).first, CLUSTER_WHOLE_GPU);
    c.jobs[1].gpus = 3;  // the same GPUs in use, but one: all on one server
    assert_int_equal(waited(&c, 2), 0);
}

static void too_few_cores_and_too_little_memory(void **state) {
    (void)state;
    for (uint32_t memory = 0; memory < 2; memory++) {
        Case c;
        open_case(&c, 1, 8, "fifo");
        Job *big = add_job(&c, 0, 1, 100), *small = add_job(&c, 20, 1, 10);
        if (memory) {
            big->memory_mib = 400000;
            small->memory_mib = 200000;
        } else {
            big->cores_milli = 20000;
            small->cores_milli = 6000;
        }
        const Why *w = explain(&c, 1);
        WhyReason  r = memory ? WHY_MEMORY : WHY_CORES;
        assert_int_equal(why_most(w), r);
        assert_int_equal(why_for(w, r), 80 * SECOND);
        assert_int_equal(why_lack(w, r).first, memory ? 88000 : 2000);
        uint32_t *has = memory ? &c.servers[0].memory_mib : &c.servers[0].cores_milli;
        *has += (uint32_t)why_lack(w, r).first;
        assert_int_equal(waited(&c, 1), 0);
    }
}

static void another_type(void **state) {
    (void)state;
    static const char *types[] = {"v100", "t4"};
    Case               c;
    open_case(&c, 2, 4, "fifo");
    c.servers[0].gpu_type = types[0];
    c.servers[1].gpu_type = types[1];
    c.list.gpu_types = types;
    c.list.n_gpu_types = 2;
    add_job(&c, 0, 4, 100)->gpu_types = 1;
    add_job(&c, 10, 2, 100)->gpu_types = 1;
    const Why *w = explain(&c, 1);
    assert_int_equal(why_most(w), WHY_TYPE);
    assert_int_equal(why_for(w, WHY_TYPE), 90 * SECOND);
    c.jobs[1].gpu_types = 3;
    assert_int_equal(waited(&c, 1), 0);
}

static void others_go_before_it(void **state) {
    (void)state;
    Case     c;
    uint32_t n;
    open_case(&c, 1, 4, "sjf");
    add_job(&c, 0, 4, 100);
    add_job(&c, 10, 4, 1000);  // the longest, so the last
    add_job(&c, 20, 4, 50);
    const Why *w = explain(&c, 1);
    assert_int_equal(why_for(w, WHY_GPUS), 90 * SECOND);
    assert_int_equal(why_for(w, WHY_BEHIND), 50 * SECOND);
    const WhyBlocker *rivals = why_blockers(w, &n);
    assert_int_equal(n, 1);
    assert_int_equal(rivals[0].job, 2);
    assert_int_equal(rivals[0].as, WHY_BEHIND);
    assert_int_equal(rivals[0].ns, 50 * SECOND);
    c.list.n = 2;  // without that one
    assert_int_equal(waited(&c, 1), 90 * SECOND);
}

static void it_was_stopped(void **state) {
    (void)state;
    Case     c;
    uint32_t n;
    open_case(&c, 1, 4, "srtf");
    add_job(&c, 0, 4, 1000);
    add_job(&c, 100, 4, 50);
    const Why *w = explain(&c, 0);
    assert_int_equal(why_most(w), WHY_STOPPED);
    assert_int_equal(why_for(w, WHY_STOPPED), 50 * SECOND);
    const WhyBlocker *rivals = why_blockers(w, &n);
    assert_int_equal(n, 1);
    assert_int_equal(rivals[0].job, 1);
    c.list.n = 1;
    assert_int_equal(waited(&c, 0), 0);
}

static void the_head_blocks(void **state) {
    (void)state;
    Case     c;
    uint32_t n;
    open_case(&c, 1, 8, "fifo");
    add_job(&c, 0, 4, 100);
    add_job(&c, 10, 8, 50);
    add_job(&c, 20, 2, 10);
    const Why *w = explain(&c, 2);
    assert_int_equal(why_for(w, WHY_HEAD), 80 * SECOND);
    assert_int_equal(why_for(w, WHY_BEHIND), 50 * SECOND);
    const WhyBlocker *rivals = why_blockers(w, &n);
    assert_int_equal(n, 2);
    assert_int_equal(rivals[0].job, 1);
    assert_int_equal(rivals[0].as, WHY_HEAD);
    c.jobs[1].gpus = 4;  // the head fits, or
    c.jobs[0].gpus = 2;
    assert_int_equal(waited(&c, 2), 0);
    c.jobs[1].gpus = 8;
    c.jobs[1].submit = 30 * SECOND;  // comes later
    Job late = c.jobs[1];
    c.jobs[1] = c.jobs[2];
    c.jobs[2] = late;
    assert_int_equal(waited(&c, 1), 0);
}

static void decisions_come_at_rounds(void **state) {
    (void)state;
    Case c;
    open_case(&c, 1, 8, "fifo");
    c.run.params.round = 60 * SECOND;
    add_job(&c, 0, 1, 300);
    add_job(&c, 70, 1, 10);
    const Why *w = explain(&c, 1);
    assert_int_equal(why_most(w), WHY_ROUND);
    assert_int_equal(why_waited(w), 50 * SECOND);
    c.run.params.round = 0;
    assert_int_equal(waited(&c, 1), 0);
}

// Puts every job on the first GPU, unless it does not fit with a co-runner there.
static uint32_t choosy(void *state, const ClusterView *v, ClusterAction *out, uint32_t max) {
    static const ClusterSlice there = {
        .gpus = 1, .mask = 1, .cores_milli = 1500, .memory_mib = 32000};
    (void)state;
    (void)max;
    for (uint32_t i = 0; i < v->n_waiting; i++) {
        const ClusterJob *j = &v->tasks[v->waiting[i]].job;
        bool              bears = v->servers[0].parts[0] >= j->gpu_milli;
        for (uint32_t k = 0; k < v->n_running; k++)
            bears = bears && profile_pair(v->setup->profiles, j->class,
                                          v->tasks[v->running[k]].job.class) > 0;
        if (!bears) continue;
        *out = (ClusterAction){
            .verb = CLUSTER_START, .task = v->waiting[i], .n_slices = 1, .slices = &there};
        return 1;
    }
    return 0;
}

static const ClusterPolicy policy_choosy = {.name = "choosy", .decide = choosy};

static void company_does_not_fit(void **state) {
    (void)state;
    Case c;
    open_case(&c, 1, 1, "fifo");
    c.run.policy = &policy_choosy;
    assert_int_equal(profile_load(NULL, &arena, &c.profiles), ERR_OK);
    c.run.profiles = &c.profiles;
    c.run.class_of = c.class_of;
    add_job(&c, 0, 1, 100)->gpu_milli = 500;
    add_job(&c, 10, 1, 100)->gpu_milli = 500;
    c.class_of[1] = 1;
    c.profiles.pair[1] = c.profiles.pair[PROFILE_CLASSES] = 0;
    const Why *w = explain(&c, 1);
    assert_int_equal(why_most(w), WHY_PAIR);
    c.profiles.pair[1] = c.profiles.pair[PROFILE_CLASSES] = 0.6;
    assert_int_equal(waited(&c, 1), 0);
}

// Whatever the policy, reasons add up to the time that a job waited.
static void reasons_add_up(void **state) {
    (void)state;
    Rng rng = {7};
    for (uint32_t p = 0; policies_cluster_at(p) != NULL; p++)
        for (uint32_t run = 0; run < 12; run++) {
            Case                 c;
            const ClusterPolicy *policy = policies_cluster_at(p);
            if (policy->learned) continue;
            open_case(&c, 2 + run % 2, 4, policy->name);
            for (uint32_t i = 0, at = 0; i < MOST; i++) {
                at += (uint32_t)rng_below(&rng, 60);
                add_job(&c, at, 1 + (uint32_t)rng_below(&rng, 5),
                        1 + (uint32_t)rng_below(&rng, 400));
            }
            for (uint32_t j = 0; j < MOST; j += 5) (void)explain(&c, j);
            arena_rewind(&own, 0);
        }
}

static void a_diary_tells_what_happened(void **state) {
    (void)state;
    Case        c;
    JobEventLog d;
    open_case(&c, 1, 4, "srtf");
    add_job(&c, 0, 4, 1000);
    add_job(&c, 100, 4, 50);
    job_event_log_open(&d, &c.run, JOB_EVENT_ALL_JOBS, &own);
    c.run.after = job_event_log_note;
    c.run.watcher = &d;
    assert_int_equal(cluster_simulate(&c.run, &arena, &c.result), ERR_OK);
    assert_int_equal(job_event_log_close(&d, &c.result), ERR_OK);
    static const struct {
        uint32_t     at_s, job;
        JobEventKind kind;
    } want[] = {{0, 0, JOB_EVENT_CAME},    {0, 0, JOB_EVENT_START},   {100, 1, JOB_EVENT_CAME},
                {100, 0, JOB_EVENT_STOP},  {100, 1, JOB_EVENT_START}, {150, 1, JOB_EVENT_END},
                {150, 0, JOB_EVENT_START}, {0, 0, JOB_EVENT_END}};
    assert_int_equal(d.n, sizeof want / sizeof *want);
    for (uint32_t i = 0; i < d.n; i++) {
        assert_int_equal(d.at[i].kind, want[i].kind);
        assert_int_equal(d.at[i].job, want[i].job);
        if (i + 1 < d.n) assert_int_equal(d.at[i].at, want[i].at_s * SECOND);
        assert_int_equal(d.at[i].n, d.at[i].kind == JOB_EVENT_START ? 1 : 0);
    }
    char  *text = NULL;
    size_t len = 0;
    FILE  *f = open_memstream(&text, &len);
    job_event_log_write(&d, f);
    (void)fclose(f);
    assert_non_null(strstr(text, "{\"at\":100000000000,\"kind\":\"stop\",\"job\":\"j\"}\n"));
    free(text);
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(too_few_gpus),
        cmocka_unit_test(scattered_gpus),
        cmocka_unit_test(too_few_cores_and_too_little_memory),
        cmocka_unit_test(another_type),
        cmocka_unit_test(others_go_before_it),
        cmocka_unit_test(it_was_stopped),
        cmocka_unit_test(the_head_blocks),
        cmocka_unit_test(decisions_come_at_rounds),
        cmocka_unit_test(company_does_not_fit),
        cmocka_unit_test(reasons_add_up),
        cmocka_unit_test(a_diary_tells_what_happened),
    };
    return cmocka_run_group_tests(tests, begin, end);
}
