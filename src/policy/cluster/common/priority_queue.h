// PriorityQueue: tasks by sort key, least first; equal keys in the order in which they began to
// wait. A task is in at most one queue, so any number of queues can share one node array.
#pragma once

#include "contract/cluster.h"

typedef struct SortKey {
    double first, second;
} SortKey;

typedef struct QueueNode {
    SortKey  key;
    uint64_t entry;
    uint32_t left, right;
} QueueNode;

typedef struct PriorityQueue {
    QueueNode *nodes;  // [n_slots]
    uint32_t   head;   // slot; CLUSTER_NONE: empty
} PriorityQueue;

static inline int sort_key_compare(SortKey a, SortKey b) {
    if (a.first != b.first) return a.first < b.first ? -1 : 1;
    return a.second < b.second ? -1 : a.second > b.second;
}

void     priority_queue_push(PriorityQueue *l, uint32_t slot, SortKey key, uint64_t entry);
uint32_t priority_queue_pop(PriorityQueue *l);  // the head, or CLUSTER_NONE

static inline bool priority_queue_before(const QueueNode *a, const QueueNode *b) {
    int c = sort_key_compare(a->key, b->key);
    return c != 0 ? c < 0 : a->entry < b->entry;
}
