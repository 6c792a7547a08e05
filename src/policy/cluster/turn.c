#include "policy/cluster/turn.h"

static void lay_out(Turn *q, const ClusterSetup *s, Carve *from) {
    q->line.nodes = carve(from, LineNode, s->n_slots);
    floor_carve(&q->floor, s, from);
}

size_t turn_size(const ClusterSetup *s, const void *settings) {
    (void)settings;
    Turn  q = {0};
    Carve c = {.used = sizeof q};
    lay_out(&q, s, &c);
    return c.used;
}

void turn_init(Turn *q, const ClusterSetup *s) {
    Carve c = {.base = (char *)q, .used = sizeof *q};
    lay_out(q, s, &c);
    floor_init(&q->floor, s);
    q->line.head = CLUSTER_NONE;
}

static void join(Turn *q, const ClusterView *v, uint32_t slot, bool fresh) {
    const ClusterTask *t = &v->tasks[slot];
    line_push(&q->line, slot, q->rank(v, t, fresh), t->entry);
}

// Those that began to wait since the last decision stand at the end of the view's list.
static uint32_t newcomers(const Turn *q, const ClusterView *v) {
    uint32_t from = v->n_waiting;
    while (from > 0 && v->tasks[v->waiting[from - 1]].entry > q->seen) from--;
    return from;
}

static uint32_t serve(Turn *q, ClusterAction *out) {
    uint32_t n = 0;
    while (q->line.head != CLUSTER_NONE && floor_place(&q->floor, q->line.head, &out[n])) {
        line_pop(&q->line);
        n++;
    }
    return n;
}

uint32_t turn_decide(Turn *q, const ClusterView *v, ClusterAction *out) {
    uint32_t from = newcomers(q, v);
    bool     fresh = from == 0;
    if (v->n_waiting == 0) return 0;
    for (uint32_t i = from; i < v->n_waiting; i++) join(q, v, v->waiting[i], fresh);
    q->seen = v->tasks[v->waiting[v->n_waiting - 1]].entry > q->seen
                  ? v->tasks[v->waiting[v->n_waiting - 1]].entry
                  : q->seen;
    floor_open(&q->floor, v);
    uint32_t n = serve(q, out);
    if (!fresh || !q->by_freshness) return n;
    Line again = {.nodes = q->line.nodes, .head = CLUSTER_NONE};
    for (uint32_t slot; (slot = line_pop(&q->line)) != CLUSTER_NONE;)
        line_push(&again, slot, q->rank(v, &v->tasks[slot], false), v->tasks[slot].entry);
    q->line = again;
    return n;
}
