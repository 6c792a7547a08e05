#include "policy/node/queue.h"

static bool before(const QueueItem *a, const QueueItem *b) {
    return a->key != b->key ? a->key < b->key : a->order < b->order;
}

static void sink(Queue *q, uint32_t i) {
    QueueItem moved = q->at[i];
    for (;;) {
        uint32_t child = 2 * i + 1;
        if (child >= q->n) break;
        if (child + 1 < q->n && before(&q->at[child + 1], &q->at[child])) child++;
        if (!before(&q->at[child], &moved)) break;
        q->at[i] = q->at[child];
        i = child;
    }
    q->at[i] = moved;
}

void queue_fill(Queue *q, const NodeView *v, QueueKey *key, const void *policy) {
    q->n = v->n_waiting < QUEUE_MAX ? v->n_waiting : QUEUE_MAX;
    for (uint32_t i = 0; i < q->n; i++) {
        uint32_t r = v->waiting[i];
        q->at[i] = (QueueItem){key(policy, &v->requests[r]), r, i};
    }
    for (uint32_t i = q->n / 2; i-- > 0;) sink(q, i);
}

QueueItem queue_pop(Queue *q) {
    QueueItem first = q->at[0];
    q->at[0] = q->at[--q->n];
    if (q->n > 0) sink(q, 0);
    return first;
}
