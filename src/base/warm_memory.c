#include "base/warm_memory.h"

#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "base/memory_map.h"
#include "base/sync.h"

enum { RANGES = 256, DROP_LEAST = 2 << 20, TRIES = 1000 };

static Budget own = {.most = 64 << 20};  // of a process that has no other

typedef struct Range {
    char  *at;
    size_t bytes;
} Range;

static struct {
    _Atomic uint32_t lock;
    Budget          *budget;
    Range            free[RANGES];  // in order of addresses; neighbours are one range
    uint32_t         n;
    size_t           bytes, least;  // kept now; the least since memory was last returned
} warm = {.budget = &own};

// A thread that finds it locked does without: the thread that has it may have lost its core.
static bool try_lock(void) {
    uint32_t is_free = 0;
    for (uint32_t i = 0; i < TRIES; i++, is_free = 0) {
        if (atomic_compare_exchange_weak_explicit(&warm.lock, &is_free, 1, memory_order_acquire,
                                                  memory_order_relaxed))
            return true;
        spin_pause();
    }
    return false;
}

static void unlock(void) { atomic_store_explicit(&warm.lock, 0, memory_order_release); }

static void remove_at(uint32_t i) {
    warm.n--;
    memmove(&warm.free[i], &warm.free[i + 1], (warm.n - i) * sizeof(Range));
}

static bool insert_at(uint32_t i, Range r) {
    if (warm.n == RANGES) return false;
    memmove(&warm.free[i + 1], &warm.free[i], (warm.n - i) * sizeof(Range));
    warm.free[i] = r;
    warm.n++;
    return true;
}

static uint32_t find_after(const char *p) {
    uint32_t i = 0;
    while (i < warm.n && warm.free[i].at < p) i++;
    return i;
}

// Joined with the ranges that it touches.
static bool insert(Range r) {
    uint32_t i = find_after(r.at);
    if (i > 0 && warm.free[i - 1].at + warm.free[i - 1].bytes == r.at) {
        warm.free[i - 1].bytes += r.bytes;
        if (i == warm.n || warm.free[i].at != r.at + r.bytes) return true;
        warm.free[i - 1].bytes += warm.free[i].bytes;
        remove_at(i);
        return true;
    }
    if (i == warm.n || warm.free[i].at != r.at + r.bytes) return insert_at(i, r);
    warm.free[i] = (Range){r.at, r.bytes + warm.free[i].bytes};
    return true;
}

// Cuts bytes from the end of a range.
static Range cut(uint32_t i, size_t bytes) {
    Range *r = &warm.free[i];
    Range  end = {r->at + r->bytes - bytes, bytes};
    r->bytes -= bytes;
    if (r->bytes == 0) remove_at(i);
    warm.bytes -= bytes;
    if (warm.bytes < warm.least) warm.least = warm.bytes;
    budget_unkeep(warm.budget, bytes);
    return end;
}

// The smallest range with that many bytes; warm.n: none.
static uint32_t find_smallest(size_t bytes) {
    uint32_t best = warm.n;
    for (uint32_t i = 0; i < warm.n; i++)
        if (warm.free[i].bytes >= bytes &&
            (best == warm.n || warm.free[i].bytes < warm.free[best].bytes))
            best = i;
    return best;
}

void *warm_memory_take(size_t bytes) {
    if (bytes == 0 || !try_lock()) return NULL;
    uint32_t i = find_smallest(bytes);
    void    *p = i < warm.n ? cut(i, bytes).at : NULL;
    unlock();
    return p;
}

bool warm_memory_give(void *p, size_t bytes) {
    if (bytes == 0 || !try_lock()) return false;
    bool kept = budget_keep(warm.budget, bytes);
    if (kept && !insert((Range){p, bytes})) {
        budget_unkeep(warm.budget, bytes);
        kept = false;
    }
    if (kept) warm.bytes += bytes;
    unlock();
    return kept;
}

// Up to `bytes` of the smallest range: small ones are of least use.
static Range cut_some(size_t bytes) {
    Range none = {NULL, 0};
    if (!try_lock()) return none;
    uint32_t i = find_smallest(1);
    if (i < warm.n) none = cut(i, bytes < warm.free[i].bytes ? bytes : warm.free[i].bytes);
    unlock();
    return none;
}

static void drop(size_t bytes) {
    while (bytes > 0) {
        Range r = cut_some(bytes);
        if (r.bytes == 0) return;
        memory_map_drop(r.at, r.bytes);
        bytes -= r.bytes;
    }
}

// In steps: the next that is wanted will often follow.
static void drop_wanted(size_t bytes) {
    size_t step = DROP_LEAST;
    drop((bytes / step + 1) * step);
}

size_t warm_memory_bytes(void) {
    if (!try_lock()) return 0;
    size_t bytes = warm.bytes;
    unlock();
    return bytes;
}

void warm_memory_age(void) {
    if (!try_lock()) return;
    size_t unused = warm.least;
    unlock();
    drop(unused);
    if (!try_lock()) return;
    warm.least = warm.bytes;
    unlock();
}

void warm_memory_use(Budget *b) {
    drop(SIZE_MAX);
    CHECK(warm.n == 0);
    warm.budget->release = NULL;
    warm.budget = b != NULL ? b : &own;
    warm.budget->release = drop_wanted;
}
