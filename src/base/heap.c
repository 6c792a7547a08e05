#include "base/heap.h"

#include "base/err.h"

static bool before(const HeapItem *a, const HeapItem *b) {
    return a->at < b->at || (a->at == b->at && a->order < b->order);
}

void heap_init(Heap *h, Arena *a, uint32_t room) {
    *h = (Heap){.items = arena_new(a, HeapItem, room), .room = room};
}

void heap_put(Heap *h, TimeNs at, uint32_t kind, uint32_t id) {
    CHECK(h->n < h->room);
    HeapItem one = {at, h->put++, kind, id};
    uint32_t i = h->n++;
    for (; i > 0 && before(&one, &h->items[(i - 1) / 2]); i = (i - 1) / 2)
        h->items[i] = h->items[(i - 1) / 2];
    h->items[i] = one;
}

HeapItem heap_take(Heap *h) {
    CHECK(h->n > 0);
    HeapItem first = h->items[0], last = h->items[--h->n];
    uint32_t i = 0;
    for (;;) {
        uint32_t child = 2 * i + 1;
        if (child >= h->n) break;
        if (child + 1 < h->n && before(&h->items[child + 1], &h->items[child])) child++;
        if (!before(&h->items[child], &last)) break;
        h->items[i] = h->items[child];
        i = child;
    }
    h->items[i] = last;
    return first;
}
