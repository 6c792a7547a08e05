// Jobs that are alive: how they come, start, stop, change their speed and end.
#include <math.h>
#include <string.h>

#include "base/check.h"
#include "cluster/cluster_sim_int.h"

void engine_lane_add(Lane *l, uint32_t slot) {
    if (l->first + l->n == l->room) {
        memmove(l->at, l->at + l->first, l->n * sizeof *l->at);
        l->first = 0;
    }
    l->at[l->first + l->n++] = slot;
}

// Entries ascend along a lane, so that a slot is found by halves.
void engine_lane_remove(Engine *e, Lane *l, uint32_t slot) {
    uint32_t *at = l->at + l->first, low = 0, high = l->n;
    while (high - low > 1) {
        uint32_t middle = low + (high - low) / 2;
        if (e->tasks[at[middle]].entry <= e->tasks[slot].entry)
            low = middle;
        else
            high = middle;
    }
    CHECK(l->n > 0 && at[low] == slot);
    l->n--;
    if (low < l->n / 2) {
        memmove(at + 1, at, low * sizeof *at);
        l->first++;
    } else {
        memmove(at + low, at + low + 1, (l->n - low) * sizeof *at);
    }
}

static void enter(Engine *e, uint32_t slot, ClusterState s) {
    ClusterTask *t = &e->tasks[slot];
    t->state = s;
    t->entry = ++e->entries;
    t->since = t->mark = e->now;
    engine_lane_add(s == CLUSTER_WAITING ? &e->waiting : &e->running, slot);
}

static TimeNs guess(Engine *e, TimeNs work) {
    Rng    r = rng_fork(e->guesses, e->next_arrival);
    double x = (double)work * exp(e->run->error * rng_normal(&r));
    return x < 1 ? 1 : x < (double)JOB_TIME_MAX ? (TimeNs)x : JOB_TIME_MAX;
}

// A prediction that was too low is doubled until it is not.
static void tell(const Engine *e, ClusterTask *t, const Life *l, TimeNs did) {
    if (t->left < 0) return;
    t->left -= did;
    if (e->run->knows == CLUSTER_ORACLE || t->left >= t->owed) return;
    t->left = t->owed + l->guess;
}

static uint32_t slot_for(Engine *e) {
    if (e->n_free > 0) return e->free[--e->n_free];
    CHECK(e->n_fresh < e->setup.n_slots);
    return e->n_fresh++;
}

static ClusterJob job_of(const Engine *e, const Job *j, uint32_t id) {
    const ClusterSetup *s = &e->setup;
    bool                classed = e->run->class_of != NULL && j->model < e->run->jobs->n_models;
    ClusterJob          c = {.id = id,
                             .submit = j->submit,
                             .iterations = j->iterations,
                             .iteration = j->iteration,
                             .gpus = j->gpus,
                             .gpu_milli = j->gpu_milli,
                             .gpu_types = j->gpu_types,
                             .cores_milli = j->cores_milli,
                             .memory_mib = j->memory_mib,
                             .class = classed ? e->run->class_of[j->model] : CLUSTER_NONE,
                             .tenant = j->tenant < s->n_tenants ? j->tenant : CLUSTER_NONE,
                             .priority = j->priority};
    uint64_t            milli = cluster_gpu_milli(&c);
    if (c.cores_milli == 0) c.cores_milli = (uint32_t)(s->cores_milli * milli / (s->gpus * 1000));
    if (c.memory_mib == 0) c.memory_mib = (uint32_t)(s->memory_mib * milli / (s->gpus * 1000));
    if (e->run->rules.gpus_only) c.cores_milli = c.memory_mib = 0;
    return c;
}

void engine_arrive(Engine *e) {
    const Job   *j = &e->run->jobs->at[e->next_arrival];
    uint32_t     slot = slot_for(e);
    ClusterTask *t = &e->tasks[slot];
    Life        *l = &e->lives[slot];
    *l = (Life){
        .left = j->work, .guess = j->work, .job = e->next_arrival, .changed = l->changed};
    if (e->run->knows == CLUSTER_PREDICTED) l->guess = guess(e, j->work);
    *t = (ClusterTask){.job = job_of(e, j, e->next_arrival),
                       .left = e->run->knows == CLUSTER_BLIND ? CLUSTER_UNKNOWN : l->guess,
                       .rate = 1};
    e->next_arrival++;
    e->n_alive++;
    if (e->n_alive > e->result->most_alive) e->result->most_alive = e->n_alive;
    enter(e, slot, CLUSTER_WAITING);
}

// What it did since its mark.
static void mark(Engine *e, uint32_t slot) {
    ClusterTask *t = &e->tasks[slot];
    Life        *l = &e->lives[slot];
    TimeNs       ns = e->now - t->mark, did = cluster_progress(t, ns);
    if (did > l->left) did = l->left;
    l->left -= did;
    t->owed = t->owed > ns ? t->owed - ns : 0;
    tell(e, t, l, did);
    t->held += ns;
    t->mark = e->now;
}

static void plan_end(Engine *e, uint32_t slot) {
    const ClusterTask *t = &e->tasks[slot];
    double             work = (double)(e->lives[slot].left - t->owed);
    TimeNs             ns = e->lives[slot].left;
    if (t->rate != 1.0) {
        if (!(t->rate > 0) || work / t->rate > (double)JOB_TIME_MAX) {
            due_clear(&e->ends, slot);
            return;
        }
        ns = t->owed + (TimeNs)ceil(work / t->rate);
    }
    due_set(&e->ends, slot, e->now + ns + e->run->rules.linger);
}

void engine_touch(Engine *e, uint32_t slot) {
    if (e->lives[slot].changed) return;
    e->lives[slot].changed = true;
    e->changed[e->n_changed++] = slot;
}

void engine_rates(Engine *e) {
    for (uint32_t i = 0; i < e->n_changed; i++) {
        uint32_t     slot = e->changed[i];
        ClusterTask *t = &e->tasks[slot];
        e->lives[slot].changed = false;
        if (t->state != CLUSTER_RUNNING) continue;
        double rate = engine_rate(e, slot);
        bool   planned = e->ends.place[slot] != 0;
        if (rate == t->rate && planned) continue;
        mark(e, slot);
        t->rate = rate;
        plan_end(e, slot);
    }
    e->n_changed = 0;
}

static void keep_slices(Engine *e, uint32_t slot, const ClusterSlice *s, uint32_t n) {
    Life        *l = &e->lives[slot];
    ClusterTask *t = &e->tasks[slot];
    l->slices = n == 1 ? &l->one : engine_borrow(e, n * sizeof *s);
    l->room = n;
    memcpy(l->slices, s, n * sizeof *s);
    t->slices = l->slices;
    t->n_slices = n;
}

static void drop_slices(Engine *e, uint32_t slot) {
    Life        *l = &e->lives[slot];
    ClusterTask *t = &e->tasks[slot];
    for (uint32_t i = 0; i < t->n_slices; i++) engine_give(e, slot, &l->slices[i]);
    if (l->room > 1) engine_return(e, l->slices, l->room * sizeof *l->slices);
    t->slices = NULL;
    t->n_slices = 0;
}

static bool suits(const Engine *e, const ClusterJob *j, uint32_t server) {
    return j->gpu_types == 0 || j->gpus == 0 ||
           (j->gpu_types >> e->setup.servers[server].type & 1) != 0;
}

void engine_start(Engine *e, uint32_t slot, const ClusterSlice *s, uint32_t n) {
    ClusterTask *t = &e->tasks[slot];
    ClusterEnd  *r = &e->result->ends[e->lives[slot].job];
    uint64_t     gpus = 0;
    CHECK(t->state == CLUSTER_WAITING && n > 0);
    engine_lane_remove(e, &e->waiting, slot);
    keep_slices(e, slot, s, n);
    for (uint32_t i = 0; i < n; i++) {
        ClusterSlice *x = &e->lives[slot].slices[i];
        if (x->gpu_milli == 0) x->gpu_milli = t->job.gpu_milli;
        CHECK(x->server < e->setup.n_servers && suits(e, &t->job, x->server));
        CHECK(x->gpu_milli <= t->job.gpu_milli);
        engine_take(e, slot, x);
        gpus += x->gpus;
    }
    CHECK(gpus == t->job.gpus);
    if (r->start < 0) r->start = e->now;
    r->waited += e->now - t->since;
    e->result->starts++;
    enter(e, slot, CLUSTER_RUNNING);
    t->rate = 1;
    engine_touch(e, slot);
}

void engine_preempt(Engine *e, uint32_t slot) {
    ClusterTask *t = &e->tasks[slot];
    CHECK(t->state == CLUSTER_RUNNING);
    mark(e, slot);
    TimeNs cost = t->job.gpus > e->setup.most_gpus ? e->setup.restart_wide : e->setup.restart;
    drop_slices(e, slot);
    due_clear(&e->ends, slot);
    engine_lane_remove(e, &e->running, slot);
    t->preemptions++;
    e->result->preemptions++;
    e->lives[slot].left += cost;
    t->owed += cost;
    if (t->left >= 0) t->left += cost;
    enter(e, slot, CLUSTER_WAITING);
}

void engine_level(Engine *e, uint32_t slot, const ClusterSlice *s, uint32_t n) {
    const ClusterTask *t = &e->tasks[slot];
    CHECK(t->state == CLUSTER_RUNNING && n == t->n_slices);
    for (uint32_t i = 0; i < n; i++) {
        ClusterSlice *x = &e->lives[slot].slices[i];
        CHECK(x->server == s[i].server);
        engine_relevel(e, x, s[i].cores_milli, s[i].memory_mib);
    }
    e->result->levels++;
    engine_touch(e, slot);
}

void engine_end(Engine *e, uint32_t slot) {
    ClusterTask *t = &e->tasks[slot];
    ClusterEnd  *r = &e->result->ends[e->lives[slot].job];
    due_clear(&e->ends, slot);
    drop_slices(e, slot);
    engine_lane_remove(e, &e->running, slot);
    r->finish = e->now;
    r->preemptions = t->preemptions;
    if (e->now > e->result->last) e->result->last = e->now;
    t->state = CLUSTER_GONE;
    e->free[e->n_free++] = slot;
    e->n_alive--;
}
