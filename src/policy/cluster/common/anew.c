#include "policy/cluster/common/anew.h"

#include <string.h>

// GPU seconds at which a job leaves a queue.
static const int64_t limits[ANEW_QUEUES - 1] = {3250, 7200};

void anew_carve(Anew *x, const ClusterSetup *s, Carve *from) {
    for (int i = 0; i < ANEW_QUEUES; i++) {
        x->queues[i].slot = carve(from, uint32_t, s->n_slots);
        x->queues[i].job = carve(from, uint64_t, s->n_slots);
    }
    x->places = carve(from, AnewPlace, s->n_slots);
    x->keys = carve(from, int64_t, s->n_slots);
    x->slices = carve(from, ClusterSlice, s->gpus);
    x->free = carve(from, uint32_t, s->n_servers);
}

static void push(AnewQueue *q, const ClusterView *v, uint32_t slot) {
    q->slot[q->n] = slot;
    q->job[q->n++] = v->tasks[slot].job.id;
}

static void drop(AnewQueue *q, uint32_t at) {
    q->n--;
    memmove(q->slot + at, q->slot + at + 1, (q->n - at) * sizeof *q->slot);
    memmove(q->job + at, q->job + at + 1, (q->n - at) * sizeof *q->job);
}

// Ended jobs leave, new ones join in the order of submission.
static void update(Anew *x, const ClusterView *v) {
    for (int i = 0; i < ANEW_QUEUES; i++) {
        AnewQueue *q = &x->queues[i];
        uint32_t   n = 0;
        for (uint32_t k = 0; k < q->n; k++) {
            const ClusterTask *t = &v->tasks[q->slot[k]];
            if (t->state == CLUSTER_GONE || t->job.id != q->job[k]) continue;
            q->slot[n] = q->slot[k];
            q->job[n++] = q->job[k];
        }
        q->n = n;
    }
    for (uint32_t i = 0; i < v->n_waiting; i++) {
        if (v->tasks[v->waiting[i]].job.id < x->next) continue;
        push(&x->queues[0], v, v->waiting[i]);
        x->next = v->tasks[v->waiting[i]].job.id + 1;
    }
}

// Few jobs change places between two events, so insertion is fast; it is stable.
static void sort(Anew *x, const ClusterView *v, bool by_service) {
    AnewQueue *q = &x->queues[0];
    for (uint32_t i = 0; i < q->n; i++) {
        const ClusterTask *t = &v->tasks[q->slot[i]];
        uint32_t           slot = q->slot[i], at = i;
        uint64_t           job = q->job[i];
        int64_t            key = cluster_left(v, t) * (by_service ? (int64_t)t->job.gpus : 1);
        for (; at > 0 && x->keys[at - 1] > key; at--) {
            x->keys[at] = x->keys[at - 1];
            q->slot[at] = q->slot[at - 1];
            q->job[at] = q->job[at - 1];
        }
        x->keys[at] = key;
        q->slot[at] = slot;
        q->job[at] = job;
    }
}

static void take(Anew *x, uint32_t server, uint32_t gpus) {
    x->slices[x->n_slices++] = (ClusterSlice){.server = server, .gpus = gpus};
    x->free[server] -= gpus;
}

// First fit: a gang larger than a server takes whole servers, and what remains of it the first of
// the others that has enough.
static bool place(Anew *x, const ClusterSetup *s, uint32_t gpus) {
    uint32_t from = x->n_slices, most = s->most_gpus, left = gpus;
    for (uint32_t i = 0; i < s->n_servers && gpus > most && left >= most; i++) {
        if (x->free[i] < most) continue;
        take(x, i, most);
        left -= most;
    }
    for (uint32_t i = 0; i < s->n_servers && left > 0 && (left < most || gpus == most); i++) {
        if (x->free[i] < left) continue;
        take(x, i, left);
        left = 0;
    }
    if (left == 0) return true;
    for (; x->n_slices > from; x->n_slices--)
        x->free[x->slices[x->n_slices - 1].server] += x->slices[x->n_slices - 1].gpus;
    return false;
}

static bool stays(const Anew *x, const ClusterTask *t, const AnewPlace *p) {
    if (t->state != CLUSTER_RUNNING || t->n_slices != p->n) return false;
    for (uint32_t i = 0; i < p->n; i++) {
        const ClusterSlice *s = &x->slices[p->first + i];
        if (s->server != t->slices[i].server || s->gpus != t->slices[i].gpus) return false;
    }
    return true;
}

// All that stop or move stop first, then all that have another place start there.
static uint32_t write(const Anew *x, const ClusterView *v, ClusterAction *out) {
    const AnewQueue *q = &x->queues[0];
    uint32_t         n = 0;
    for (uint32_t i = 0; i < q->n; i++) {
        const ClusterTask *t = &v->tasks[q->slot[i]];
        if (t->state == CLUSTER_RUNNING && !stays(x, t, &x->places[i]))
            out[n++] = (ClusterAction){.verb = CLUSTER_PREEMPT, .task = q->slot[i]};
    }
    for (uint32_t i = 0; i < q->n; i++) {
        const AnewPlace *p = &x->places[i];
        if (p->n > 0 && !stays(x, &v->tasks[q->slot[i]], p))
            out[n++] = (ClusterAction){.verb = CLUSTER_START,
                                       .task = q->slot[i],
                                       .n_slices = p->n,
                                       .slices = &x->slices[p->first]};
    }
    return n;
}

uint32_t anew_shortest(Anew *x, const ClusterView *v, bool by_service, ClusterAction *out) {
    const ClusterSetup *s = v->setup;
    update(x, v);
    sort(x, v, by_service);
    x->n_slices = 0;
    for (uint32_t i = 0; i < s->n_servers; i++) x->free[i] = s->servers[i].gpus;
    for (uint32_t i = 0; i < x->queues[0].n; i++) {
        uint32_t from = x->n_slices;
        bool     fits = place(x, s, v->tasks[x->queues[0].slot[i]].job.gpus);
        x->places[i] = (AnewPlace){from, fits ? x->n_slices - from : 0};
    }
    return write(x, v, out);
}

// A job that ran moves down one queue when it reaches the limit; several in order of submission.
static void demote(Anew *x, const ClusterView *v) {
    for (int i = ANEW_QUEUES - 2; i >= 0; i--) {
        AnewQueue *q = &x->queues[i], *to = &x->queues[i + 1];
        uint32_t   from = to->n;
        for (uint32_t k = 0; k < q->n;) {
            const ClusterTask *t = &v->tasks[q->slot[k]];
            bool reached = cluster_held(v, t) * t->job.gpus >= limits[i] * CLUSTER_SECOND;
            if (t->state != CLUSTER_RUNNING || !reached) {
                k++;
                continue;
            }
            uint32_t slot = q->slot[k], at = to->n;
            drop(q, k);
            push(to, v, slot);
            for (; at > from && to->job[at - 1] > to->job[at]; at--) {
                uint64_t job = to->job[at];
                to->job[at] = to->job[at - 1];
                to->job[at - 1] = job;
                slot = to->slot[at];
                to->slot[at] = to->slot[at - 1];
                to->slot[at - 1] = slot;
            }
        }
    }
}

// Spreads a gang over the servers in order; the GPUs are free.
static AnewPlace spread(Anew *x, const ClusterSetup *s, uint32_t gpus) {
    AnewPlace p = {x->n_slices, 0};
    for (uint32_t i = 0; i < s->n_servers && gpus > 0; i++) {
        uint32_t n = x->free[i] < gpus ? x->free[i] : gpus;
        if (n == 0) continue;
        take(x, i, n);
        gpus -= n;
        p.n++;
    }
    return p;
}

typedef struct AnewGrant {  // of a pass over the queues
    uint64_t left;          // GPUs
    TimeNs   jump;          // when a granted job reaches its limit
    uint32_t n;             // actions
} AnewGrant;

static TimeNs jump_of(const ClusterView *v, const ClusterTask *t, int queue) {
    int64_t gpus = t->job.gpus;
    if (queue == ANEW_QUEUES - 1) return INT64_MAX;
    return (limits[queue] + gpus - 1) / gpus * CLUSTER_SECOND - cluster_held(v, t) + v->now;
}

// Grants along one queue; jobs without a grant go to its end, in order. Returns the number
// of grants.
static uint32_t grant(Anew *x, const ClusterView *v, int queue, ClusterAction *out, AnewGrant *g) {
    AnewQueue *q = &x->queues[queue];
    uint32_t   n = 0, waits = 0;
    for (uint32_t i = 0; i < q->n; i++) {
        uint32_t           slot = q->slot[i];
        const ClusterTask *t = &v->tasks[slot];
        if (g->left < t->job.gpus) {
            if (t->state == CLUSTER_RUNNING)
                out[g->n++] = (ClusterAction){.verb = CLUSTER_PREEMPT, .task = slot};
            for (uint32_t k = 0; t->state == CLUSTER_RUNNING && k < t->n_slices; k++)
                x->free[t->slices[k].server] += t->slices[k].gpus;
            x->keys[waits++] = slot;
            continue;
        }
        TimeNs jump = jump_of(v, t, queue);
        if (jump < g->jump) g->jump = jump;
        g->left -= t->job.gpus;
        q->slot[n++] = slot;
    }
    for (uint32_t i = 0; i < waits; i++) q->slot[n + i] = (uint32_t)x->keys[i];
    for (uint32_t i = 0; i < q->n; i++) q->job[i] = v->tasks[q->slot[i]].job.id;
    return n;
}

uint32_t anew_queues(Anew *x, const ClusterView *v, ClusterAction *out) {
    const ClusterSetup *s = v->setup;
    AnewGrant           g = {.left = s->gpus, .jump = INT64_MAX};
    uint32_t            granted[ANEW_QUEUES];
    update(x, v);
    demote(x, v);
    x->n_slices = 0;
    for (uint32_t i = 0; i < s->n_servers; i++) x->free[i] = v->servers[i].gpus;
    for (int i = 0; i < ANEW_QUEUES; i++) granted[i] = grant(x, v, i, out, &g);
    for (int i = 0; i < ANEW_QUEUES; i++)
        for (uint32_t k = 0; k < granted[i]; k++) {
            uint32_t           slot = x->queues[i].slot[k];
            const ClusterTask *t = &v->tasks[slot];
            if (t->state == CLUSTER_RUNNING) continue;
            AnewPlace p = spread(x, s, t->job.gpus);
            out[g.n++] = (ClusterAction){.verb = CLUSTER_START,
                                         .task = slot,
                                         .n_slices = p.n,
                                         .slices = &x->slices[p.first]};
        }
    if (g.jump < INT64_MAX) out[g.n++] = (ClusterAction){.verb = CLUSTER_WAKE, .at = g.jump};
    return g.n;
}
