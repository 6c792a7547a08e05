#include "cluster/sim/indexed_heap.h"

Err indexed_heap_init(IndexedHeap *d, Arena *a, uint32_t n_slots) {
    *d = (IndexedHeap){.items = arena_try_new(a, HeapItem, n_slots),
                       .place = arena_try_new(a, uint32_t, n_slots)};
    if (d->items == NULL || d->place == NULL)
        return err_set(ERR_LIMIT, "no memory for the events of %u jobs", n_slots);
    return ERR_OK;
}

static bool before(HeapItem a, HeapItem b) { return a.at != b.at ? a.at < b.at : a.slot < b.slot; }

static void put(IndexedHeap *d, uint32_t i, HeapItem x) {
    d->items[i] = x;
    d->place[x.slot] = i + 1;
}

static void settle(IndexedHeap *d, uint32_t i, HeapItem x) {
    for (; i > 0 && before(x, d->items[(i - 1) / 2]); i = (i - 1) / 2)
        put(d, i, d->items[(i - 1) / 2]);
    for (;;) {
        uint32_t child = 2 * i + 1;
        if (child >= d->n) break;
        if (child + 1 < d->n && before(d->items[child + 1], d->items[child])) child++;
        if (!before(d->items[child], x)) break;
        put(d, i, d->items[child]);
        i = child;
    }
    put(d, i, x);
}

void indexed_heap_clear(IndexedHeap *d, uint32_t slot) {
    if (d->place[slot] == 0) return;
    uint32_t i = d->place[slot] - 1;
    HeapItem last = d->items[--d->n];
    d->place[slot] = 0;
    if (last.slot != slot) settle(d, i, last);
}

void indexed_heap_set(IndexedHeap *d, uint32_t slot, TimeNs at) {
    if (at == INT64_MAX) {
        indexed_heap_clear(d, slot);
        return;
    }
    uint32_t i = d->place[slot] != 0 ? d->place[slot] - 1 : d->n++;
    settle(d, i, (HeapItem){at, slot});
}
