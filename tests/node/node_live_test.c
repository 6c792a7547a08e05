// Under any policy every request is answered once, with the outputs of program_run.
#include <pthread.h>

#include "base/clock.h"
#include "tests/node/random_policy.h"
#include "tests/node/tenants.h"
#include "tests/runner.h"

enum { TENANTS = 4, THREADS = 3, EACH = 40, RUN = 150 };

static TestTenant tenants[TENANTS];

static const NodeMachine machine = {.n_cores = 1, .n_slices = 1, .slice_of = (uint8_t[8]){0}};

static int build(void **state) {
    (void)state;
    for (uint32_t i = 0; i < TENANTS; i++) tenant_build(&tenants[i], i == 0 ? "lstm_kws" : NULL, i);
    return 0;
}

static int finish(void **state) {
    (void)state;
    for (uint32_t i = 0; i < TENANTS; i++) tenant_finish(&tenants[i]);
    return 0;
}

typedef struct Bed {  // an engine with all tenants
    NodeLive   *live;
    NodeMachine machine;
    NodeTenant  tenants[TENANTS];
    NodeSetup   setup;
} Bed;

static void bed_open(Bed *b, const NodeLiveOptions *o) {
    tenant_check(node_live_create(&b->live, o));
    b->machine = machine;
    b->machine.n_cores = node_live_cores(b->live);
    for (uint32_t i = 0; i < TENANTS; i++) {
        b->tenants[i] = (NodeTenant){
            .model = &tenants[i].table, .name = "test", .qos_ns = 20000000, .priority = 1};
        tenant_check(node_live_add(b->live, &(LiveTenant){.tenant = b->tenants[i],
                                                          .program = &tenants[i].program,
                                                          .inputs = tenants[i].inputs[0]}));
    }
    b->setup = (NodeSetup){&b->machine, b->tenants, TENANTS};
}

typedef struct SubmittedRequest {
    uint32_t         tenant, set;
    _Atomic uint32_t answers, wrong, rejected;
} SubmittedRequest;

typedef struct Submitter {
    NodeLive        *live;
    SubmittedRequest asked[EACH];
    uint64_t         seed;
} Submitter;

static void check_answer(void *self, const EngineResult *a) {
    SubmittedRequest *k = self;
    const TestTenant *t = &tenants[k->tenant];
    bool              ok = a->tenant == k->tenant && a->finish >= a->arrival;
    for (uint32_t i = 0; ok && a->outcome != OUTCOME_REJECTED && i < t->n_outputs; i++)
        ok = tenant_close(&t->want[k->set][i], &a->outputs[i]);
    atomic_fetch_add(&k->wrong, !ok);
    atomic_fetch_add(&k->rejected, a->outcome == OUTCOME_REJECTED);
    atomic_fetch_add(&k->answers, 1);
}

static void *ask_all(void *submitter) {
    Submitter *c = submitter;
    Rng        r = {c->seed};
    for (uint32_t i = 0; i < EACH; i++) {
        SubmittedRequest *k = &c->asked[i];
        k->tenant = (uint32_t)rng_below(&r, TENANTS);
        k->set = (uint32_t)rng_below(&r, TENANT_INPUTS);
        TimeNs        t = clock_now(clock_monotonic());
        EngineRequest ask = {.tenant = k->tenant,
                             .arrival = t,
                             .deadline = t + 1000000,
                             .inputs = tenants[k->tenant].inputs[k->set],
                             .done = check_answer,
                             .self = k};
        while (!node_live_submit(c->live, &ask)) (void)sched_yield();
        if (rng_below(&r, 4) == 0) (void)sched_yield();
    }
    return NULL;
}

static void random_policy_gives_right_answers(const NodeLiveOptions *o) {
    static Submitter     submitters[THREADS];
    pthread_t            threads[THREADS];
    Bed                  b;
    RandomPolicySettings s = {.seed = 3 + o->cores, .rejects = 1};
    bed_open(&b, o);
    tenant_check(node_live_use(b.live, &random_policy, &s, &b.setup));
    memset(submitters, 0, sizeof submitters);
    for (uint32_t i = 0; i < THREADS; i++) {
        submitters[i].live = b.live;
        submitters[i].seed = i;
        assert_int_equal(pthread_create(&threads[i], NULL, ask_all, &submitters[i]), 0);
    }
    for (uint32_t i = 0; i < THREADS; i++) assert_int_equal(pthread_join(threads[i], NULL), 0);
    for (uint32_t i = 0; i < THREADS * EACH; i++) {
        SubmittedRequest *k = &submitters[i / EACH].asked[i % EACH];
        while (atomic_load(&k->answers) == 0) (void)sched_yield();
    }
    node_live_destroy(b.live);
    uint32_t rejected = 0;
    for (uint32_t i = 0; i < THREADS * EACH; i++) {
        SubmittedRequest *k = &submitters[i / EACH].asked[i % EACH];
        assert_int_equal(atomic_load(&k->answers), 1);
        assert_int_equal(atomic_load(&k->wrong), 0);
        rejected += atomic_load(&k->rejected);
    }
    assert_true(rejected < THREADS * EACH);
}

static void answers_on_one_core(void **state) {
    (void)state;
    random_policy_gives_right_answers(&(NodeLiveOptions){.cores = 1, .fixed = true});
}

static void answers_on_two_cores(void **state) {
    (void)state;
    random_policy_gives_right_answers(&(NodeLiveOptions){.cores = 2, .fixed = true, .contexts = 2});
}

static void answers_on_more_workers_than_cores(void **state) {
    (void)state;
    random_policy_gives_right_answers(
        &(NodeLiveOptions){.cores = 5, .fixed = true, .spin_ns = 1000});
}

static Arrivals some_arrivals(Arena *a, uint64_t seed, uint32_t n, double mean_ns) {
    Rng      r = {seed};
    double   at = 0;
    Arrivals out = {arena_new(a, Arrival, n), n};
    for (uint32_t i = 0; i < n; i++) {
        at += mean_ns * rng_exp(&r);
        out.at[i] = (Arrival){(TimeNs)at, (uint32_t)rng_below(&r, TENANTS)};
    }
    return out;
}

typedef struct Tally {
    uint32_t kinds[RECORD_KINDS], outcomes[OUTCOMES], unordered, bad;
    TimeNs   last;
    uint32_t n_cores, conflicts;
} Tally;

static void tally(void *self, const Record *r) {
    Tally *t = self;
    t->kinds[r->kind]++;
    t->unordered += r->at < t->last;
    t->last = r->at;
    if (r->kind == RECORD_FINISH || r->kind == RECORD_REJECT) t->outcomes[r->outcome]++;
    if (r->kind == RECORD_START) {
        t->conflicts += r->wanted > cores_count(&r->cores);
        t->bad += r->n_layers == 0 || cores_count(&r->cores) == 0;
    }
    t->bad += r->kind == RECORD_FINISH && (r->outcome == OUTCOME_LATE) != (r->why != NULL);
}

static void check_conserved(const NodeResult *r, const Tally *t) {
    uint32_t outcomes[OUTCOMES] = {0};
    for (uint32_t i = 0; i < r->n; i++) {
        assert_true(r->answers[i].finish >= r->answers[i].arrival);
        outcomes[r->answers[i].outcome]++;
    }
    for (uint32_t i = 0; i < OUTCOMES; i++) assert_int_equal(outcomes[i], t->outcomes[i]);
    assert_int_equal(t->kinds[RECORD_ARRIVE], r->n);
    assert_int_equal(t->kinds[RECORD_FINISH] + t->kinds[RECORD_REJECT], r->n);
    assert_int_equal(t->kinds[RECORD_START], r->blocks);
    assert_int_equal(t->kinds[RECORD_END], r->blocks);
    assert_int_equal(t->kinds[RECORD_GROW], r->grown);
    assert_int_equal(t->kinds[RECORD_REFUSE], r->refused);
    assert_int_equal(t->conflicts, r->conflicts);
    assert_int_equal(t->unordered, 0);
    assert_int_equal(t->bad, 0);
    assert_true(r->decisions > 0 && r->decide_ns > 0 && r->engine_ns > 0);
}

static void run_one(Bed *b, const NodePolicy *p, const void *settings, Arrivals arrivals, Arena *a,
                    NodeResult *out, Tally *t) {
    NodeRun run = {.setup = b->setup,
                   .policy = p,
                   .settings = settings,
                   .arrivals = arrivals,
                   .records = {tally, t}};
    *t = (Tally){.n_cores = b->machine.n_cores};
    tenant_check(node_live_run(b->live, &run, a, out));
    assert_int_equal(out->n, arrivals.n);
    check_conserved(out, t);
}

static void runs_conserve_requests(void **state) {
    (void)state;
    Arena      a;
    Bed        b;
    NodeResult r;
    Tally      t;
    tenant_check(arena_init(&a, (size_t)1 << 30));
    bed_open(&b, &(NodeLiveOptions){.cores = 3, .fixed = true});
    for (uint32_t i = 0; i < 3; i++) {
        RandomPolicySettings s = {.seed = i, .rejects = 5 * i};
        run_one(&b, &random_policy, &s, some_arrivals(&a, i, RUN, 1e6), &a, &r, &t);
        assert_int_equal(r.refused, t.kinds[RECORD_REFUSE]);
    }
    node_live_destroy(b.live);
    arena_finish(&a);
}

// Returns every kind of illegal action, then runs waiting requests layer by layer on one core.
static uint32_t decide_wrongly(void *state, const NodeView *v, NodeAction *out, uint32_t max) {
    static const uint8_t good[RANDOM_LAYERS], bad[RANDOM_LAYERS] = {99, 99, 99};
    uint32_t            *turns = state, n = 0;
    Cores                far = {0}, one = {0}, none = {0};
    assert_true(max > 16);
    cores_add(&far, CORES_MAX - 1);
    cores_add(&one, v->n_free > 0 ? cores_next(&v->free, 0) : 0);
    out[n++] = (NodeAction){.verb = NODE_VERBS};
    out[n++] = (NodeAction){.verb = NODE_WAKE, .at = v->now - 1};
    out[n++] = (NodeAction){.verb = NODE_START, .request = v->n_requests};
    if (v->n_running > 0) {
        uint32_t i = v->running[0];
        out[n++] = (NodeAction){
            .verb = NODE_START, .request = i, .n_layers = 1, .cores = one, .versions = good};
        out[n++] = (NodeAction){.verb = NODE_REJECT, .request = i};
        out[n++] = (NodeAction){.verb = NODE_GROW, .request = i, .cores = none};
        out[n++] = (NodeAction){.verb = NODE_GROW, .request = i, .cores = far};
    }
    if (v->n_waiting == 0 || v->n_free == 0) return n;
    uint32_t   i = v->waiting[0];
    NodeAction start = {
        .verb = NODE_START, .request = i, .n_layers = 1, .cores = one, .versions = good};
    NodeAction wrong[] = {start, start, start, start, start, start};
    wrong[0].n_layers = 0;
    wrong[1].n_layers = 1000;
    wrong[2].cores = none;
    wrong[3].cores = far;
    wrong[4].versions = NULL;
    wrong[5].versions = bad;
    uint32_t wrongs = v->requests[i].next == 0 ? 6 : 5;
    for (uint32_t k = 0; k < wrongs; k++) out[n++] = wrong[k];
    out[n++] = (NodeAction){.verb = NODE_GROW, .request = i, .cores = one};
    out[n++] = (NodeAction){.verb = NODE_REJECT, .request = i, .reason = NODE_REASONS};
    out[n++] = start;
    out[n++] = start;
    if (++*turns % 50 == 0 && v->n_waiting > 1) {
        out[n] = (NodeAction){.verb = NODE_REJECT, .request = v->waiting[1]};
        out[n + 1] = out[n];
        n += 2;
    }
    return n;
}

static size_t one_word(const NodeSetup *setup, const void *settings) {
    (void)setup, (void)settings;
    return sizeof(uint32_t);
}

static void illegal_plans_are_refused(void **state) {
    (void)state;
    static const NodePolicy wrong = {
        .name = "wrong", .state_size = one_word, .decide = decide_wrongly};
    Arena      a;
    Bed        b;
    NodeResult r;
    Tally      t;
    tenant_check(arena_init(&a, (size_t)1 << 30));
    bed_open(&b, &(NodeLiveOptions){.cores = 2, .fixed = true, .records = 1 << 18});
    run_one(&b, &wrong, NULL, some_arrivals(&a, 5, 60, 5e5), &a, &r, &t);
    assert_true(r.refused > r.decisions);
    assert_int_equal(
        t.outcomes[OUTCOME_REJECTED] + t.outcomes[OUTCOME_MET] + t.outcomes[OUTCOME_LATE], 60);
    node_live_destroy(b.live);
    arena_finish(&a);
}

// Runs whole models on one core in order of arrival; counts starts beyond the free cores.
static uint32_t decide_plainly(void *state, const NodeView *v, NodeAction *out, uint32_t max) {
    static const uint8_t versions[RANDOM_LAYERS];
    uint32_t             n = 0;
    Cores                free = v->free;
    (void)state;
    for (uint32_t k = 0; k < v->n_waiting && n < max; k++) {
        uint32_t core = cores_next(&free, 0);
        if (core == CORES_MAX) break;
        Cores one = {0};
        cores_add(&one, core);
        free = cores_difference(free, &one);
        const NodeRequest *r = &v->requests[v->waiting[k]];
        out[n++] = (NodeAction){.verb = NODE_START,
                                .request = v->waiting[k],
                                .n_layers = v->setup->tenants[r->tenant].model->n_layers - r->next,
                                .wanted = 1,
                                .cores = one,
                                .versions = versions};
    }
    return n;
}

static const NodePolicy plain = {.name = "plain", .decide = decide_plainly};

static void few_places_only_delay(void **state) {
    (void)state;
    Arena      a;
    Bed        b;
    NodeResult r;
    Tally      t;
    tenant_check(arena_init(&a, (size_t)1 << 30));
    bed_open(&b, &(NodeLiveOptions){.cores = 4, .fixed = true, .contexts = 1, .requests = 16});
    run_one(&b, &plain, NULL, some_arrivals(&a, 6, 100, 1e5), &a, &r, &t);
    node_live_destroy(b.live);
    arena_finish(&a);
}

// Starts one layer of the newest request: unfinished requests soon hold all execution contexts.
static uint32_t decide_for_the_young(void *state, const NodeView *v, NodeAction *out,
                                     uint32_t max) {
    static const uint8_t versions[RANDOM_LAYERS];
    (void)state, (void)max;
    if (v->n_waiting == 0 || v->n_free == 0) return 0;
    Cores one = {0};
    cores_add(&one, cores_next(&v->free, 0));
    out[0] = (NodeAction){.verb = NODE_START,
                          .request = v->waiting[v->n_waiting - 1],
                          .n_layers = 1,
                          .wanted = 1,
                          .cores = one,
                          .versions = versions};
    return 1;
}

static void places_held_by_the_forgotten_are_freed(void **state) {
    (void)state;
    static const NodePolicy young = {.name = "young", .decide = decide_for_the_young};
    Arena                   a;
    Bed                     b;
    NodeResult              r;
    Tally                   t;
    tenant_check(arena_init(&a, (size_t)1 << 30));
    bed_open(&b, &(NodeLiveOptions){.cores = 1, .fixed = true, .contexts = 1});
    run_one(&b, &young, NULL, some_arrivals(&a, 8, 60, 1e4), &a, &r, &t);
    assert_int_equal(t.outcomes[OUTCOME_REJECTED], 0);
    node_live_destroy(b.live);
    arena_finish(&a);
}

// Infeasible deadlines: the run ends early, and every request still has an outcome.
static void hopeless_runs_end_early(void **state) {
    (void)state;
    Arena      a;
    Bed        b;
    NodeResult r;
    uint32_t   outcomes[OUTCOMES] = {0};
    tenant_check(arena_init(&a, (size_t)1 << 30));
    bed_open(&b, &(NodeLiveOptions){.cores = 2, .fixed = true});
    for (uint32_t i = 0; i < TENANTS; i++) b.tenants[i].qos_ns = 1;
    NodeRun run = {.setup = b.setup,
                   .policy = &plain,
                   .arrivals = some_arrivals(&a, 9, 2000, 1e6),
                   .skip = 10,
                   .give_up = 0.02};
    tenant_check(node_live_run(b.live, &run, &a, &r));
    assert_true(r.gave_up);
    for (uint32_t i = 0; i < r.n; i++) outcomes[r.answers[i].outcome]++;
    assert_int_equal(outcomes[OUTCOME_MET], 0);
    assert_int_equal(outcomes[OUTCOME_LATE] + outcomes[OUTCOME_REJECTED], 2000);
    run.give_up = 0;
    run.arrivals.n = 50;
    tenant_check(node_live_run(b.live, &run, &a, &r));
    assert_false(r.gave_up);
    node_live_destroy(b.live);
    arena_finish(&a);
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(answers_on_one_core),
        cmocka_unit_test(answers_on_two_cores),
        cmocka_unit_test(answers_on_more_workers_than_cores),
        cmocka_unit_test(runs_conserve_requests),
        cmocka_unit_test(illegal_plans_are_refused),
        cmocka_unit_test(few_places_only_delay),
        cmocka_unit_test(places_held_by_the_forgotten_are_freed),
        cmocka_unit_test(hopeless_runs_end_early),
    };
    return cmocka_run_group_tests(tests, build, finish);
}
