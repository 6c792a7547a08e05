// Leader election against a store with resourceVersions: at most one candidate holds the lease at
// any time, whatever happens to answers, processes and wall clocks.
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "kube/kube_lease.h"
#include "tests/kube/api_stand.h"
#include "tests/runner.h"

static const TimeNs MS = 1000000;

typedef struct Scene Scene;

typedef struct Candidate {
    Scene     *scene;
    KubeApi   *api;
    KubeLease *lease;
    uint32_t   acquired, lost;
    TimeNs     since;  // of the last acquisition
} Candidate;

struct Scene {
    Loop       *loop;
    ApiStand    stand;
    KubeConfig  config;
    Candidate   at[2];
    LoopTimer   tick;
    json_t     *object;  // NULL: there is no lease
    uint64_t    version;
    TimeNs      written;
    uint32_t    puts, posts, conflicts, gets;
    const char *muted;         // requests of this agent get no answer
    uint32_t    lose_answers;  // writes that are applied, with a reset instead of an answer
    uint32_t    releases;
    bool (*done)(Scene *s);
};

static json_t *spec_of(const Scene *s) { return json_object_get(s->object, "spec"); }

static const char *holder_of(const Scene *s) {
    return json_string_value(json_object_get(spec_of(s), "holderIdentity"));
}

static json_int_t transitions_of(const Scene *s) {
    return json_integer_value(json_object_get(spec_of(s), "leaseTransitions"));
}

static void store(Scene *s, json_t *object) {
    char version[32];
    (void)snprintf(version, sizeof version, "v%llu", (unsigned long long)++s->version);
    assert_int_equal(json_object_set_new(json_object_get(object, "metadata"), "resourceVersion",
                                         json_string(version)),
                     0);
    if (s->object != object) json_decref(s->object);
    s->object = object;
    s->written = clock_monotonic_ns();
}

static void answer_object(Scene *s, ApiConn *c, int status) {
    char *text = json_dumps(s->object, JSON_COMPACT);
    api_conn_answer(c, status, "", text);
    free(text);
}

static const char *version_in(const json_t *object) {
    const char *v =
        json_string_value(json_object_get(json_object_get(object, "metadata"), "resourceVersion"));
    return v != NULL ? v : "";
}

static void write_object(Scene *s, ApiConn *c, const ApiRequest *r) {
    bool    put = strcmp(r->method, "PUT") == 0;
    json_t *object = json_loads(r->body, 0, NULL);
    assert_non_null(object);
    *(put ? &s->puts : &s->posts) += 1;
    if (put ? s->object == NULL || strcmp(version_in(object), version_in(s->object)) != 0
            : s->object != NULL) {
        s->conflicts++;
        json_decref(object);
        api_conn_answer(c, 409, "", "{\"code\":409}");
        return;
    }
    store(s, object);
    if (s->lose_answers > 0) {
        s->lose_answers--;
        api_conn_reset(c);
    } else {
        answer_object(s, c, put ? 200 : 201);
    }
}

static void serve(void *self, ApiConn *c, const ApiRequest *r) {
    static const char path[] = "/apis/coordination.k8s.io/v1/namespaces/ns/leases";
    Scene            *s = self;
    assert_int_equal(strncmp(r->path, path, sizeof path - 1), 0);
    if (s->muted != NULL && strstr(r->head, s->muted) != NULL) return;
    if (strcmp(r->method, "GET") != 0) {
        write_object(s, c, r);
        return;
    }
    s->gets++;
    if (s->object != NULL)
        answer_object(s, c, 200);
    else
        api_conn_answer(c, 404, "", "{\"code\":404}");
}

static void never_both(const Scene *s) {
    uint32_t held = 0;
    for (int i = 0; i < 2; i++) held += s->at[i].lease != NULL && kube_lease_held(s->at[i].lease);
    assert_true(held <= 1);
}

static void on_changed(void *self, bool held) {
    Candidate *c = self;
    *(held ? &c->acquired : &c->lost) += 1;
    if (held) c->since = clock_monotonic_ns();
    never_both(c->scene);
}

static void on_tick(void *self) {
    Scene *s = self;
    never_both(s);
    if (s->done(s))
        loop_stop(s->loop);
    else
        assert_int_equal(loop_arm(s->loop, &s->tick, clock_monotonic_ns() + MS), ERR_OK);
}

static void run_until(Scene *s, bool (*done)(Scene *s)) {
    s->done = done;
    assert_int_equal(loop_arm(s->loop, &s->tick, clock_monotonic_ns()), ERR_OK);
    assert_int_equal(loop_run(s->loop), ERR_OK);
}

static void open_scene(Scene *s) {
    assert_int_equal(loop_create(&s->loop), ERR_OK);
    api_stand_open(&s->stand, s->loop, serve, s);
    s->config.server = s->stand.url;
    s->tick = (LoopTimer){.fire = on_tick, .self = s};
}

static void start(Candidate *c, Scene *s, Loop *l, const char *identity, TimeNs duration) {
    KubeApiOptions   o = {.user_agent = identity};
    KubeLeaseOptions lease = {.namespace_name = "ns",
                              .name = "cotenant",
                              .identity = identity,
                              .duration = duration,
                              .deadline = duration / 2,
                              .period = 20 * MS};
    *c = (Candidate){.scene = s};
    assert_int_equal(kube_api_create(&c->api, l, &s->config, &o), ERR_OK);
    assert_int_equal(kube_lease_start(&c->lease, c->api, l, &lease,
                                      (Rng){strlen(identity) + (identity[6] == 'b')}, on_changed,
                                      c),
                     ERR_OK);
}

static void close_scene(Scene *s) {
    for (int i = 0; i < 2; i++) {
        kube_lease_stop(s->at[i].lease);
        kube_api_destroy(s->at[i].api);
    }
    loop_disarm(s->loop, &s->tick);
    api_stand_close(&s->stand);
    loop_destroy(s->loop);
    json_decref(s->object);
}

// Long enough that no slow machine loses it.
static const TimeNs LONG = INT64_C(600) * 1000000000;

static bool first_holds(Scene *s) { return kube_lease_held(s->at[0].lease); }
static bool second_holds(Scene *s) { return kube_lease_held(s->at[1].lease); }
static bool renewed(Scene *s) { return s->puts >= 3; }
static bool second_asked(Scene *s) { return s->gets >= 5; }

static void creates_and_renews(void **state) {
    Scene s = {0};
    (void)state;
    open_scene(&s);
    start(&s.at[0], &s, s.loop, "agent-a", LONG);
    assert_false(kube_lease_held(s.at[0].lease));
    run_until(&s, renewed);
    assert_true(first_holds(&s));
    assert_int_equal(s.at[0].acquired, 1);
    assert_int_equal(s.posts, 1);
    assert_int_equal(s.gets, 1);  // a renewal needs no reading
    assert_string_equal(holder_of(&s), "agent-a");
    assert_string_equal(kube_lease_holder(s.at[0].lease), "agent-a");
    assert_int_equal(transitions_of(&s), 0);
    assert_int_equal(json_integer_value(json_object_get(spec_of(&s), "leaseDurationSeconds")), 600);
    const char *renew = json_string_value(json_object_get(spec_of(&s), "renewTime"));
    assert_int_equal(strlen(renew), strlen("2026-01-02T03:04:05.678901Z"));
    assert_string_equal(
        json_string_value(json_object_get(json_object_get(s.object, "metadata"), "namespace")),
        "ns");
    close_scene(&s);
}

static void on_released(void *self) {
    Scene *s = self;
    s->releases++;
}

static void a_release_hands_over_at_once(void **state) {
    Scene s = {0};
    (void)state;
    open_scene(&s);
    start(&s.at[0], &s, s.loop, "agent-a", LONG);
    run_until(&s, first_holds);
    s.gets = 0;
    start(&s.at[1], &s, s.loop, "agent-b", LONG);
    run_until(&s, second_asked);
    assert_int_equal(s.at[1].acquired, 0);
    kube_lease_release(s.at[0].lease, on_released, &s);
    assert_false(kube_lease_held(s.at[0].lease));
    run_until(&s, second_holds);  // 600 s have not passed
    assert_int_equal(transitions_of(&s), 1);
    assert_int_equal(s.releases, 1);
    assert_int_equal(s.at[0].lost, 0);
    close_scene(&s);
}

static void a_conflict_is_read_and_survived(void **state) {
    Scene s = {0};
    (void)state;
    open_scene(&s);
    start(&s.at[0], &s, s.loop, "agent-a", LONG);
    run_until(&s, first_holds);
    json_t *meta = json_object_get(s.object, "metadata");
    assert_int_equal(json_object_set_new(meta, "annotations", json_string("kept")), 0);
    store(&s, s.object);
    s.puts = 0;
    run_until(&s, renewed);
    assert_int_equal(s.conflicts, 1);
    assert_int_equal(s.at[0].lost, 0);
    assert_int_equal(s.at[0].acquired, 1);
    assert_string_equal(
        json_string_value(json_object_get(json_object_get(s.object, "metadata"), "annotations")),
        "kept");
    close_scene(&s);
}

// The answers to the creation and to a renewal are lost: both were done.
static void unknown_outcomes_are_read_back(void **state) {
    Scene s = {.lose_answers = 1};
    (void)state;
    open_scene(&s);
    start(&s.at[0], &s, s.loop, "agent-a", LONG);
    run_until(&s, first_holds);
    assert_int_equal(s.posts, 1);
    s.lose_answers = 1;
    s.puts = 0;
    run_until(&s, renewed);
    assert_int_equal(s.lose_answers, 0);
    assert_int_equal(s.at[0].acquired, 1);
    assert_int_equal(s.at[0].lost, 0);
    assert_int_equal(transitions_of(&s), 0);
    close_scene(&s);
}

static void put_foreign(Scene *s, const char *renew) {
    json_t *o = json_pack("{s:{s:s},s:{s:s,s:i,s:s,s:i}}", "metadata", "name", "cotenant", "spec",
                          "holderIdentity", "agent-x", "leaseDurationSeconds", 1, "renewTime",
                          renew, "leaseTransitions", 7);
    assert_non_null(o);
    store(s, o);
}

// Only the own clock counts, from the first sight of the record: neither an old renewTime makes it
// expire earlier, nor one in the future later.
static void wall_clocks_do_not_matter(void **state) {
    static const char *const times[] = {"1999-01-01T00:00:00.000000Z",
                                        "2999-01-01T00:00:00.000000Z"};
    (void)state;
    for (int i = 0; i < 2; i++) {
        Scene s = {0};
        open_scene(&s);
        put_foreign(&s, times[i]);
        start(&s.at[0], &s, s.loop, "agent-a", LONG);
        TimeNs began = clock_monotonic_ns();
        run_until(&s, first_holds);
        assert_true(s.at[0].since - began >= 1000 * MS);
        assert_int_equal(transitions_of(&s), 8);
        close_scene(&s);
    }
}

static bool second_took_over(Scene *s) { return second_holds(s) && s->at[0].lost > 0; }

// The leader's requests stay without answers: it stops by itself before another may take over.
static void a_leader_without_answers_stops(void **state) {
    Scene s = {0};
    (void)state;
    open_scene(&s);
    start(&s.at[0], &s, s.loop, "agent-a", 1000 * MS);
    run_until(&s, first_holds);
    start(&s.at[1], &s, s.loop, "agent-b", 1000 * MS);
    s.muted = "agent-a";
    TimeNs last = s.written;
    run_until(&s, second_took_over);
    assert_true(s.at[1].since - last >= 1000 * MS);
    assert_int_equal(transitions_of(&s), 1);
    close_scene(&s);
}

static void taken_away(void **state) {
    Scene s = {0};
    (void)state;
    open_scene(&s);
    start(&s.at[0], &s, s.loop, "agent-a", LONG);
    run_until(&s, first_holds);
    put_foreign(&s, "x");
    s.gets = 0;
    run_until(&s, second_asked);
    assert_false(kube_lease_held(s.at[0].lease));
    assert_int_equal(s.at[0].lost, 1);
    close_scene(&s);
}

static void stop_when_held(void *self, bool held) {
    Scene *s = self;
    assert_true(held);
    kube_lease_stop(s->at[0].lease);
    s->at[0].lease = NULL;
}

static bool stopped(Scene *s) { return s->at[0].lease == NULL; }
static bool released(Scene *s) { return s->releases > 0; }

static void may_be_stopped_when_it_changes(void **state) {
    Scene            s = {0};
    KubeLeaseOptions o = {.namespace_name = "ns", .name = "cotenant", .identity = "a"};
    (void)state;
    open_scene(&s);
    assert_int_equal(kube_api_create(&s.at[0].api, s.loop, &s.config, NULL), ERR_OK);
    assert_int_equal(
        kube_lease_start(&s.at[0].lease, s.at[0].api, s.loop, &o, (Rng){1}, stop_when_held, &s),
        ERR_OK);
    run_until(&s, stopped);
    close_scene(&s);
}

static void a_release_without_a_server_ends(void **state) {
    Scene s = {0};
    (void)state;
    open_scene(&s);
    start(&s.at[0], &s, s.loop, "agent-a", 1000 * MS);
    run_until(&s, first_holds);
    s.muted = "agent-a";
    kube_lease_release(s.at[0].lease, on_released, &s);
    run_until(&s, released);
    assert_int_equal(s.releases, 1);
    close_scene(&s);
}

static void refuses_what_cannot_work(void **state) {
    static const KubeLeaseOptions bad[] = {
        {.namespace_name = "ns", .name = "a/b", .identity = "x"},
        {.namespace_name = "", .name = "a", .identity = "x"},
        {.namespace_name = "ns", .name = "a", .identity = ""},
        {.namespace_name = "ns", .name = "a", .identity = "x", .duration = 5000000000},
        {.namespace_name = "ns", .name = "a", .identity = "x", .period = 7000000000},
    };
    Scene      s = {0};
    KubeLease *x = NULL;
    (void)state;
    open_scene(&s);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_int_equal(kube_lease_start(&x, NULL, s.loop, &bad[i], (Rng){1}, NULL, NULL),
                         ERR_ARG);
    close_scene(&s);
}

typedef struct Shared {  // between the leader's process and the test's
    _Atomic bool    held;
    _Atomic int64_t last;  // a moment just before the lease was last found to be held
} Shared;

typedef struct Leader {
    Candidate candidate;
    Loop     *loop;
    LoopTimer tick;
    Shared   *shared;
} Leader;

static void note_held(void *self) {
    Leader *x = self;
    TimeNs  before = clock_monotonic_ns();
    if (kube_lease_held(x->candidate.lease)) {
        atomic_store(&x->shared->last, before);
        atomic_store(&x->shared->held, true);
    }
    if (loop_arm(x->loop, &x->tick, before + MS / 4) != ERR_OK) _exit(1);
}

static _Noreturn void lead(Scene *s, Shared *shared) {
    static Leader x;
    x.shared = shared;
    x.tick = (LoopTimer){.fire = note_held, .self = &x};
    if (loop_create(&x.loop) != ERR_OK) _exit(1);
    start(&x.candidate, s, x.loop, "agent-a", 1000 * MS);
    x.candidate.scene = &(Scene){.at = {x.candidate}};
    if (loop_arm(x.loop, &x.tick, 0) != ERR_OK || loop_run(x.loop) != ERR_OK) _exit(1);
    _exit(0);
}

static Shared *shared;

static bool leader_holds(Scene *s) {
    (void)s;
    return atomic_load(&shared->held);
}

static bool a_moment_passed(Scene *s) { return clock_monotonic_ns() - s->at[1].since > 200 * MS; }

// A leader that is stopped (SIGSTOP) while it holds the lease, and goes on when another has it.
static void a_paused_leader_finds_it_lost(void **state) {
    Scene s = {0};
    (void)state;
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(shared != MAP_FAILED);
    open_scene(&s);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) lead(&s, shared);
    run_until(&s, leader_holds);
    assert_int_equal(kill(pid, SIGSTOP), 0);
    start(&s.at[1], &s, s.loop, "agent-b", LONG);  // the record's own duration counts
    run_until(&s, second_holds);
    assert_int_equal(kill(pid, SIGCONT), 0);
    run_until(&s, a_moment_passed);
    assert_true(atomic_load(&shared->last) < s.at[1].since);
    assert_string_equal(holder_of(&s), "agent-b");
    assert_int_equal(kill(pid, SIGKILL), 0);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    close_scene(&s);
    assert_int_equal(munmap(shared, sizeof *shared), 0);
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(creates_and_renews),
        cmocka_unit_test(a_release_hands_over_at_once),
        cmocka_unit_test(a_conflict_is_read_and_survived),
        cmocka_unit_test(unknown_outcomes_are_read_back),
        cmocka_unit_test(wall_clocks_do_not_matter),
        cmocka_unit_test(a_leader_without_answers_stops),
        cmocka_unit_test(taken_away),
        cmocka_unit_test(may_be_stopped_when_it_changes),
        cmocka_unit_test(a_release_without_a_server_ends),
        cmocka_unit_test(refuses_what_cannot_work),
        cmocka_unit_test(a_paused_leader_finds_it_lost),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
