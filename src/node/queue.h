// Queue: the requests that an engine holds, as a policy's view wants them: dense, in lists by
// state.
#pragma once

#include "base/arena.h"
#include "base/err.h"
#include "contract/node.h"

typedef struct Queue {
    NodeRequest *requests;  // [n]; the last takes the place of one that leaves
    uint32_t    *waiting;   // [n_waiting] indices, in order of arrival
    uint32_t    *running;   // [n_running]
    uint32_t    *where;     // [n] its place in the list of its state
    uint32_t     n, n_waiting, n_running, room;
} Queue;

MUST_USE Err queue_init(Queue *q, uint32_t room, Arena *a);

// A request that waits, the youngest of all. Its index, or UINT32_MAX when there is no room.
uint32_t queue_add(Queue *q, const NodeRequest *r);
void     queue_run(Queue *q, uint32_t i);   // waiting -> running
void     queue_wait(Queue *q, uint32_t i);  // running -> waiting, by its age
// Forgets i. The request that was at the returned index is now at i; they may be the same.
uint32_t queue_drop(Queue *q, uint32_t i);

void queue_show(const Queue *q, NodeView *view);
