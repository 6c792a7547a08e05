#include "policy/node/common/request_queue.h"

void request_queue_fill(RequestQueue *q, const NodeView *v, RequestQueueKey *key,
                        const void *policy) {
    uint32_t n = v->n_waiting < REQUEST_QUEUE_MAX ? v->n_waiting : REQUEST_QUEUE_MAX;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t r = v->waiting[i];
        q->items[i] = (HeapItem){.key = key(policy, &v->requests[r]), .order = i, .id = r};
    }
    q->heap = (Heap){.items = q->items, .n = n, .capacity = REQUEST_QUEUE_MAX};
    heap_build(&q->heap);
}
