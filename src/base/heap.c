#include "base/heap.h"

static bool before(const HeapItem *a, const HeapItem *b) {
    if (a->key != b->key) return a->key < b->key;
    return a->order != b->order ? a->order < b->order : a->id < b->id;
}

void heap_init(Heap *h, Arena *a, uint32_t capacity) {
    *h = (Heap){.items = arena_new(a, HeapItem, capacity), .capacity = capacity};
}

Err heap_init_indexed(Heap *h, Arena *a, uint32_t n_ids) {
    HeapItem *items = arena_try_new(a, HeapItem, n_ids);
    uint32_t *position = arena_try_new(a, uint32_t, n_ids);
    if (items == NULL || position == NULL)
        return err_set(ERR_LIMIT, "no memory for a heap of %u items", n_ids);
    *h = (Heap){.items = items, .capacity = n_ids, .position = position};
    return ERR_OK;
}

static void place(Heap *h, uint32_t i, HeapItem x) {
    h->items[i] = x;
    if (h->position != NULL) h->position[x.id] = i + 1;
}

static uint32_t sift_up(Heap *h, uint32_t i, HeapItem x) {
    for (; i > 0 && before(&x, &h->items[(i - 1) / 2]); i = (i - 1) / 2)
        place(h, i, h->items[(i - 1) / 2]);
    return i;
}

static uint32_t sift_down(Heap *h, uint32_t i, HeapItem x) {
    for (;;) {
        uint32_t child = 2 * i + 1;
        if (child >= h->n) return i;
        if (child + 1 < h->n && before(&h->items[child + 1], &h->items[child])) child++;
        if (!before(&h->items[child], &x)) return i;
        place(h, i, h->items[child]);
        i = child;
    }
}

void heap_push(Heap *h, int64_t key, uint32_t order, uint32_t id) {
    CHECK(h->n < h->capacity);
    HeapItem x = {key, order, id};
    place(h, sift_up(h, h->n++, x), x);
}

void heap_build(Heap *h) {
    for (uint32_t i = h->n / 2; i-- > 0;) {
        HeapItem x = h->items[i];
        place(h, sift_down(h, i, x), x);
    }
}

HeapItem heap_pop(Heap *h) {
    CHECK(h->n > 0);
    HeapItem first = h->items[0], last = h->items[--h->n];
    if (h->position != NULL) h->position[first.id] = 0;
    if (h->n > 0) place(h, sift_down(h, 0, last), last);
    return first;
}

void heap_set(Heap *h, int64_t key, uint32_t order, uint32_t id) {
    HeapItem x = {key, order, id};
    uint32_t i = h->position[id] != 0 ? h->position[id] - 1 : h->n++;
    i = sift_up(h, i, x);
    place(h, sift_down(h, i, x), x);
}

void heap_remove(Heap *h, uint32_t id) {
    if (h->position[id] == 0) return;
    uint32_t i = h->position[id] - 1;
    HeapItem last = h->items[--h->n];
    h->position[id] = 0;
    if (last.id == id) return;
    i = sift_up(h, i, last);
    place(h, sift_down(h, i, last), last);
}
