// Forecasts: a second run of the simulator whose truth is what the view of the first one believes.
//
// Tasks get new slots, waiting ones first, so that the cost depends on how many are alive. Policies
// in it begin with a fresh state and see the beliefs of the view; what happens to a task is the
// work that the caller gives it.
#include <string.h>

#include "cluster/profile/profiles.h"
#include "cluster/sim/cluster_sim_int.h"

// Progress up to now is booked, as in a view that is made after an event.
static ClusterTask task_now(const ClusterView *v, const ClusterTask *t) {
    ClusterTask to = *t;
    TimeNs      ns = t->state == CLUSTER_RUNNING ? v->now - t->mark : 0;
    to.left = cluster_left(v, t);
    to.held = cluster_held(v, t);
    to.extra = cluster_extra(t, v->now);
    to.owed = t->owed > ns ? t->owed - ns : 0;
    to.mark = v->now;
    to.slices = NULL;
    to.n_slices = 0;
    return to;
}

static uint32_t add_task(ClusterSim *w, const ClusterView *v, const ClusterTask *t, TimeNs work) {
    uint32_t     slot = w->n_fresh++;
    ClusterTask *to = &w->tasks[slot];
    *to = task_now(v, t);
    if (to->entry > w->entries) w->entries = to->entry;
    if (to->left >= 0 && to->left < to->owed) to->left = to->owed;
    w->states[slot] = (TaskState){.left = to->owed + (work > 0 ? work : 1),
                                  .owed = to->owed,
                                  .mark = v->now,
                                  .rate = t->rate > 0 ? t->rate : 1,
                                  .guess = to->left > to->owed ? to->left - to->owed : 1,
                                  .class = t->job.class,
                                  .job = slot};
    w->result->ends[slot].start = t->state == CLUSTER_RUNNING ? t->since : -1;
    w->n_alive++;
    return slot;
}

static void add_running(ClusterSim *w, const ClusterView *v, const ClusterTask *t, TimeNs work) {
    uint32_t   slot = add_task(w, v, t, work);
    ClusterJob as = cluster_job_as(&t->job, t->slices, t->n_slices);
    cluster_sim_store_slices(w, slot, t->slices, t->n_slices);
    for (uint32_t i = 0; i < t->n_slices; i++)
        cluster_sim_take(w, slot, &w->states[slot].slices[i]);
    tenant_quota_take(&w->tenants, &as);
    slot_queue_add(&w->running, slot);
    cluster_sim_schedule_end(w, slot);
}

static void add_tasks(ClusterSim *w, const ClusterView *v, const TimeNs *work) {
    for (uint32_t i = 0; i < v->n_waiting; i++)
        slot_queue_add(&w->waiting, add_task(w, v, &v->tasks[v->waiting[i]], work[i]));
    for (uint32_t i = 0; i < v->n_running; i++)
        add_running(w, v, &v->tasks[v->running[i]], work[v->n_waiting + i]);
}

// A measured rate holds until the allocation changes; others follow from the beliefs.
static void believe_rates(ClusterSim *w) {
    for (uint32_t i = 0; i < w->n_changed; i++) w->states[w->changed[i]].changed = false;
    w->n_changed = 0;
    for (uint32_t i = 0; i < w->running.n; i++) {
        uint32_t slot = w->running.at[w->running.first + i];
        if (w->tasks[slot].measured > 0) continue;
        cluster_sim_rate_changed(w, slot);
    }
}

static Err simulate(ClusterSim *w, const ClusterView *v, const TimeNs *work) {
    TRY(cluster_sim_prepare(w));
    usage_open(&w->usage, w->now);
    add_tasks(w, v, work);
    believe_rates(w);
    TRY(cluster_sim_prepare_policy(w));
    cluster_sim_decide(w, v->reason);
    cluster_sim_rates(w);
    return cluster_sim_events(w);
}

static Err open_and_simulate(Arena *a, const ClusterView *v, const ClusterForecastRun *run,
                             ClusterResult *r) {
    uint32_t           n = v->n_waiting + v->n_running;
    ClusterSim        *w = arena_try_new(a, ClusterSim, 1);
    ClusterSetup      *s = arena_try_new(a, ClusterSetup, 1);
    JobList            jobs = {.n = n};
    InformationBeliefs beliefs = {.profiles = v->setup->profiles, .fallback = PROFILE_NONE};
    ClusterRun         as = {.jobs = &jobs,
                             .profiles = v->setup->profiles,
                             .beliefs = &beliefs,
                             .policy = run->policy,
                             .settings = run->settings,
                             .loaded = run->loaded,
                             .knows = CLUSTER_PREDICTED};
    r->ends = arena_try_new(a, ClusterEnd, n);
    if (w == NULL || s == NULL || r->ends == NULL)
        return err_set(ERR_LIMIT, "no memory to forecast %u jobs", n);
    *s = *v->setup;
    s->n_slots = n;
    s->forecast = NULL;
    as.params.stops = s->stops;
    *w = (ClusterSim){.run = &as,
                      .arena = a,
                      .hidden = a,
                      .setup = s,
                      .truth = *s,
                      .result = r,
                      .now = v->now,
                      .wake = INT64_MAX,
                      .round = s->round > 0 ? v->now + s->round : INT64_MAX,
                      .next_arrival = n,
                      .most_decisions = run->most_decisions};
    TRY(simulate(w, v, run->work));
    return w->n_alive == 0 ? ERR_OK : err_set(ERR_LIMIT, "%u jobs have not ended", w->n_alive);
}

ClusterOutlook cluster_forecast(const ClusterForecast *self, const ClusterView *v,
                                const ClusterForecastRun *run) {
    Arena        *a = self->arena;
    size_t        mark = a->used;
    ClusterResult r = {
        .first = v->now, .last = v->now, .alive_ns = v->alive_ns, .busy_ns = v->busy_ns};
    bool drained = open_and_simulate(a, v, run, &r) == ERR_OK;
    arena_rewind(a, mark);
    return (ClusterOutlook){.drained = drained,
                            .alive_s = (double)(r.alive_ns - v->alive_ns) / 1e9,
                            .makespan_s = (double)(r.last - v->now) / 1e9,
                            .decisions = r.decisions};
}
