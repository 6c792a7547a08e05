// Quota: grants the cluster's GPUs along an order of all tasks, waiting and running.
//
// A running task without a grant is preempted; a waiting task with one starts where it fits. A
// grant that does not fit on the servers is spent all the same.
#pragma once

#include "placement/placement.h"
#include "policy/cluster/common/priority_queue.h"

enum { QUOTA_SIZES = 64 };

typedef struct QuotaQueue {  // waiting tasks with the same demand for GPUs; the last one: any
                             // demand
    PriorityQueue queue;
    uint64_t      milli;  // smallest demand in it, in thousandths of a GPU
} QuotaQueue;

typedef struct QuotaItem {
    SortKey  key;
    uint64_t entry;
    uint32_t slot;
} QuotaItem;

typedef struct Quota {
    QuotaQueue    queues[QUOTA_SIZES];
    uint32_t      n_queues;
    QueueNode    *nodes;    // [n_slots] shared by all queues
    QuotaItem    *running;  // [n_running] as last sorted
    uint32_t     *granted;  // [n_slots]
    uint32_t     *aside;    // [n_slots] heads of the last queue with a demand above what is left
    uint32_t      n_running, n_granted, n_aside;
    FreeResources free;
    TenantQuota   tenants;                     // granted so far
    uint64_t      seen_waiting, seen_running;  // last entry numbers already in a queue, in running
    // Sort key, ascending. A waiting task's key must not change.
    SortKey (*key)(const void *self, const ClusterView *v, const ClusterTask *t);
    const void *self;
    bool        waiting_first;  // of a waiting and a running task with equal keys
} Quota;

void     quota_carve(Quota *q, const ClusterSetup *s, Carve *from);
uint32_t quota_decide(Quota *q, const ClusterView *v, ClusterAction *out);
uint32_t quota_fill(Quota *q, const ClusterView *v, ClusterAction *out);  // without preemption
