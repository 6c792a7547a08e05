#include "policy/cluster/common/strict_queue.h"

static void lay_out(StrictQueue *q, const ClusterSetup *s, Carve *from) {
    q->line.nodes = carve(from, QueueNode, s->n_slots);
    placement_carve(&q->free, s, from);
}

size_t strict_queue_size(const ClusterSetup *s, const void *settings) {
    (void)settings;
    StrictQueue q = {0};
    Carve       c = {.used = sizeof q};
    lay_out(&q, s, &c);
    return c.used;
}

void strict_queue_init(StrictQueue *q, const ClusterSetup *s) {
    Carve c = {.base = (char *)q, .used = sizeof *q};
    lay_out(q, s, &c);
    placement_init(&q->free, s);
    q->line.head = CLUSTER_NONE;
}

static void join(StrictQueue *q, const ClusterView *v, uint32_t slot, bool fresh) {
    const ClusterTask *t = &v->tasks[slot];
    priority_queue_push(&q->line, slot, q->rank(v, t, fresh), t->entry);
}

// Those that began to wait since the last decision stand at the end of the view's list.
static uint32_t newcomers(const StrictQueue *q, const ClusterView *v) {
    uint32_t from = v->n_waiting;
    while (from > 0 && v->tasks[v->waiting[from - 1]].entry > q->seen) from--;
    return from;
}

static uint32_t serve(StrictQueue *q, ClusterAction *out) {
    uint32_t n = 0;
    while (q->line.head != CLUSTER_NONE && placement_place(&q->free, q->line.head, &out[n])) {
        priority_queue_pop(&q->line);
        n++;
    }
    return n;
}

uint32_t strict_queue_decide(StrictQueue *q, const ClusterView *v, ClusterAction *out) {
    uint32_t from = newcomers(q, v);
    bool     fresh = from == 0;
    if (v->n_waiting == 0) return 0;
    for (uint32_t i = from; i < v->n_waiting; i++) join(q, v, v->waiting[i], fresh);
    q->seen = v->tasks[v->waiting[v->n_waiting - 1]].entry > q->seen
                  ? v->tasks[v->waiting[v->n_waiting - 1]].entry
                  : q->seen;
    placement_open(&q->free, v);
    uint32_t n = serve(q, out);
    if (!fresh || !q->by_freshness) return n;
    PriorityQueue again = {.nodes = q->line.nodes, .head = CLUSTER_NONE};
    for (uint32_t slot; (slot = priority_queue_pop(&q->line)) != CLUSTER_NONE;)
        priority_queue_push(&again, slot, q->rank(v, &v->tasks[slot], false), v->tasks[slot].entry);
    q->line = again;
    return n;
}
