// RequestTable: the requests that an engine holds, as a policy's view wants them: dense, in lists
// by state.
#pragma once

#include "base/arena.h"
#include "base/err.h"
#include "contract/node.h"

typedef struct RequestTable {
    NodeRequest *requests;  // [n]; the last takes the ctx of one that leaves
    uint32_t    *waiting;   // [n_waiting] indices, in order of arrival
    uint32_t    *running;   // [n_running]
    uint32_t    *where;     // [n] its ctx in the list of its state
    uint32_t     n, n_waiting, n_running, room;
} RequestTable;

MUST_USE Err request_table_init(RequestTable *q, uint32_t room, Arena *a);

// A request that waits, the youngest of all. Its index, or UINT32_MAX when there is no room.
uint32_t request_table_add(RequestTable *q, const NodeRequest *r);
void     request_table_run(RequestTable *q, uint32_t i);   // waiting -> running
void     request_table_wait(RequestTable *q, uint32_t i);  // running -> waiting, by its age
// Forgets i. The request that was at the returned index is now at i; they may be the same.
uint32_t request_table_drop(RequestTable *q, uint32_t i);

void request_table_show(const RequestTable *q, NodeView *view);
