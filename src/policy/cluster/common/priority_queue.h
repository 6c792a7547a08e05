// PriorityQueue: tasks by rank, the least first; equal ones in the order in which they began to
// wait. Many lines can share the room of one, for a task stands in one line only.
#pragma once

#include "contract/cluster.h"
#include "base/carve.h"

typedef struct SortKey {
    double first, second;
} SortKey;

typedef struct QueueNode {
    SortKey  rank;
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

void     priority_queue_push(PriorityQueue *l, uint32_t slot, SortKey rank, uint64_t entry);
uint32_t priority_queue_pop(PriorityQueue *l);  // the head, or CLUSTER_NONE

static inline bool priority_queue_before(const QueueNode *a, const QueueNode *b) {
    int c = sort_key_compare(a->rank, b->rank);
    return c != 0 ? c < 0 : a->entry < b->entry;
}
