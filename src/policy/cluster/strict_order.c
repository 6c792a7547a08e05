// fifo, sjf, qssf: a queue in strict order, without preemption
//
// Tasks start from the head of a queue in an order that is fixed while they wait. The first that
// does not fit blocks all behind it, however small they are. The policies differ in the sort key:
//
// fifo  time of submission.
// sjf   remaining work.
// qssf  remaining work x GPUs, ties by GPUs. Jobs that arrive at an empty queue start by their
//       number of GPUs alone: that is how it was published, and with room for all it costs nothing.
#include "placement/placement.h"
#include "policy/cluster/common/cluster_policy.h"
#include "policy/cluster/common/priority_queue.h"
#include "policy/policies.h"

// The key of a task; `fresh`: the queue was empty before this decision.
typedef SortKey (*StrictKey)(const ClusterView *v, const ClusterTask *t, bool fresh);

typedef struct StrictQueue {
    PriorityQueue queue;
    FreeResources free;
    uint64_t      seen;  // the last entry number that was queued
    StrictKey     key;
} StrictQueue;

static void lay_out(StrictQueue *q, const ClusterSetup *s, Carve *from) {
    q->queue.nodes = carve(from, QueueNode, s->n_slots);
    placement_carve(&q->free, s, from);
}

CLUSTER_POLICY_STATE(StrictQueue)

static SortKey by_submission(const ClusterView *v, const ClusterTask *t, bool fresh) {
    (void)v;
    (void)fresh;
    return (SortKey){(double)t->job.submit, 0};
}

static SortKey by_work(const ClusterView *v, const ClusterTask *t, bool fresh) {
    (void)fresh;
    return (SortKey){(double)cluster_left(v, t), 0};
}

static SortKey by_service(const ClusterView *v, const ClusterTask *t, bool fresh) {
    double gpus = (double)cluster_gpu_milli(&t->job) / CLUSTER_WHOLE_GPU;
    if (fresh) return (SortKey){gpus, 0};
    return (SortKey){(double)cluster_left(v, t) * gpus, gpus};
}

static void enqueue_new(StrictQueue *q, const ClusterView *v, uint32_t from, bool fresh) {
    for (uint32_t i = from; i < v->n_waiting; i++) {
        const ClusterTask *t = &v->tasks[v->waiting[i]];
        priority_queue_push(&q->queue, v->waiting[i], q->key(v, t, fresh), t->entry);
        q->seen = t->entry;
    }
}

// Tasks queued with a `fresh` key that did not start get their usual key.
static void requeue(StrictQueue *q, const ClusterView *v) {
    PriorityQueue again = {.nodes = q->queue.nodes, .head = CLUSTER_NONE};
    for (uint32_t slot; (slot = priority_queue_pop(&q->queue)) != CLUSTER_NONE;)
        priority_queue_push(&again, slot, q->key(v, &v->tasks[slot], false), v->tasks[slot].entry);
    q->queue = again;
}

static uint32_t decide(void *state, const ClusterView *v, ClusterAction *out, uint32_t max) {
    StrictQueue *q = state;
    uint32_t     from = waiting_since(v, q->seen), n = 0;
    bool         fresh = from == 0;
    (void)max;
    if (v->n_waiting == 0) return 0;
    enqueue_new(q, v, from, fresh);
    placement_open(&q->free, v);
    for (; q->queue.head != CLUSTER_NONE; n++) {
        if (!placement_place(&q->free, q->queue.head, &out[n])) break;
        priority_queue_pop(&q->queue);
    }
    if (fresh) requeue(q, v);
    return n;
}

#define STRICT_POLICY(id, paper_, knows_, key_, about_)                                            \
    static void init_##id(void *state, const ClusterSetup *s, const void *settings,                \
                          const void *loaded) {                                                    \
        (void)settings;                                                                            \
        (void)loaded;                                                                              \
        StrictQueue *q = state_open(state, s);                                                     \
        q->queue.head = CLUSTER_NONE;                                                              \
        q->key = key_;                                                                             \
    }                                                                                              \
    const ClusterPolicy cluster_policy_##id = {.name = #id,                                        \
                                               .about = about_,                                    \
                                               .paper = paper_,                                    \
                                               .knows = knows_,                                    \
                                               .state_size = state_size,                           \
                                               .init = init_##id,                                  \
                                               .decide = decide};

STRICT_POLICY(fifo, NULL, CLUSTER_BLIND, by_submission,
              "order of submission; a job that does not fit blocks the rest")
STRICT_POLICY(sjf, NULL, CLUSTER_ORACLE, by_work,
              "shortest job first; a job that does not fit blocks the rest")
STRICT_POLICY(qssf, "Helios (SC 2021)", CLUSTER_ORACLE, by_service,
              "least GPU time first; a job that does not fit blocks the rest")
