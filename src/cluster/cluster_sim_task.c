// Jobs that are alive: how they come, start, stop, change their speed and end.
#include <math.h>
#include <string.h>

#include "base/check.h"
#include "cluster/cluster_sim_int.h"

enum { LANE_LEAST = 1024 };

// A lane that is half empty moves back, so that it takes memory for those in it alone.
void world_lane_add(Lane *l, uint32_t slot) {
    if (l->first + l->n == l->room || (l->first > LANE_LEAST && l->first > l->n)) {
        memmove(l->at, l->at + l->first, l->n * sizeof *l->at);
        l->first = 0;
    }
    l->at[l->first + l->n++] = slot;
}

// Entries ascend along a lane, so that a slot is found by halves.
void world_lane_remove(World *w, Lane *l, uint32_t slot) {
    uint32_t *at = l->at + l->first, low = 0, high = l->n;
    while (high - low > 1) {
        uint32_t middle = low + (high - low) / 2;
        if (w->tasks[at[middle]].entry <= w->tasks[slot].entry)
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

static void enter(World *w, uint32_t slot, ClusterState s) {
    ClusterTask *t = &w->tasks[slot];
    t->state = s;
    t->entry = ++w->entries;
    t->since = t->mark = w->now;
    world_lane_add(s == CLUSTER_WAITING ? &w->waiting : &w->running, slot);
}

static TimeNs guess(World *w, TimeNs work) {
    Rng    r = rng_fork(w->guesses, w->next_arrival);
    double x = (double)work * exp(w->run->error * rng_normal(&r));
    return x < 1 ? 1 : x < (double)JOB_TIME_MAX ? (TimeNs)x : JOB_TIME_MAX;
}

// A prediction that was too low is doubled until it is not.
static void tell(const World *w, ClusterTask *t, const Life *l, TimeNs did) {
    if (t->left < 0) return;
    t->left -= did;
    if (w->run->knows == CLUSTER_ORACLE || t->left >= t->owed) return;
    t->left = t->owed + l->guess;
}

static uint32_t slot_for(World *w) {
    if (w->n_free > 0) return w->free[--w->n_free];
    CHECK(w->n_fresh < w->setup.n_slots);
    return w->n_fresh++;
}

static ClusterJob job_of(const World *w, const Job *j, uint32_t id) {
    const ClusterSetup *s = &w->setup;
    const uint32_t     *class_of = w->run->class_of;
    ClusterJob          c = {.id = id,
                             .submit = j->submit,
                             .iterations = j->iterations,
                             .iteration = j->iteration,
                             .gpus = j->gpus,
                             .gpu_milli = j->gpu_milli,
                             .gpu_types = j->gpu_types,
                             .cores_milli = j->cores_milli,
                             .memory_mib = j->memory_mib,
                             .class = class_of != NULL ? class_of[id] : CLUSTER_NONE,
                             .tenant = j->tenant < s->n_tenants ? j->tenant : CLUSTER_NONE,
                             .priority = j->priority};
    uint64_t            milli = cluster_gpu_milli(&c);
    if (c.cores_milli == 0) c.cores_milli = (uint32_t)(s->cores_milli * milli / (s->gpus * 1000));
    if (c.memory_mib == 0) c.memory_mib = (uint32_t)(s->memory_mib * milli / (s->gpus * 1000));
    if (w->run->rules.gpus_only) c.cores_milli = c.memory_mib = 0;
    return c;
}

void world_arrive(World *w) {
    const Job   *j = &w->run->jobs->at[w->next_arrival];
    uint32_t     slot = slot_for(w);
    ClusterTask *t = &w->tasks[slot];
    Life        *l = &w->lives[slot];
    *l = (Life){.left = j->work, .guess = j->work, .job = w->next_arrival, .changed = l->changed};
    if (w->run->knows == CLUSTER_PREDICTED) l->guess = guess(w, j->work);
    *t = (ClusterTask){.job = job_of(w, j, w->next_arrival),
                       .left = w->run->knows == CLUSTER_BLIND ? CLUSTER_UNKNOWN : l->guess,
                       .rate = 1};
    w->next_arrival++;
    w->n_alive++;
    if (w->n_alive > w->result->most_alive) w->result->most_alive = w->n_alive;
    enter(w, slot, CLUSTER_WAITING);
}

// What it did since its mark.
static void mark(World *w, uint32_t slot) {
    ClusterTask *t = &w->tasks[slot];
    Life        *l = &w->lives[slot];
    TimeNs       ns = w->now - t->mark, did = cluster_progress(t, ns);
    if (did > l->left) did = l->left;
    l->left -= did;
    t->owed = t->owed > ns ? t->owed - ns : 0;
    tell(w, t, l, did);
    t->held += ns;
    t->mark = w->now;
}

static void plan_end(World *w, uint32_t slot) {
    const ClusterTask *t = &w->tasks[slot];
    if (w->setup.in_rounds) return;
    double work = (double)(w->lives[slot].left - t->owed);
    TimeNs ns = w->lives[slot].left;
    if (t->rate != 1.0) {
        if (!(t->rate > 0) || work / t->rate > (double)JOB_TIME_MAX) {
            due_clear(&w->ends, slot);
            return;
        }
        ns = t->owed + (TimeNs)ceil(work / t->rate);
    }
    due_set(&w->ends, slot, w->now + ns + w->run->rules.linger);
}

void world_touch(World *w, uint32_t slot) {
    if (w->lives[slot].changed) return;
    w->lives[slot].changed = true;
    w->changed[w->n_changed++] = slot;
}

void world_rates(World *w) {
    for (uint32_t i = 0; i < w->n_changed; i++) {
        uint32_t     slot = w->changed[i];
        ClusterTask *t = &w->tasks[slot];
        w->lives[slot].changed = false;
        if (t->state != CLUSTER_RUNNING) continue;
        double rate = world_rate(w, slot);
        bool   planned = w->ends.place[slot] != 0;
        if (rate == t->rate && planned) continue;
        mark(w, slot);
        t->rate = rate;
        plan_end(w, slot);
    }
    w->n_changed = 0;
}

static void keep_slices(World *w, uint32_t slot, const ClusterSlice *s, uint32_t n) {
    Life        *l = &w->lives[slot];
    ClusterTask *t = &w->tasks[slot];
    l->slices = n == 1 ? &l->one : world_borrow(w, n * sizeof *s);
    l->room = n;
    memcpy(l->slices, s, n * sizeof *s);
    t->slices = l->slices;
    t->n_slices = n;
}

static void drop_slices(World *w, uint32_t slot) {
    Life        *l = &w->lives[slot];
    ClusterTask *t = &w->tasks[slot];
    for (uint32_t i = 0; i < t->n_slices; i++) world_give(w, slot, &l->slices[i]);
    if (l->room > 1) world_return(w, l->slices, l->room * sizeof *l->slices);
    t->slices = NULL;
    t->n_slices = 0;
}

static bool distinct(const ClusterSlice *s, uint32_t n) {
    for (uint32_t i = 1; i < n; i++)
        for (uint32_t k = 0; k < i; k++)
            if (s[i].server == s[k].server) return false;
    return true;
}

void world_start(World *w, uint32_t slot, const ClusterSlice *s, uint32_t n) {
    ClusterTask *t = &w->tasks[slot];
    ClusterEnd  *r = &w->result->ends[w->lives[slot].job];
    uint64_t     gpus = 0;
    CHECK(t->state == CLUSTER_WAITING && n > 0 && distinct(s, n));
    world_lane_remove(w, &w->waiting, slot);
    keep_slices(w, slot, s, n);
    for (uint32_t i = 0; i < n; i++) {
        ClusterSlice *x = &w->lives[slot].slices[i];
        if (x->gpu_milli == 0) x->gpu_milli = t->job.gpu_milli;
        CHECK(x->server < w->setup.n_servers && cluster_suits(&w->setup, &t->job, x->server));
        CHECK(x->gpu_milli <= t->job.gpu_milli && (x->gpus > 0 || t->job.gpus == 0));
        world_take(w, slot, x);
        gpus += x->gpus;
    }
    CHECK(gpus == t->job.gpus);
    if (r->start < 0) r->start = w->now;
    r->waited += w->now - t->since;
    w->result->starts++;
    enter(w, slot, CLUSTER_RUNNING);
    t->rate = 1;
    world_touch(w, slot);
}

void world_preempt(World *w, uint32_t slot) {
    ClusterTask *t = &w->tasks[slot];
    CHECK(t->state == CLUSTER_RUNNING);
    mark(w, slot);
    TimeNs cost = cluster_restart(&w->setup, &t->job);
    drop_slices(w, slot);
    due_clear(&w->ends, slot);
    world_lane_remove(w, &w->running, slot);
    t->preemptions++;
    w->result->preemptions++;
    w->lives[slot].left += cost;
    t->owed += cost;
    if (t->left >= 0) t->left += cost;
    enter(w, slot, CLUSTER_WAITING);
}

void world_level(World *w, uint32_t slot, const ClusterSlice *s, uint32_t n) {
    const ClusterTask *t = &w->tasks[slot];
    CHECK(t->state == CLUSTER_RUNNING && n == t->n_slices);
    for (uint32_t i = 0; i < n; i++) {
        ClusterSlice *x = &w->lives[slot].slices[i];
        CHECK(x->server == s[i].server && (s[i].mask == 0 || s[i].mask == x->mask));
        CHECK(s[i].gpu_milli <= t->job.gpu_milli);
        world_relevel(w, x, &s[i]);
    }
    w->result->levels++;
    world_touch(w, slot);
}

void world_end(World *w, uint32_t slot) {
    ClusterTask *t = &w->tasks[slot];
    ClusterEnd  *r = &w->result->ends[w->lives[slot].job];
    due_clear(&w->ends, slot);
    drop_slices(w, slot);
    world_lane_remove(w, &w->running, slot);
    r->finish = w->now;
    r->preemptions = t->preemptions;
    if (w->now > w->result->last) w->result->last = w->now;
    t->state = CLUSTER_GONE;
    w->free[w->n_free++] = slot;
    w->n_alive--;
}

// In this order of operations, for the sake of others' figures.
static int64_t iterations_of(const World *w, const ClusterTask *t) {
    double round_s = (double)w->setup.round / 1e9, iteration_s = (double)t->job.iteration / 1e9;
    double n = t->rate > 0 ? floor(round_s / (iteration_s / t->rate)) : 0;
    return n < (double)(t->job.iterations - t->done) ? (int64_t)n : t->job.iterations - t->done;
}

void world_round(World *w) {
    for (uint32_t i = w->running.n; i-- > 0;) {
        uint32_t     slot = w->running.at[w->running.first + i];
        ClusterTask *t = &w->tasks[slot];
        mark(w, slot);
        t->done += iterations_of(w, t);
        if (t->done == t->job.iterations) world_end(w, slot);
    }
}
