// RequestQueue: the waiting requests as a heap, most urgent first.
#pragma once

#include "base/heap.h"
#include "contract/node.h"

enum { REQUEST_QUEUE_MAX = 256 };  // later arrivals are not considered

typedef struct RequestQueue {
    HeapItem items[REQUEST_QUEUE_MAX];
    Heap     heap;  // of items; id: index into the view's requests, order: by arrival
} RequestQueue;

typedef TimeNs RequestQueueKey(const void *policy, const NodeRequest *r);  // the least goes first

void request_queue_fill(RequestQueue *q, const NodeView *v, RequestQueueKey *key,
                        const void *policy);
