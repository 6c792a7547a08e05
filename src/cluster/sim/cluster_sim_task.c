// Tasks: arrival, start, progress, preemption, resize, end.
#include <math.h>
#include <string.h>

#include "base/err.h"
#include "cluster/sim/cluster_sim_int.h"

enum { SLOT_QUEUE_LEAST = 1024 };

// Moves a half-empty queue to the front of its array, so that few pages are touched.
void slot_queue_add(SlotQueue *l, uint32_t slot) {
    if (l->first + l->n == l->room || (l->first > SLOT_QUEUE_LEAST && l->first > l->n)) {
        memmove(l->at, l->at + l->first, l->n * sizeof *l->at);
        l->first = 0;
    }
    l->at[l->first + l->n++] = slot;
}

// Entry numbers ascend along the queue: binary search.
void slot_queue_remove(ClusterSim *w, SlotQueue *l, uint32_t slot) {
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

static void enter(ClusterSim *w, uint32_t slot, ClusterState s) {
    ClusterTask *t = &w->tasks[slot];
    t->state = s;
    t->entry = ++w->entries;
    t->since = t->mark = w->states[slot].mark = w->now;
    slot_queue_add(s == CLUSTER_WAITING ? &w->waiting : &w->running, slot);
}

static TimeNs guess(ClusterSim *w, TimeNs work) {
    Rng    r = rng_fork(w->guesses, w->next_arrival);
    double x = (double)work * exp(w->run->error * rng_normal(&r));
    return x < 1 ? 1 : x < (double)JOB_TIME_MAX ? (TimeNs)x : JOB_TIME_MAX;
}

// A prediction that turns out too low is extended by the same amount; an exact duration whose
// measured progress is too high, by the error of that progress.
static void update_prediction(ClusterSim *w, uint32_t slot, TimeNs did) {
    ClusterTask     *t = &w->tasks[slot];
    const TaskState *l = &w->states[slot];
    bool             exact = w->run->knows == CLUSTER_ORACLE;
    if (t->left < 0) return;
    t->left -= did;
    if ((exact && w->run->info.rates == RATES_EXACT) || t->left >= t->owed) return;
    if (cluster_sim_estimates_durations(w)) {
        t->left = t->owed + cluster_sim_estimate_left(w, slot);
        return;
    }
    TimeNs more = exact ? (TimeNs)((double)l->guess * w->run->info.noise) + 1 : l->guess;
    t->left = t->owed + more;
}

static uint32_t new_slot(ClusterSim *w) {
    if (w->n_free > 0) return w->free[--w->n_free];
    CHECK(w->n_fresh < w->setup->n_slots);
    return w->n_fresh++;
}

static ClusterJob job_of(const ClusterSim *w, const Job *j, uint32_t id) {
    const ClusterSetup *s = w->setup;
    const uint32_t     *class_of =
        w->run->beliefs != NULL ? w->run->beliefs->class_of : w->run->class_of;
    bool       counted = w->run->info.durations == DURATIONS_EXACT;
    ClusterJob c = {.id = id,
                    .submit = j->submit,
                    .iterations = counted ? j->iterations : 0,
                    .iteration = counted ? j->iteration : 0,
                    .gpus = j->gpus,
                    .gpu_milli = j->gpu_milli,
                    .gpu_types = j->gpu_types,
                    .cores_milli = j->cores_milli,
                    .memory_mib = j->memory_mib,
                    .class = class_of != NULL ? class_of[id] : CLUSTER_NONE,
                    .tenant = j->tenant < s->n_tenants ? j->tenant : CLUSTER_NONE,
                    .priority = j->priority,
                    .servers = j->servers};
    uint64_t   milli = cluster_gpu_milli(&c);
    if (c.cores_milli == 0) c.cores_milli = (uint32_t)(s->cores_milli * milli / (s->gpus * 1000));
    if (c.memory_mib == 0) c.memory_mib = (uint32_t)(s->memory_mib * milli / (s->gpus * 1000));
    if (w->run->params.gpus_only) c.cores_milli = c.memory_mib = 0;
    if (s->in_rounds || s->anew || j->gpus_max == j->gpus_min) return c;
    c.gpus_min = j->gpus_min;
    c.gpus_max = j->gpus_max < s->gpus ? j->gpus_max : (uint32_t)s->gpus;
    return c;
}

void cluster_sim_arrive(ClusterSim *w) {
    const Job   *j = &w->run->jobs->at[w->next_arrival];
    uint32_t     slot = new_slot(w);
    ClusterTask *t = &w->tasks[slot];
    TaskState   *l = &w->states[slot];
    *l = (TaskState){.left = j->work,
                     .guess = j->work,
                     .rate = 1,
                     .job = w->next_arrival,
                     .class = w->run->class_of != NULL ? w->run->class_of[w->next_arrival]
                                                       : CLUSTER_NONE,
                     .changed = l->changed};
    if (w->run->knows == CLUSTER_PREDICTED) l->guess = guess(w, j->work);
    *t = (ClusterTask){.job = job_of(w, j, w->next_arrival),
                       .left = w->run->knows == CLUSTER_BLIND ? CLUSTER_UNKNOWN : l->guess,
                       .rate = 1};
    w->next_arrival++;
    w->n_alive++;
    if (w->n_alive > w->result->most_alive) w->result->most_alive = w->n_alive;
    enter(w, slot, CLUSTER_WAITING);
    cluster_sim_estimate_arrival(w, slot);
}

static void book_seen(ClusterSim *w, uint32_t slot, TimeNs did) {
    ClusterTask *t = &w->tasks[slot];
    TimeNs       ns = w->now - t->mark;
    w->states[slot].seen += did > t->owed ? did - t->owed : 0;
    t->owed = t->owed > ns ? t->owed - ns : 0;
    update_prediction(w, slot, did);
    t->held += ns;
    t->extra = cluster_extra(t, w->now);
    t->mark = w->now;
}

void cluster_sim_book_view(ClusterSim *w, uint32_t slot) {
    const ClusterTask *t = &w->tasks[slot];
    book_seen(w, slot, cluster_progress(t, w->now - t->mark));
}

void cluster_sim_book(ClusterSim *w, uint32_t slot) {
    TaskState *l = &w->states[slot];
    TimeNs     ns = w->now - l->mark, did = cluster_progress_at(l->owed, l->rate, ns);
    if (did > l->left) did = l->left;
    l->left -= did;
    l->owed = l->owed > ns ? l->owed - ns : 0;
    l->mark = w->now;
    if (w->run->info.rates == RATES_EXACT)
        book_seen(w, slot, did);
    else
        cluster_sim_book_view(w, slot);
}

void cluster_sim_store_slices(ClusterSim *w, uint32_t slot, const ClusterSlice *s, uint32_t n) {
    TaskState   *l = &w->states[slot];
    ClusterTask *t = &w->tasks[slot];
    l->slices = n == 1 ? &w->ones[slot] : cluster_sim_borrow(w, n * sizeof *s);
    l->room = n;
    memcpy(l->slices, s, n * sizeof *s);
    t->slices = l->slices;
    t->n_slices = n;
}

static void drop_slices(ClusterSim *w, uint32_t slot) {
    TaskState   *l = &w->states[slot];
    ClusterTask *t = &w->tasks[slot];
    ClusterJob   as = cluster_job_as(&t->job, l->slices, t->n_slices);
    for (uint32_t i = 0; i < t->n_slices; i++) cluster_sim_give(w, slot, &l->slices[i]);
    l->gpus = as.gpus;
    if (l->room > 1) cluster_sim_return(w, l->slices, l->room * sizeof *l->slices);
    t->slices = NULL;
    t->n_slices = 0;
    tenant_quota_give(&w->tenants, &as);
}

static bool distinct(const ClusterSlice *s, uint32_t n) {
    for (uint32_t i = 1; i < n; i++)
        for (uint32_t k = 0; k < i; k++)
            if (s[i].server == s[k].server) return false;
    return true;
}

// The stop just before was none: the task only moved (anew), or it has other GPUs now.
static void undo_stop(ClusterSim *w, ClusterTask *t) {
    t->preemptions--;
    w->result->preemptions--;
    w->result->starts--;
}

static void note_start(ClusterSim *w, uint32_t slot) {
    ClusterTask *t = &w->tasks[slot];
    TaskState   *l = &w->states[slot];
    ClusterEnd  *r = &w->result->ends[l->job];
    bool         again = r->start >= 0 && t->since == w->now;
    bool         rescaled = again && cluster_slices_gpus(t->slices, t->n_slices) != l->gpus;
    CHECK(rescaled || !l->must_start);
    w->n_must_start -= l->must_start;
    l->must_start = false;
    if (r->start < 0) r->start = w->now;
    r->waited += w->now - t->since;
    w->result->starts++;
    w->result->rescales += rescaled;
    t->rescales += rescaled;
    if (rescaled || (w->run->params.anew && again)) undo_stop(w, t);
}

void cluster_sim_start(ClusterSim *w, uint32_t slot, const ClusterSlice *s, uint32_t n) {
    ClusterTask *t = &w->tasks[slot];
    CHECK(t->state == CLUSTER_WAITING && n > 0 && distinct(s, n));
    slot_queue_remove(w, &w->waiting, slot);
    cluster_sim_store_slices(w, slot, s, n);
    for (uint32_t i = 0; i < n; i++) {
        ClusterSlice *x = &w->states[slot].slices[i];
        if (x->gpu_milli == 0) x->gpu_milli = t->job.gpu_milli;
        CHECK(x->server < w->setup->n_servers && cluster_server_fits(w->setup, &t->job, x->server));
        CHECK(x->gpu_milli <= t->job.gpu_milli && (x->gpus > 0 || t->job.gpus == 0));
        cluster_sim_take(w, slot, x);
    }
    ClusterJob as = cluster_job_as(&t->job, s, n);
    CHECK(cluster_gpus_allowed(&t->job, as.gpus) && tenant_quota_fits(&w->tenants, &as));
    tenant_quota_take(&w->tenants, &as);
    note_start(w, slot);
    enter(w, slot, CLUSTER_RUNNING);
    t->rate = w->states[slot].rate = 1;
    cluster_sim_rate_changed(w, slot);
}

void cluster_sim_preempt(ClusterSim *w, uint32_t slot) {
    ClusterTask *t = &w->tasks[slot];
    TaskState   *l = &w->states[slot];
    l->must_start = !cluster_may_preempt(w->setup, t, w->now);
    w->n_must_start += l->must_start;
    CHECK(t->state == CLUSTER_RUNNING);
    CHECK(!l->must_start || cluster_may_rescale(w->setup, t, w->now));
    ClusterJob as = t->job;
    as.class = l->class;
    cluster_sim_book(w, slot);
    TimeNs cost = cluster_restart(w->setup, &t->job), truth = cluster_restart(&w->truth, &as);
    drop_slices(w, slot);
    heap_remove(&w->ends, slot);
    heap_remove(&w->measures, slot);
    t->measured = 0;
    slot_queue_remove(w, &w->running, slot);
    t->preemptions++;
    w->result->preemptions++;
    l->left += truth;
    l->owed += truth;
    t->owed += cost;
    if (t->left >= 0) t->left += cost;
    enter(w, slot, CLUSTER_WAITING);
}

void cluster_sim_resize(ClusterSim *w, uint32_t slot, const ClusterSlice *s, uint32_t n) {
    const ClusterTask *t = &w->tasks[slot];
    CHECK(t->state == CLUSTER_RUNNING && n == t->n_slices);
    for (uint32_t i = 0; i < n; i++) {
        ClusterSlice *x = &w->states[slot].slices[i];
        CHECK(x->server == s[i].server && (s[i].mask == 0 || s[i].mask == x->mask));
        CHECK(s[i].gpu_milli <= t->job.gpu_milli);
        cluster_sim_resize_slice(w, x, &s[i]);
    }
    w->result->levels++;
    cluster_sim_rate_changed(w, slot);
}

void cluster_sim_end(ClusterSim *w, uint32_t slot) {
    ClusterTask *t = &w->tasks[slot];
    ClusterEnd  *r = &w->result->ends[w->states[slot].job];
    cluster_sim_estimate_end(w, slot);
    heap_remove(&w->ends, slot);
    heap_remove(&w->measures, slot);
    drop_slices(w, slot);
    slot_queue_remove(w, &w->running, slot);
    r->finish = w->now;
    r->preemptions = t->preemptions;
    if (w->now > w->result->last) w->result->last = w->now;
    t->state = CLUSTER_GONE;
    w->free[w->n_free++] = slot;
    w->n_alive--;
}

void cluster_sim_interrupt(ClusterSim *w) {
    for (uint32_t i = 0; i < w->running.n; i++) {
        uint32_t     slot = w->running.at[w->running.first + i];
        ClusterTask *t = &w->tasks[slot];
        TaskState   *l = &w->states[slot];
        TimeNs       ns = w->now - l->mark, overhead = w->run->overheads[l->job];
        TimeNs       did = ns > overhead ? ns - overhead : 0;
        l->left -= did;
        if (t->left >= 0) t->left -= did;
        t->held += ns;
        t->mark = l->mark = w->now;
        heap_set(&w->ends, w->now + l->left, 0, slot);
    }
}

// In the order of operations of Synergy's simulator, for equal figures.
static int64_t iterations_of(const ClusterSim *w, const ClusterTask *t) {
    double round_s = (double)w->setup->round / 1e9, iteration_s = (double)t->job.iteration / 1e9;
    double n = t->rate > 0 ? floor(round_s / (iteration_s / t->rate)) : 0;
    return n < (double)(t->job.iterations - t->done) ? (int64_t)n : t->job.iterations - t->done;
}

void cluster_sim_round(ClusterSim *w) {
    for (uint32_t i = w->running.n; i-- > 0;) {
        uint32_t     slot = w->running.at[w->running.first + i];
        ClusterTask *t = &w->tasks[slot];
        cluster_sim_book(w, slot);
        t->done += iterations_of(w, t);
        if (t->done == t->job.iterations) cluster_sim_end(w, slot);
    }
}
