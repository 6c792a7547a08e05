// Ledger: the last requests, so that somebody can ask why one was late.
#pragma once

#include "base/arena.h"
#include "serve/receipt.h"

typedef struct Ledger Ledger;

MUST_USE Err   ledger_create(Ledger **out, uint32_t requests);
void           ledger_destroy(Ledger *l);                 // accepts NULL
void           ledger_note(Ledger *l, const Receipt *r);  // copies; the oldest goes
const Receipt *ledger_find(const Ledger *l, Str id);      // the newest of that id; NULL: unknown
// One request as JSON: times by stage, who was in the way, the cause and what would help.
MUST_USE Err ledger_explain(const Receipt *r, Arena *a, Str *out);
// The last n misses, newest first, as a JSON array.
MUST_USE Err ledger_misses(const Ledger *l, uint32_t n, Arena *a, Str *out);
