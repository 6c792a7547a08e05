// RequestHistory: receipts of the last requests, for `cotenant why`.
#pragma once

#include "base/arena.h"
#include "serve/observe/receipt.h"

typedef struct RequestHistory RequestHistory;

MUST_USE Err request_history_create(RequestHistory **out, uint32_t requests);
void         request_history_destroy(RequestHistory *l);        // accepts NULL
void request_history_add(RequestHistory *l, const Receipt *r);  // copies; replaces the oldest
const Receipt *request_history_find(const RequestHistory *l,
                                    Str                   id);  // newest with that id; NULL: none
// One request as JSON: times by stage, models in the way, cause and remedy.
MUST_USE Err request_history_json(const Receipt *r, Arena *a, Str *out);
// The last n misses, newest first, as a JSON array.
MUST_USE Err request_history_misses(const RequestHistory *l, uint32_t n, Arena *a, Str *out);
