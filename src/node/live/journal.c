#include "node/live/journal.h"

#include <stdlib.h>

Err journal_init(Journal *j, uint32_t room, Arena *a) {
    uint64_t n = 2;
    *j = (Journal){0};
    if (room == 0) return ERR_OK;
    while (n < room) n *= 2;
    j->at = arena_try_new(a, Record, n);
    if (j->at == NULL) return err_set(ERR_LIMIT, "no memory for %u records", room);
    j->mask = n - 1;
    return ERR_OK;
}

void journal_put(Journal *j, const Record *r) {
    if (j->at == NULL) return;
    uint64_t tail = atomic_load_explicit(&j->tail, memory_order_relaxed);
    if (tail - atomic_load_explicit(&j->head, memory_order_acquire) > j->mask) {
        atomic_fetch_add_explicit(&j->lost, 1, memory_order_relaxed);
        return;
    }
    j->at[tail & j->mask] = *r;
    atomic_store_explicit(&j->tail, tail + 1, memory_order_release);
}

typedef struct Ordered {
    Record  *record;
    uint64_t ctx;
} Ordered;

static int earlier(const void *x, const void *y) {
    const Ordered *a = x, *b = y;
    if (a->record->at != b->record->at) return a->record->at < b->record->at ? -1 : 1;
    return a->ctx < b->ctx ? -1 : 1;
}

// Arrivals are written when drained and growths when the block ends, both later than their
// time.
Err journal_drain(Journal *j, Arena *scratch, RecordSink to) {
    uint64_t head = atomic_load_explicit(&j->head, memory_order_relaxed);
    uint64_t n = atomic_load_explicit(&j->tail, memory_order_acquire) - head;
    size_t   mark = scratch->used;
    Ordered *all = arena_try_new(scratch, Ordered, n);
    if (all == NULL) return err_set(ERR_LIMIT, "no memory for %llu records", (unsigned long long)n);
    for (uint64_t i = 0; i < n; i++) all[i] = (Ordered){&j->at[(head + i) & j->mask], i};
    qsort(all, n, sizeof *all, earlier);
    for (uint64_t i = 0; i < n; i++) record_put(to, all[i].record);
    atomic_store_explicit(&j->head, head + n, memory_order_release);
    arena_rewind(scratch, mark);
    return ERR_OK;
}
