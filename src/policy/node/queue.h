// Queue: the requests that wait, the most urgent first, in memory of its own.
#pragma once

#include "contract/node.h"

enum { QUEUE_MAX = 256 };  // more than that wait for their turn in order of arrival

typedef struct QueueItem {
    TimeNs   key;      // least first; equal ones in order of arrival
    uint32_t request;  // index into the view's requests
    uint32_t order;    // among the waiting
} QueueItem;

typedef struct Queue {
    QueueItem at[QUEUE_MAX];
    uint32_t  n;
} Queue;

// The order of a request among those that wait: least first.
typedef TimeNs QueueKey(const void *policy, const NodeRequest *r);

void      queue_fill(Queue *q, const NodeView *v, QueueKey *key, const void *policy);
QueueItem queue_pop(Queue *q);  // n > 0
