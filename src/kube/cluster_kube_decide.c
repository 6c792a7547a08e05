// One decision: pods to tasks, the policy's plan, steps on pods.
#include <stdlib.h>

#include "kube/cluster_kube_int.h"

enum { ACTIONS_A_TASK = 3, FIND_SERVERS = 64, OWN_JOBS = 64, CLAIMS = 4 };

static const TimeNs never = INT64_C(1) << 61;  // sums with times do not overflow

static Err make_policy_state(ClusterKube *k) {
    const ClusterPolicy *p = k->options.policy;
    Arena               *a = &k->view.arena;
    k->policy_state = NULL;
    k->policy_loaded = NULL;
    if (k->view.setup.gpus == 0)
        return err_set(ERR_ARG, "the cluster has no GPUs; pods are placed without a policy");
    if (p->load != NULL) TRY(p->load(&k->view.setup, k->options.settings, a, &k->policy_loaded));
    if (p->state_size != NULL) {
        k->policy_state = arena_try(a, p->state_size(&k->view.setup, k->options.settings), 1, 64);
        if (k->policy_state == NULL)
            return err_set(ERR_LIMIT, "%s: no memory for %u jobs", p->name, k->view.setup.n_slots);
    }
    if (p->init != NULL)
        p->init(k->policy_state, &k->view.setup, k->options.settings, k->policy_loaded);
    return ERR_OK;
}

static Err make_quota(ClusterKube *k) {
    Carve size = {0};
    tenant_quota_carve(&k->quota, &k->view.setup, &size);
    Carve c = {.base = arena_try(&k->view.arena, size.used + 1, 1, 64)};
    if (c.base == NULL) return err_set(ERR_LIMIT, "no memory for the tenants' quotas");
    tenant_quota_carve(&k->quota, &k->view.setup, &c);
    return ERR_OK;
}

static Err make_actions(ClusterKube *k) {
    uint32_t most = ACTIONS_A_TASK * k->jobs.n_slots + 2;
    if (k->max_actions >= most) return ERR_OK;
    ClusterAction *more = realloc(k->actions, most * sizeof *more);
    if (more == NULL) return err_set(ERR_LIMIT, "no memory for plans");
    k->actions = more;
    k->max_actions = most;
    return ERR_OK;
}

// A policy that does not suit the cluster leaves placement to the engine, and the log says so.
static Err open_policy(ClusterKube *k) {
    TRY(make_quota(k));
    TRY(make_actions(k));
    bool before = k->policy_ready || k->counts.decisions == 0;
    k->policy_ready = make_policy_state(k) == ERR_OK;
    if (!k->policy_ready && before)
        log_with(k->options.log, LOG_WARN, "no policy decides; the engine places pods by best fit",
                 log_text("policy", k->options.policy->name), log_text("why", err_why()));
    return ERR_OK;
}

static bool some_owed(const ClusterKube *k) {
    for (uint32_t i = 0; i < k->jobs.n_waiting; i++)
        if (tenant_quota_guaranteed(&k->quota, &k->jobs.tasks[k->jobs.waiting[i]].job)) return true;
    return false;
}

static void find_lent(ClusterKube *k) {
    if (!k->view.setup.quotas) return;
    tenant_quota_clear(&k->quota, &k->view.setup);
    tenant_quota_open(&k->quota, &k->view.view);
    bool owed = some_owed(k);
    for (uint32_t i = 0; i < k->jobs.n_running; i++) {
        ClusterTask *t = &k->jobs.tasks[k->jobs.running[i]];
        t->lent = owed && tenant_quota_lent(&k->quota, &t->job) > 0;
    }
}

static Err take_picture(ClusterKube *k, Arena *scratch, KubePicture *p) {
    KubeServer *servers;
    KubeJobs   *x = &k->jobs;
    *p = (KubePicture){.now = x->now,
                       .tenants = (const char *const *)x->tenants,
                       .tasks = x->tasks,
                       .waiting = x->waiting,
                       .running = x->running,
                       .profiles = &k->beliefs.profiles,
                       .n_tenants = x->n_tenants,
                       .n_slots = x->n_slots,
                       .n_waiting = x->n_waiting,
                       .n_running = x->n_running,
                       .generation = x->bits.generation,
                       .fractions = x->fractions,
                       .no_gpus = x->no_gpus};
    TRY(kube_view_servers(k->state, x, scratch, &servers, &p->n_servers));
    p->servers = servers;
    return ERR_OK;
}

KubeRules cluster_kube_rules(const ClusterKubeOptions *o) {
    KubeRules r = {.stops = o->stops,
                   .restart = 40 * CLUSTER_SECOND,
                   .restart_wide = 60 * CLUSTER_SECOND,
                   .shares = o->shares,
                   .seed = o->seed};
    // Policies preempt only where the settings let them.
    if (o->preemption != KUBE_PREEMPT_POLICY) r.stops.min_run = never;
    return r;
}

static Err build_view(ClusterKube *k, Arena *scratch, KubePicture *p, bool *asks) {
    KubeRules rules = cluster_kube_rules(&k->options);
    bool      anew = false;
    TRY(take_picture(k, scratch, p));
    p->reason = k->jobs.reason | k->reason;
    TRY(kube_view_build(&k->view, p, &rules, &anew));
    kube_beliefs_update(&k->beliefs, &k->jobs, &k->view.setup);
    k->view.view.reason = p->reason = k->jobs.reason | k->reason;
    k->jobs.reason = k->reason = 0;
    if (anew) TRY(open_policy(k));
    *asks = anew || p->reason != 0;  // nothing that a policy decides on changed otherwise
    find_lent(k);
    return ERR_OK;
}

// The policy may ask to be called again.
static void note_wake(ClusterKube *k, uint32_t n) {
    k->wake_at = INT64_MAX;
    for (uint32_t i = 0; i < n; i++)
        if (k->actions[i].verb == CLUSTER_WAKE && k->actions[i].at > k->jobs.now &&
            k->actions[i].at < k->wake_at)
            k->wake_at = k->actions[i].at;
}

static uint32_t ask_policy(ClusterKube *k, const KubePicture *p) {
    const ClusterView *v = &k->view.view;
    if (!k->policy_ready || v->n_waiting + v->n_running == 0) return 0;
    TimeNs   from = clock_monotonic_ns();
    uint32_t n = k->options.policy->decide(k->policy_state, v, k->actions, k->max_actions);
    TimeNs   took = clock_monotonic_ns() - from;
    CHECK(n <= k->max_actions);
    k->counts.decisions++;
    k->counts.decide_ns += took;
    note_wake(k, n);
    k->asked_at = clock_monotonic_ns();
    KubeDecision d = {p, v, k->actions, n, took};
    if (k->options.hooks.decided != NULL) k->options.hooks.decided(k->options.hooks.self, &d);
    return n;
}

static Err make_plan(ClusterKube *k, const KubePicture *p, bool asks) {
    uint32_t n = asks ? ask_policy(k, p) : 0;
    k->plan.all_own = !k->policy_ready;
    TRY(kube_plan_apply(&k->plan, &k->view.view, k->actions, n));
    TRY(kube_plan_own(&k->plan, false, OWN_JOBS));
    TRY(kube_plan_wanted(&k->plan));
    return kube_plan_preempt(&k->plan, CLAIMS);
}

// A policy may look at some of many waiting jobs only: it is asked again while it starts some.
static void ask_again(ClusterKube *k, uint64_t started_before) {
    uint64_t started = k->plan.notes[KUBE_NOTE_STARTED] + k->plan.notes[KUBE_NOTE_MOVED];
    if (started == started_before || k->jobs.n_waiting == 0) return;
    k->reason |= CLUSTER_TIMER;
    cluster_kube_changed(k);
}

static Err decide(ClusterKube *k, Arena *scratch) {
    KubePicture p;
    bool        asks = false;
    if (k->wake_at <= cluster_kube_now(k)) {
        k->reason |= CLUSTER_TIMER;
        k->counts.wakes++;
    }
    TRY(kube_jobs_update(&k->jobs, k->state, cluster_kube_now(k)));
    TRY(kube_servers_find(&k->jobs, k->state, FIND_SERVERS));
    kube_plan_open(&k->plan);
    TRY(kube_plan_own(&k->plan, true, OWN_JOBS));
    if (k->plan.n > 0) TRY(kube_jobs_update(&k->jobs, k->state, cluster_kube_now(k)));
    TRY(build_view(k, scratch, &p, &asks));
    uint64_t started = k->plan.notes[KUBE_NOTE_STARTED] + k->plan.notes[KUBE_NOTE_MOVED];
    TRY(make_plan(k, &p, asks));
    ask_again(k, started);
    for (uint32_t i = 0; i < k->plan.n; i++) TRY(cluster_kube_write_step(k, &k->plan.steps[i]));
    return ERR_OK;
}

void cluster_kube_decide(ClusterKube *k) {
    Arena scratch;
    if (arena_init(&scratch, (size_t)1 << 30) != ERR_OK || decide(k, &scratch) != ERR_OK)
        cluster_kube_log_error(k, "decision failed");
    arena_finish(&scratch);
    if (k->jobs.find_more) cluster_kube_changed(k);
}
