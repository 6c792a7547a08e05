// Quota: along an order of all tasks, waiting and running, each is granted its GPUs from those of
// the whole cluster. Who runs without a grant is stopped; who waits with one is started where there
// is place. A grant that finds no place is spent all the same.
#pragma once

#include "placement/placement.h"
#include "policy/cluster/common/priority_queue.h"

enum { QUOTA_SIZES = 64 };

typedef struct QuotaQueue {  // of waiting tasks that ask for the same; the last one: for anything
    PriorityQueue line;
    uint64_t      milli;  // the least that any asks for
} QuotaQueue;

typedef struct QuotaItem {
    SortKey  rank;
    uint64_t entry;
    uint32_t slot;
} QuotaItem;

typedef struct Quota {
    QuotaQueue    lines[QUOTA_SIZES];
    uint32_t      n_lines;
    QueueNode    *nodes;    // [n_slots]
    QuotaItem    *running;  // as last sorted
    uint32_t     *granted;  // [n_slots]
    uint32_t     *aside;    // [n_slots] heads of the last line that ask for too much
    uint32_t      n_running, n_granted, n_aside;
    FreeResources free;
    uint64_t      seen_waiting, seen_running;  // the last entries that were looked at
    // The order, ascending. It must not change while a task waits.
    SortKey (*rank)(const void *of, const ClusterView *v, const ClusterTask *t);
    const void *of;
    bool        waiting_first;  // of equals
} Quota;

// A policy's state of `bytes` that holds a quota, and what the quota needs behind it.
size_t   quota_size(const ClusterSetup *s, size_t bytes);
void     quota_init(Quota *q, const ClusterSetup *s, void *state, size_t bytes);
uint32_t quota_decide(Quota *q, const ClusterView *v, ClusterAction *out);
uint32_t quota_fill(Quota *q, const ClusterView *v, ClusterAction *out);  // nobody is stopped
