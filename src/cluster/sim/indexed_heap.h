// IndexedHeap: slots ordered by time, each at most once; any can be moved or removed.
#pragma once

#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/clock.h"

typedef struct HeapItem {
    TimeNs   at;
    uint32_t slot;
} HeapItem;

typedef struct IndexedHeap {
    HeapItem *items;  // binary heap; of equal times the lowest slot comes first
    uint32_t *place;  // [slot] index in items plus 1; 0: absent
    uint32_t  n;
} IndexedHeap;

MUST_USE Err indexed_heap_init(IndexedHeap *d, Arena *a, uint32_t n_slots);
void         indexed_heap_set(IndexedHeap *d, uint32_t slot, TimeNs at);  // INT64_MAX: removes it
void         indexed_heap_clear(IndexedHeap *d, uint32_t slot);           // no effect if absent

static inline TimeNs indexed_heap_next(const IndexedHeap *d) {
    return d->n > 0 ? d->items[0].at : INT64_MAX;
}
