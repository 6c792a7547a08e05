// Each slot has a sequence number, so that a slow producer delays only its own slot.
#include "node/live/inbox.h"

Err inbox_init(Inbox *b, uint32_t room, Arena *a) {
    uint64_t n = 2;
    while (n < room) n *= 2;
    *b = (Inbox){.mask = n - 1, .slots = arena_try_new(a, InboxSlot, n)};
    if (b->slots == NULL) return err_set(ERR_LIMIT, "no memory for %u requests at once", room);
    for (uint64_t i = 0; i < n; i++) atomic_init(&b->slots[i].turn, i);
    return ERR_OK;
}

bool inbox_put(Inbox *b, const EngineRequest *ask) {
    uint64_t at = atomic_load_explicit(&b->tail, memory_order_relaxed);
    for (;;) {
        InboxSlot *s = &b->slots[at & b->mask];
        int64_t    ahead = (int64_t)(atomic_load_explicit(&s->turn, memory_order_acquire) - at);
        if (ahead < 0) return false;
        if (ahead > 0) {
            at = atomic_load_explicit(&b->tail, memory_order_relaxed);
        } else if (atomic_compare_exchange_weak_explicit(
                       &b->tail, &at, at + 1, memory_order_relaxed, memory_order_relaxed)) {
            s->ask = *ask;
            atomic_store_explicit(&s->turn, at + 1, memory_order_release);
            return true;
        }
    }
}

bool inbox_take(Inbox *b, EngineRequest *out) {
    InboxSlot *s = &b->slots[b->head & b->mask];
    if (atomic_load_explicit(&s->turn, memory_order_acquire) != b->head + 1) return false;
    *out = s->ask;
    atomic_store_explicit(&s->turn, b->head + b->mask + 1, memory_order_release);
    b->head++;
    return true;
}
