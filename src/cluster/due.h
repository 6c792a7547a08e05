// Due: slots by the time at which something is due, each at most once; any can be moved or removed.
#pragma once

#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/time.h"

typedef struct DueItem {
    TimeNs   at;
    uint32_t slot;
} DueItem;

typedef struct Due {
    DueItem  *items;  // a heap; of equal times the lowest slot is first
    uint32_t *place;  // [slot] in items, from 1; 0: not there
    uint32_t  n;
} Due;

MUST_USE Err due_init(Due *d, Arena *a, uint32_t n_slots);
void         due_set(Due *d, uint32_t slot, TimeNs at);  // INT64_MAX: never
void         due_clear(Due *d, uint32_t slot);           // nothing happens when it is not there

static inline TimeNs due_next(const Due *d) { return d->n > 0 ? d->items[0].at : INT64_MAX; }
