// StrictQueue: tasks start from the head of an order that does not change while they wait; nobody
// is stopped. The first that finds no place blocks all behind it.
#pragma once

#include "placement/placement.h"
#include "policy/cluster/common/priority_queue.h"

typedef struct StrictQueue {
    PriorityQueue line;
    FreeResources free;
    uint64_t      seen;  // the last entry that stands in line
    // The rank of a task; `fresh`: nobody waits but those that came now.
    SortKey (*rank)(const ClusterView *v, const ClusterTask *t, bool fresh);
    bool by_freshness;  // ranks differ between the two
} StrictQueue;

size_t   strict_queue_size(const ClusterSetup *s, const void *settings);
void     strict_queue_init(StrictQueue *q, const ClusterSetup *s);
uint32_t strict_queue_decide(StrictQueue *q, const ClusterView *v, ClusterAction *out);
