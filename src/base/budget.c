#include "base/budget.h"

#include "base/err.h"

// What is kept makes room for what is used.
static void release_kept(Budget *b, size_t used) {
    size_t kept = atomic_load_explicit(&b->kept, memory_order_relaxed);
    size_t left = b->most > used ? b->most - used : 0;
    if (kept > left && b->release != NULL) b->release(kept - left);
}

static bool take_one(Budget *b, size_t bytes) {
    size_t used = atomic_load_explicit(&b->used, memory_order_relaxed);
    do
        if (b->most != 0 && (used > b->most || bytes > b->most - used)) return false;
    while (!atomic_compare_exchange_weak_explicit(&b->used, &used, used + bytes,
                                                  memory_order_relaxed, memory_order_relaxed));
    release_kept(b, used + bytes);
    return true;
}

static void give_one(Budget *b, size_t bytes) {
    size_t before = atomic_fetch_sub_explicit(&b->used, bytes, memory_order_relaxed);
    CHECK(before >= bytes);
}

// Written only when it changes: takes of other threads share the cache line.
static void set_crowded(Budget *b, bool crowded) {
    if (b != NULL && budget_crowded(b) != crowded)
        atomic_store_explicit(&b->crowded, crowded, memory_order_relaxed);
}

bool budget_take(Budget *b, size_t bytes) {
    for (Budget *at = b; at != NULL; at = at->whole) {
        if (take_one(at, bytes)) continue;
        for (Budget *taken = b; taken != at; taken = taken->whole) give_one(taken, bytes);
        set_crowded(b, at != b && budget_used(b) <= at->most && bytes <= at->most - budget_used(b));
        return false;
    }
    set_crowded(b, false);
    return true;
}

void budget_add(Budget *b, size_t bytes) {
    for (; b != NULL; b = b->whole)
        release_kept(b, atomic_fetch_add_explicit(&b->used, bytes, memory_order_relaxed) + bytes);
}

void budget_give(Budget *b, size_t bytes) {
    for (; b != NULL; b = b->whole) give_one(b, bytes);
}

bool budget_keep(Budget *b, size_t bytes) {
    size_t most = b->most / 4 * 3;
    size_t kept = atomic_fetch_add_explicit(&b->kept, bytes, memory_order_relaxed) + bytes;
    size_t used = budget_used(b);
    if (kept >= bytes && kept <= most && used <= b->most && kept <= b->most - used) return true;
    budget_unkeep(b, bytes);
    return false;
}

void budget_unkeep(Budget *b, size_t bytes) {
    (void)atomic_fetch_sub_explicit(&b->kept, bytes, memory_order_relaxed);
}

bool budget_move(Budget *b, Budget *whole) {
    size_t used = budget_used(b);
    if (b->whole == whole) return true;
    if (!budget_take(whole, used)) return false;
    budget_give(b->whole, used);
    b->whole = whole;
    return true;
}

bool budget_crowded(const Budget *b) {
    return atomic_load_explicit(&b->crowded, memory_order_relaxed);
}

size_t budget_used(const Budget *b) {
    return b != NULL ? atomic_load_explicit(&b->used, memory_order_relaxed) : 0;
}

const Budget *budget_short(const Budget *b, size_t bytes) {
    for (; b != NULL; b = b->whole) {
        size_t used = budget_used(b);
        if (b->most != 0 && (used > b->most || bytes > b->most - used)) return b;
    }
    return NULL;
}
