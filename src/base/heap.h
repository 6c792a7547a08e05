// Heap: a binary min-heap of (key, order, id), optionally indexed by id.
//
// Items come out by ascending key, equal keys by ascending order, then by id: the sequence is the
// same whatever the order of insertion. Memory is the caller's or an arena's; nothing is allocated
// after heap_init.
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/arena.h"

typedef struct HeapItem {
    int64_t  key;
    uint32_t order, id;
} HeapItem;

typedef struct Heap {
    HeapItem *items;  // [capacity]
    uint32_t  n, capacity;
    uint32_t *position;  // [id] index into items plus 1, 0 if absent; NULL: not indexed
} Heap;

void         heap_init(Heap *h, Arena *a, uint32_t capacity);
MUST_USE Err heap_init_indexed(Heap *h, Arena *a, uint32_t n_ids);  // each id at most once

// capacity must not be exceeded. Items may also be appended to items[n++] and put into heap order
// by one heap_build (not if indexed).
void     heap_push(Heap *h, int64_t key, uint32_t order, uint32_t id);
void     heap_build(Heap *h);
HeapItem heap_pop(Heap *h);  // the first item; n > 0

// Indexed heaps only: inserts an id or changes its key; removes an id, if present.
void heap_set(Heap *h, int64_t key, uint32_t order, uint32_t id);
void heap_remove(Heap *h, uint32_t id);

static inline bool    heap_empty(const Heap *h) { return h->n == 0; }
static inline int64_t heap_first_key(const Heap *h) {  // INT64_MAX if empty
    return h->n > 0 ? h->items[0].key : INT64_MAX;
}

// A key that sorts as the number does (-0 as 0; no NaN), and back.
static inline int64_t heap_key_of_double(double x) {
    int64_t bits;
    x += 0.0;
    memcpy(&bits, &x, sizeof bits);
    return bits < 0 ? bits ^ INT64_MAX : bits;
}

static inline double heap_double_of_key(int64_t key) {
    double  x;
    int64_t bits = key < 0 ? key ^ INT64_MAX : key;
    memcpy(&x, &bits, sizeof x);
    return x;
}
