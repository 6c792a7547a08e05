// Anew: the orders of Muri's simulator. At every event all jobs are sorted and placed anew, at no
// cost in the plan: the engine takes an overhead from every running job instead.
//
// By work left: jobs in a persistent order, sorted stably, first fit by server; jobs of more GPUs
// than a server has take wholly free servers. In queues: three of them by attained service, GPUs
// are counted without placement, and jobs that wait go behind those that run.
#pragma once

#include "base/carve.h"
#include "contract/cluster.h"

enum { ANEW_QUEUES = 3 };

typedef struct AnewQueue {  // tasks in order; a slot that was reused has another job
    uint32_t *slot;         // [n_slots]
    uint64_t *job;          // [n_slots] ids
    uint32_t  n;
} AnewQueue;

typedef struct AnewPlace {  // of the task at a position of the order
    uint32_t first, n;      // slices; none: it waits
} AnewPlace;

typedef struct Anew {
    AnewQueue     queues[ANEW_QUEUES];
    AnewPlace    *places;  // [n_slots]
    int64_t      *keys;    // [n_slots]
    ClusterSlice *slices;  // [gpus]
    uint32_t     *free;    // [n_servers] GPUs
    uint64_t      next;    // id of the first job that has not been seen
    uint32_t      n_slices;
} Anew;

void anew_carve(Anew *x, const ClusterSetup *s, Carve *from);

// by_service: by work left x GPUs; else by work left.
uint32_t anew_shortest(Anew *x, const ClusterView *v, bool by_service, ClusterAction *out);
uint32_t anew_queues(Anew *x, const ClusterView *v, ClusterAction *out);
