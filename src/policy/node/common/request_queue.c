#include "policy/node/common/request_queue.h"

static bool before(const RequestQueueItem *a, const RequestQueueItem *b) {
    return a->key != b->key ? a->key < b->key : a->order < b->order;
}

static void sink(RequestQueue *q, uint32_t i) {
    RequestQueueItem moved = q->at[i];
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

void request_queue_fill(RequestQueue *q, const NodeView *v, RequestQueueKey *key,
                        const void *policy) {
    q->n = v->n_waiting < REQUEST_QUEUE_MAX ? v->n_waiting : REQUEST_QUEUE_MAX;
    for (uint32_t i = 0; i < q->n; i++) {
        uint32_t r = v->waiting[i];
        q->at[i] = (RequestQueueItem){key(policy, &v->requests[r]), r, i};
    }
    for (uint32_t i = q->n / 2; i-- > 0;) sink(q, i);
}

RequestQueueItem request_queue_pop(RequestQueue *q) {
    RequestQueueItem first = q->at[0];
    q->at[0] = q->at[--q->n];
    if (q->n > 0) sink(q, 0);
    return first;
}
