// RequestHistory: the last requests, so that somebody can ask why one was late.
#pragma once

#include "base/arena.h"
#include "serve/observe/receipt.h"

typedef struct RequestHistory RequestHistory;

MUST_USE Err   request_history_create(RequestHistory **out, uint32_t requests);
void           request_history_destroy(RequestHistory *l);                // accepts NULL
void           request_history_add(RequestHistory *l, const Receipt *r);  // copies; the oldest goes
const Receipt *request_history_find(const RequestHistory *l,
                                    Str id);  // the newest of that id; NULL: unknown
// One request as JSON: times by stage, who was in the way, the cause and what would help.
MUST_USE Err request_history_json(const Receipt *r, Arena *a, Str *out);
// The last n misses, newest first, as a JSON array.
MUST_USE Err request_history_misses(const RequestHistory *l, uint32_t n, Arena *a, Str *out);
