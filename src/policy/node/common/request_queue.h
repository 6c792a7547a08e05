// RequestQueue: the requests that wait, the most urgent first, in memory of its own.
#pragma once

#include "contract/node.h"

enum { REQUEST_QUEUE_MAX = 256 };  // more than that wait for their turn in order of arrival

typedef struct RequestQueueItem {
    TimeNs   key;      // least first; equal ones in order of arrival
    uint32_t request;  // index into the view's requests
    uint32_t order;    // among the waiting
} RequestQueueItem;

typedef struct RequestQueue {
    RequestQueueItem at[REQUEST_QUEUE_MAX];
    uint32_t         n;
} RequestQueue;

// The order of a request among those that wait: least first.
typedef TimeNs RequestQueueKey(const void *policy, const NodeRequest *r);

void             request_queue_fill(RequestQueue *q, const NodeView *v, RequestQueueKey *key,
                                    const void *policy);
RequestQueueItem request_queue_pop(RequestQueue *q);  // n > 0
