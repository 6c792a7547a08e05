#include "cluster/due.h"

Err due_init(Due *d, Arena *a, uint32_t n_slots) {
    *d = (Due){.items = arena_try_new(a, DueItem, n_slots),
               .place = arena_try_new(a, uint32_t, n_slots)};
    if (d->items == NULL || d->place == NULL)
        return err_set(ERR_LIMIT, "no memory for the events of %u jobs", n_slots);
    return ERR_OK;
}

static bool before(DueItem a, DueItem b) { return a.at != b.at ? a.at < b.at : a.slot < b.slot; }

static void put(Due *d, uint32_t i, DueItem x) {
    d->items[i] = x;
    d->place[x.slot] = i + 1;
}

static void settle(Due *d, uint32_t i, DueItem x) {
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

void due_clear(Due *d, uint32_t slot) {
    if (d->place[slot] == 0) return;
    uint32_t i = d->place[slot] - 1;
    DueItem  last = d->items[--d->n];
    d->place[slot] = 0;
    if (last.slot != slot) settle(d, i, last);
}

void due_set(Due *d, uint32_t slot, TimeNs at) {
    if (at == INT64_MAX) {
        due_clear(d, slot);
        return;
    }
    uint32_t i = d->place[slot] != 0 ? d->place[slot] - 1 : d->n++;
    settle(d, i, (DueItem){at, slot});
}
