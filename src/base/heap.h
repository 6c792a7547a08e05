// Heap: events by time; those at the same time come out in the order they were put in.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/clock.h"

typedef struct HeapItem {
    TimeNs   at;
    uint64_t order;  // of putting in
    uint32_t kind, id;
} HeapItem;

typedef struct Heap {
    HeapItem *items;
    uint32_t  n, room;
    uint64_t  put;  // so far
} Heap;

void     heap_init(Heap *h, Arena *a, uint32_t room);
void     heap_put(Heap *h, TimeNs at, uint32_t kind, uint32_t id);  // there must be room
HeapItem heap_take(Heap *h);                                        // the first; there must be one

static inline bool heap_empty(const Heap *h) { return h->n == 0; }

static inline TimeNs heap_next(const Heap *h) {  // when the first is; the end of time when empty
    return h->n > 0 ? h->items[0].at : INT64_MAX;
}
