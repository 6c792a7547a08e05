// RequestTable: the engine's requests in the form of a policy's view: a dense array, with lists
// by state.
#pragma once

#include "base/arena.h"
#include "base/err.h"
#include "contract/node.h"

typedef struct RequestTable {
    NodeRequest *requests;  // [n]; the last moves into the slot of a removed one
    uint32_t    *waiting;   // [n_waiting] indices, in order of arrival
    uint32_t    *running;   // [n_running] first those with cores, then the demoted ones
    uint32_t    *where;     // [n] its position in the list of its state
    uint32_t     n, n_waiting, n_running, n_demoted, room;
} RequestTable;

MUST_USE Err request_table_init(RequestTable *q, uint32_t room, Arena *a);

// Adds a waiting request, the youngest. Its index, or UINT32_MAX when full.
uint32_t request_table_add(RequestTable *q, const NodeRequest *r);
void     request_table_run(RequestTable *q, uint32_t i);     // waiting -> running
void     request_table_demote(RequestTable *q, uint32_t i);  // running without cores, not shown
void     request_table_wait(RequestTable *q, uint32_t i);  // running -> waiting, ordered by arrival
// Removes i. The request at the returned index moved to i; they may be the same.
uint32_t request_table_drop(RequestTable *q, uint32_t i);

void request_table_show(const RequestTable *q, NodeView *view);
