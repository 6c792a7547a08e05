#include "policy/cluster/common/quota.h"

#include "base/err.h"
#include "policy/cluster/common/cluster_policy.h"

void quota_carve(Quota *q, const ClusterSetup *s, Carve *from) {
    q->nodes = carve(from, QueueNode, s->n_slots);
    q->running = carve(from, QuotaItem, s->n_slots);
    q->granted = carve(from, uint32_t, s->n_slots);
    q->aside = carve(from, uint32_t, s->n_slots);
    placement_carve(&q->free, s, from);
    tenant_quota_carve(&q->tenants, s, from);
}

static uint64_t demand(const ClusterView *v, uint32_t slot) {
    return cluster_gpu_milli(&v->tasks[slot].job);
}

static bool may_stop(const ClusterView *v, uint32_t slot) {
    return cluster_may_preempt(v->setup, &v->tasks[slot], v->now);
}

static QuotaQueue *queue_for(Quota *q, uint64_t milli) {
    for (uint32_t i = 0; i < q->n_queues; i++)
        if (q->queues[i].milli == milli) return &q->queues[i];
    bool        last = q->n_queues == QUOTA_SIZES;
    QuotaQueue *l = &q->queues[last ? QUOTA_SIZES - 1 : q->n_queues];
    if (!last) {
        q->n_queues++;
        *l = (QuotaQueue){{q->nodes, CLUSTER_NONE}, milli};
    }
    if (milli < l->milli) l->milli = milli;
    return l;
}

static void enqueue(Quota *q, const ClusterView *v, uint32_t slot) {
    const ClusterTask *t = &v->tasks[slot];
    priority_queue_push(&queue_for(q, demand(v, slot))->queue, slot, q->key(q->self, v, t),
                        t->entry);
}

static bool item_before(const QuotaItem *a, const QuotaItem *b) {
    int c = sort_key_compare(a->key, b->key);
    return c != 0 ? c < 0 : a->entry < b->entry;
}

// Insertion sort: tasks that still run are nearly in order already; new ones are appended first.
static void sort_running(Quota *q, const ClusterView *v) {
    uint32_t n = 0, from = v->n_running;
    while (from > 0 && v->tasks[v->running[from - 1]].entry > q->seen_running) from--;
    for (uint32_t i = 0; i < q->n_running; i++) {
        const ClusterTask *t = &v->tasks[q->running[i].slot];
        if (t->state == CLUSTER_RUNNING && t->entry == q->running[i].entry)
            q->running[n++] = q->running[i];
    }
    for (uint32_t i = from; i < v->n_running; i++)
        q->running[n++] =
            (QuotaItem){.slot = v->running[i], .entry = v->tasks[v->running[i]].entry};
    CHECK(n == v->n_running);
    q->n_running = n;
    for (uint32_t i = 0; i < n; i++) {
        QuotaItem x = q->running[i];
        uint32_t  at = i;
        x.key = q->key(q->self, v, &v->tasks[x.slot]);
        for (; at > 0 && item_before(&x, &q->running[at - 1]); at--)
            q->running[at] = q->running[at - 1];
        q->running[at] = x;
    }
}

static void update_waiting(Quota *q, const ClusterView *v) {
    uint32_t from = waiting_since(v, q->seen_waiting);
    for (uint32_t i = from; i < v->n_waiting; i++) enqueue(q, v, v->waiting[i]);
    if (from < v->n_waiting) q->seen_waiting = v->tasks[v->waiting[v->n_waiting - 1]].entry;
}

static void update_running(Quota *q, const ClusterView *v) {
    sort_running(q, v);
    if (v->n_running > 0) q->seen_running = v->tasks[v->running[v->n_running - 1]].entry;
}

// Within the GPUs left and its tenant's limit.
static bool within(const Quota *q, const ClusterView *v, uint32_t slot, uint64_t quota) {
    return demand(v, slot) <= quota && tenant_quota_fits(&q->tenants, &v->tasks[slot].job);
}

// The queue with the next waiting task among those with a demand within the quota.
static QuotaQueue *next_waiting(Quota *q, const ClusterView *v, uint64_t quota) {
    QuotaQueue *best = NULL;
    for (uint32_t i = 0; i < q->n_queues; i++) {
        QuotaQueue *l = &q->queues[i];
        if (l->milli > quota) continue;
        while (l->queue.head != CLUSTER_NONE && !within(q, v, l->queue.head, quota))
            q->aside[q->n_aside++] = priority_queue_pop(&l->queue);
        if (l->queue.head == CLUSTER_NONE) continue;
        if (best == NULL ||
            priority_queue_before(&q->nodes[l->queue.head], &q->nodes[best->queue.head]))
            best = l;
    }
    return best;
}

static bool waiting_is_next(const Quota *q, const QuotaQueue *w, const QuotaItem *r) {
    int c = sort_key_compare(q->nodes[w->queue.head].key, r->key);
    return c != 0 ? c < 0 : q->waiting_first;
}

// Running tasks that may not be preempted keep their GPUs, whatever their order.
static uint64_t held_back(Quota *q, const ClusterView *v, uint32_t n_running) {
    uint64_t milli = 0;
    for (uint32_t i = 0; i < n_running; i++) {
        uint32_t slot = q->running[i].slot;
        if (may_stop(v, slot)) continue;
        milli += demand(v, slot);
        tenant_quota_take(&q->tenants, &v->tasks[slot].job);
    }
    return milli;
}

// Without a walk along them, running tasks count as they are.
static void count_tenants(Quota *q, const ClusterView *v, uint32_t n_running) {
    if (n_running > 0)
        tenant_quota_clear(&q->tenants, v->setup);
    else
        tenant_quota_open(&q->tenants, v);
}

// Walks the first n_running running tasks and all waiting ones. Returns the number of PREEMPTs.
static uint32_t grant(Quota *q, const ClusterView *v, uint64_t quota, uint32_t n_running,
                      ClusterAction *out) {
    uint32_t n = 0, at = 0;
    count_tenants(q, v, n_running);
    quota -= held_back(q, v, n_running);
    QuotaQueue *w = next_waiting(q, v, quota);
    q->n_granted = 0;
    while (at < n_running || w != NULL) {
        bool     waits = w != NULL && (at == n_running || waiting_is_next(q, w, &q->running[at]));
        uint32_t slot = waits ? priority_queue_pop(&w->queue) : q->running[at++].slot;
        uint64_t milli = demand(v, slot);
        if (!waits && !may_stop(v, slot)) continue;
        if (!within(q, v, slot, quota)) {
            out[n++] = (ClusterAction){.verb = CLUSTER_PREEMPT, .task = slot};
            continue;
        }
        quota -= milli;
        tenant_quota_take(&q->tenants, &v->tasks[slot].job);
        if (waits) q->granted[q->n_granted++] = slot;
        if (waits || (w != NULL && !within(q, v, w->queue.head, quota)))
            w = next_waiting(q, v, quota);
    }
    return n;
}

static uint64_t all_free(const ClusterView *v) {
    uint64_t free = 0;
    for (uint32_t i = 0; i < v->setup->n_servers; i++) free += v->servers[i].gpu_milli;
    return free;
}

// With enough free GPUs for all, only the order of waiting tasks matters.
static bool suffices(const ClusterView *v) {
    uint64_t free = all_free(v), wanted = 0;
    for (uint32_t i = 0; i < v->n_waiting && wanted <= free; i++)
        wanted += demand(v, v->waiting[i]);
    return wanted <= free;
}

// Releases the first `n` tasks of out, then starts the granted ones.
static uint32_t carry_out(Quota *q, const ClusterView *v, uint32_t n, ClusterAction *out) {
    uint32_t stopped = n;
    if (stopped > 0 || q->n_granted > 0) placement_open(&q->free, v);
    for (uint32_t i = 0; i < stopped; i++) placement_release(&q->free, &v->tasks[out[i].task]);
    for (uint32_t i = 0; i < q->n_granted; i++) {
        if (placement_place(&q->free, q->granted[i], &out[n]))
            n++;
        else
            enqueue(q, v, q->granted[i]);
    }
    while (q->n_aside > 0) enqueue(q, v, q->aside[--q->n_aside]);
    return n;
}

uint32_t quota_decide(Quota *q, const ClusterView *v, ClusterAction *out) {
    uint64_t all = v->setup->gpus * CLUSTER_WHOLE_GPU;
    if (v->n_waiting == 0) return 0;
    update_waiting(q, v);
    bool enough = suffices(v);
    if (!enough) update_running(q, v);
    return carry_out(q, v, grant(q, v, all, enough ? 0 : q->n_running, out), out);
}

uint32_t quota_fill(Quota *q, const ClusterView *v, ClusterAction *out) {
    if (v->n_waiting == 0) return 0;
    update_waiting(q, v);
    return carry_out(q, v, grant(q, v, all_free(v), 0, out), out);
}
