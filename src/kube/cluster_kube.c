#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/settings.h"
#include "kube/cluster_kube_int.h"

enum { SLOTS = 1024 };

static const TimeNs tick_ns = CLUSTER_SECOND / 2, sweep_ns = 300 * CLUSTER_SECOND,
                    stop_ns = 3 * CLUSTER_SECOND, coalesce_ns = CLUSTER_SECOND / 10,
                    soon_ns = CLUSTER_SECOND / 200,
                    ask_ns = 10 * CLUSTER_SECOND;  // while jobs wait

TimeNs cluster_kube_now(const ClusterKube *k) {
    return k->unix_base + (clock_monotonic_ns() - k->mono_base);
}

void cluster_kube_log_error(const ClusterKube *k, const char *what) {
    log_with(k->options.log, LOG_ERROR, what, log_text("why", err_why()));
}

bool cluster_kube_may_write(const ClusterKube *k) {
    if (k->options.dry_run || k->stopping || !k->leads || k->rules.act == KUBE_ACT_NONE)
        return false;
    return k->options.no_lease || kube_lease_held(k->lease);
}

static void arm(ClusterKube *k, LoopTimer *t, TimeNs at) {
    if (loop_arm(k->loop, t, at) != ERR_OK) cluster_kube_log_error(k, "timer failed");
}

// Changes that come together are decided on together.
void cluster_kube_changed(ClusterKube *k) {
    TimeNs now = clock_monotonic_ns(), at = k->decided_at + coalesce_ns;
    if (at < now + soon_ns) at = now + soon_ns;
    if (k->stopping || (k->decide_timer.place != 0 && k->decide_timer.at <= at)) return;
    arm(k, &k->decide_timer, at);
}

static void decide(void *self) {
    ClusterKube *k = self;
    if (k->stopping || !k->leads || !cluster_kube_synced(k) || !k->discovered) return;
    k->decided_at = clock_monotonic_ns();
    cluster_kube_decide(k);
    k->decided_at = clock_monotonic_ns();
    cluster_kube_pump(k);
}

// Nothing is forgotten for ever: after five minutes every back-off ends.
static void sweep(ClusterKube *k) {
    k->swept_at = clock_monotonic_ns();
    k->counts.sweeps++;
    for (uint32_t i = 0; i < k->jobs.n_slots; i++) {
        KubeJob *j = k->jobs.at[i];
        if (j == NULL) continue;
        j->retry_at = j->backoff = 0;
        j->tried_at = 0;
    }
    cluster_kube_changed(k);
}

static bool backoff_ended(const ClusterKube *k) {
    TimeNs now = cluster_kube_now(k);
    for (uint32_t i = 0; i < k->jobs.n_slots; i++) {
        const KubeJob *j = k->jobs.at[i];
        if (j == NULL || j->retry_at == 0 || j->retry_at > now) continue;
        if (j->phase == KUBE_JOB_READY && k->jobs.tasks[i].state == CLUSTER_GONE) return true;
        if (j->phase == KUBE_JOB_RUNS && j->n_free > 0) return true;
    }
    return false;
}

static void tick(void *self) {
    ClusterKube *k = self;
    TimeNs       now = clock_monotonic_ns();
    if (k->stopping) return;
    arm(k, &k->tick_timer, now + tick_ns);
    if (!k->open || !k->leads) return;
    if (now - k->swept_at >= sweep_ns) sweep(k);
    if (k->jobs.n_waiting > 0 && now - k->asked_at >= ask_ns) {
        k->reason |= CLUSTER_TIMER;
        cluster_kube_changed(k);
    }
    bool wakes = k->wake_at <= cluster_kube_now(k) + tick_ns;
    if (wakes || backoff_ended(k) || k->jobs.find_more) cluster_kube_changed(k);
    if (cluster_kube_synced(k)) cluster_kube_status(k);
    cluster_kube_pump(k);
}

static void ended(void *self, KubeJob *j, const ClusterTask *t) {
    ClusterKube *k = self;
    kube_beliefs_ended(&k->beliefs, j);
    if (k->options.hooks.ended != NULL)
        k->options.hooks.ended(k->options.hooks.self, cluster_kube_now(k), j, t);
}

static void noted(void *self, const KubeNote *n) {
    ClusterKube *k = self;
    k->counts.notes[n->kind]++;
    if (k->options.hooks.noted != NULL)
        k->options.hooks.noted(k->options.hooks.self, cluster_kube_now(k), n);
}

Err cluster_kube_open(ClusterKube *k) {
    cluster_kube_close(k);
    TRY(kube_state_create(&k->state, &k->options.state));
    Err e = kube_jobs_init(&k->jobs, SLOTS);
    if (e != ERR_OK) {
        kube_state_destroy(k->state);
        k->state = NULL;
        return e;
    }
    k->jobs.ended = ended;
    k->jobs.self = k;
    kube_plan_init(&k->plan, k->state, &k->jobs, &k->rules);
    k->plan.note = noted;
    k->plan.self = k;
    kube_view_init(&k->view);
    k->open = true;
    k->policy_ready = false;
    k->swept_at = clock_monotonic_ns();
    return ERR_OK;
}

void cluster_kube_close(ClusterKube *k) {
    if (!k->open) return;
    cluster_kube_unwatch(k);
    cluster_kube_drop_writes(k);
    k->jobs.ended = NULL;  // they go on elsewhere
    kube_plan_finish(&k->plan);
    kube_view_finish(&k->view);
    kube_jobs_finish(&k->jobs);
    kube_state_destroy(k->state);
    k->state = NULL;
    k->open = false;
}

// A leader begins with nothing and lists everything.
static void lead(ClusterKube *k, bool leads) {
    log_with(k->options.log, LOG_INFO, leads ? "leading" : "not leading",
             log_text("policy", k->options.policy->name));
    k->leads = leads;
    if (!leads) {
        cluster_kube_close(k);
        return;
    }
    if (cluster_kube_open(k) != ERR_OK || cluster_kube_watch(k) != ERR_OK)
        cluster_kube_log_error(k, "cannot watch the cluster");
}

static void lease_changed(void *self, bool held) {
    ClusterKube *k = self;
    if (!k->stopping && held != k->leads) lead(k, held);
}

#define SWITCH_SETTINGS(X) X(act, string, "all", 1, 8, "what is written: all, bind or none")

typedef struct SwitchSettings {
    SWITCH_SETTINGS(SETTING_FIELD)
} SwitchSettings;

static const Setting switch_rows[] = {
#define X(...) SETTING_ROW(SwitchSettings, __VA_ARGS__)
    SWITCH_SETTINGS(X)
#undef X
};

static Err read_switch(ClusterKube *k, Arena *scratch) {
    static const char *const words[] = {"none", "bind", "all"};
    SwitchSettings           values;
    Settings                 s = {switch_rows, 1, &values, scratch};
    settings_default(&s);
    TRY(settings_load(&s, k->options.switch_file));
    for (uint32_t i = 0; i < 3; i++)
        if (strcmp(values.act, words[i]) == 0) {
            k->rules.act = (KubeAct)i;
            log_with(k->options.log, LOG_INFO, "switch read", log_text("act", values.act));
            return ERR_OK;
        }
    return err_set(ERR_CONFIG, "%s: act: %s: choose all, bind or none", k->options.switch_file,
                   values.act);
}

Err cluster_kube_reload(ClusterKube *k) {
    Arena scratch;
    if (k->options.switch_file == NULL) return ERR_OK;
    TRY(arena_init(&scratch, (size_t)1 << 20));
    Err e = read_switch(k, &scratch);
    arena_finish(&scratch);
    return e;
}

static void retry_discovery(void *self) { cluster_kube_discover(self); }

static Err start(ClusterKube *k) {
    const ClusterKubeOptions *o = &k->options;
    TRY(arena_init(&k->arena, (size_t)1 << 30));
    TRY(kube_beliefs_init(&k->beliefs, &o->beliefs, &k->arena));
    TRY(cluster_kube_reload(k));
    TRY(kube_api_create(&k->api, k->loop, o->config, NULL));
    cluster_kube_discover(k);
    TRY(loop_arm(k->loop, &k->tick_timer, clock_monotonic_ns() + tick_ns));
    if (o->no_lease || o->dry_run) {
        lead(k, true);
        return ERR_OK;
    }
    return kube_lease_start(&k->lease, k->api, k->loop, &o->lease, rng_fork(k->rng, 9),
                            lease_changed, k);
}

static void set_times(ClusterKube *k) {
    k->mono_base = clock_monotonic_ns();
    k->unix_base = clock_now(clock_realtime());
    k->wake_at = INT64_MAX;
}

static void stop_late(void *self);

Err cluster_kube_create(ClusterKube **out, Loop *l, const ClusterKubeOptions *o) {
    ClusterKube *k = calloc(1, sizeof *k);
    if (k == NULL) return err_set(ERR_LIMIT, "no memory for the scheduler");
    k->options = *o;
    k->loop = l;
    k->rng = (Rng){o->seed ^ (uint64_t)clock_monotonic_ns()};
    k->rules = (KubePlanRules){.act = KUBE_ACT_ALL,
                               .preemption = o->preemption,
                               .stops = o->stops,
                               .resize_least = 15 * CLUSTER_SECOND};
    k->decide_timer = (LoopTimer){.fire = decide, .self = k};
    k->tick_timer = (LoopTimer){.fire = tick, .self = k};
    k->stop_timer = (LoopTimer){.fire = stop_late, .self = k};
    k->discovery_timer = (LoopTimer){.fire = retry_discovery, .self = k};
    set_times(k);
    Err e = start(k);
    if (e != ERR_OK) {
        cluster_kube_destroy(k);
        return e;
    }
    *out = k;
    return ERR_OK;
}

void cluster_kube_destroy(ClusterKube *k) {
    if (k == NULL) return;
    k->stopping = true;
    loop_disarm(k->loop, &k->decide_timer);
    loop_disarm(k->loop, &k->tick_timer);
    loop_disarm(k->loop, &k->stop_timer);
    loop_disarm(k->loop, &k->discovery_timer);
    cluster_kube_close(k);
    cluster_kube_drop_writes(k);
    kube_lease_stop(k->lease);
    kube_api_destroy(k->api);
    kube_beliefs_finish(&k->beliefs);
    free(k->actions);
    arena_finish(&k->arena);
    free(k);
}

static void released(void *self) {
    ClusterKube *k = self;
    loop_disarm(k->loop, &k->stop_timer);
    if (kube_beliefs_save(&k->beliefs) != ERR_OK)
        cluster_kube_log_error(k, "experience is not saved");
    if (k->stopped != NULL) k->stopped(k->stopped_self);
    k->stopped = NULL;
}

static void stop_late(void *self) { released(self); }

void cluster_kube_stop(ClusterKube *k, void (*done)(void *self), void *self) {
    if (k->stopping) return;
    k->stopping = true;
    k->stopped = done;
    k->stopped_self = self;
    arm(k, &k->stop_timer, clock_monotonic_ns() + stop_ns);
    cluster_kube_landed(k);
}

// What is under way ends before the lease is given away.
void cluster_kube_landed(ClusterKube *k) {
    if (!k->stopping || k->in_flight > 0 || k->stopped == NULL || k->releasing) return;
    k->releasing = true;
    if (k->lease != NULL)
        kube_lease_release(k->lease, released, k);
    else
        released(k);
}

ClusterKubeCounts cluster_kube_counts(const ClusterKube *k) {
    ClusterKubeCounts c = k->counts;
    c.leads = k->leads;
    c.synced = k->open && cluster_kube_synced(k);
    c.in_flight = k->in_flight;
    c.queued = k->binds.n + k->others.n;
    if (!k->open) return c;
    c.waiting = k->jobs.n_ready;
    c.running = k->jobs.n_running;
    c.incomplete = k->jobs.n_incomplete;
    c.setups = k->view.setups;
    return c;
}
