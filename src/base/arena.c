#include "base/arena.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/budget.h"
#include "base/err.h"
#include "base/memory_map.h"
#include "base/poison.h"

enum { CHARGE_STEP = 65536, GROW_LEAST = 1 << 20, HUGE = 2 << 20 };  // bytes

static _Atomic size_t reserved_all;

size_t arena_reserved_all(void) {
    return atomic_load_explicit(&reserved_all, memory_order_relaxed);
}

static size_t round_up(size_t n, size_t step) { return (n + step - 1) / step * step; }

static size_t page_bytes(void) { return (size_t)sysconf(_SC_PAGESIZE); }

static void *map(size_t bytes) {
    void *p = memory_map_make(bytes);
    if (p == NULL) return NULL;
    atomic_fetch_add_explicit(&reserved_all, bytes, memory_order_relaxed);
    return p;
}

static void unmap(void *p, size_t bytes) {
    atomic_fetch_sub_explicit(&reserved_all, bytes, memory_order_relaxed);
    memory_map_drop(p, bytes);
}

static Err cannot_reserve(size_t bytes, const char *why) {
    struct rlimit limit = {.rlim_cur = RLIM_INFINITY};
    (void)getrlimit(RLIMIT_AS, &limit);
    if (limit.rlim_cur == RLIM_INFINITY)
        return err_set(ERR_LIMIT,
                       "cannot reserve %zu bytes of address space: %s; this process has reserved "
                       "%zu, or the number of mappings is at vm.max_map_count",
                       bytes, why, arena_reserved_all());
    return err_set(ERR_LIMIT,
                   "cannot reserve %zu bytes of address space: %s; raise ulimit -v (now %llu KiB)",
                   bytes, why, (unsigned long long)limit.rlim_cur >> 10);
}

Err arena_init_growing(Arena *a, size_t first, size_t most) {
    *a = (Arena){0};
    void *p = map(first);
    if (p == NULL) return cannot_reserve(first, strerror(errno));
    *a = (Arena){.base = p, .cap = first, .most = most > first ? most : first, .first = first};
    return ERR_OK;
}

Err arena_init(Arena *a, size_t cap) {
    TRY(arena_init_growing(a, cap, cap));
    a->first = 0;
    return ERR_OK;
}

static void request_huge_pages(const Arena *a, size_t from) {
    uintptr_t begin = round_up((uintptr_t)a->base + from, HUGE);
    uintptr_t end = ((uintptr_t)a->base + a->cap) / HUGE * HUGE;
    if (begin < end) (void)madvise((void *)begin, end - begin, MADV_HUGEPAGE);
}

void arena_use_huge_pages(Arena *a, size_t from) {
    a->huge_from = from;
    request_huge_pages(a, from);
}

size_t arena_left(const Arena *a) { return a->most > a->used ? a->most - a->used : 0; }
size_t arena_in_use(const Arena *a) { return a->used - a->gaps; }

bool arena_holds(const Arena *a, const void *at, size_t bytes) {
    uintptr_t base = (uintptr_t)a->base, begin = (uintptr_t)at;
    size_t    cap = a->cap;
    for (const ArenaChunk *c = a->chunk; c != NULL; c = c->before) {
        if (begin >= (uintptr_t)c && begin - base <= cap && bytes <= cap - (begin - base))
            return true;
        base = (uintptr_t)c->base;
        cap = c->cap;
    }
    return begin >= base && begin - base <= cap && bytes <= cap - (begin - base);
}

size_t arena_reserved(const Arena *a) { return a->cap + a->spare_bytes; }

static void drop_spare(Arena *a) {
    if (a->spare != NULL) unmap(a->spare, a->spare_bytes);
    a->spare = NULL;
    a->spare_bytes = a->spare_high = 0;
}

// Returns to the chunk before. The larger of the chunk and the spare one is kept as spare.
static void leave_chunk(Arena *a) {
    ArenaChunk *c = a->chunk, was = *c;
    size_t      bytes = a->cap - was.start, high = a->high - was.start;
    a->chunk = was.before;
    a->base = was.base;
    a->high = was.high;
    a->cap = was.cap;
    a->gaps -= was.gap;
    if (bytes < a->spare_bytes) {
        unmap(c, bytes);
        return;
    }
    drop_spare(a);
    poison_fill(c, high);
    a->spare = c;
    a->spare_bytes = bytes;
    a->spare_high = high;
}

// Memory for a chunk of at least `need` bytes: the spare one, one of twice the last chunk's size,
// or what is needed.
static ArenaChunk *find_chunk(Arena *a, size_t need, size_t *bytes, size_t *high) {
    size_t last = a->cap - (a->chunk != NULL ? a->chunk->start : 0), room = a->most - a->cap;
    size_t wish = last < SIZE_MAX / 2 && 2 * last > GROW_LEAST ? 2 * last : GROW_LEAST;
    void  *p = a->spare;
    *high = a->spare_high;
    *bytes = a->spare_bytes;
    if (*bytes >= need) {
        a->spare = NULL;
        a->spare_bytes = a->spare_high = 0;
        return p;
    }
    drop_spare(a);
    *high = 0;
    *bytes = wish < need || wish > room ? need : wish;
    p = map(*bytes);
    if (p != NULL || *bytes == need) return p;
    *bytes = need;
    return map(need);
}

// Adds a chunk with room for an allocation.
static bool grow(Arena *a, size_t bytes, size_t align) {
    size_t page = page_bytes(), extra = sizeof(ArenaChunk) + align + page, high = 0;
    if (a->cap % page != 0 || a->cap > a->most || extra > a->most - a->cap ||
        bytes > a->most - a->cap - extra)
        return false;
    size_t      start = a->cap, size = 0;
    ArenaChunk *c = find_chunk(a, round_up(bytes + extra - page, page), &size, &high);
    if (c == NULL) return false;
    *c = (ArenaChunk){a->chunk, a->base, a->high, a->cap, start, start - a->used};
    a->chunk = c;
    a->gaps += c->gap;
    a->base = (char *)((uintptr_t)c - start);
    a->cap = start + size;
    a->used = start + sizeof *c;
    a->high = start + (high > sizeof *c ? high : sizeof *c);
    if (a->huge_from > 0) request_huge_pages(a, start);
    return true;
}

void arena_finish(Arena *a) {
    while (a->chunk != NULL) leave_chunk(a);
    drop_spare(a);
    if (a->base != NULL) unmap(a->base, a->cap);
    budget_give(a->budget, a->charged);
    *a = (Arena){0};
}

// The part of the memory up to an offset that a budget pays for.
static size_t chargeable(const Arena *a, size_t offset) {
    size_t bytes = offset - a->gaps;
    return bytes > a->first ? bytes - a->first : 0;
}

bool arena_charge(Arena *a, Budget *b) {
    if (a->budget == b) return true;
    size_t bytes = b != NULL ? round_up(chargeable(a, a->high) + a->spare_high, CHARGE_STEP) : 0;
    if (bytes > 0 && !budget_take(b, bytes)) return false;
    if (a->charged > 0) budget_give(a->budget, a->charged);
    a->budget = b;
    a->charged = bytes;
    return true;
}

void arena_shrink(Arena *a, size_t keep) {
    size_t end = round_up(keep, CHARGE_STEP);
    CHECK(a->used <= keep);
    drop_spare(a);
    if (a->base == NULL) return;
    if (a->high > end) {
        size_t last = round_up(a->high, CHARGE_STEP);
        (void)madvise(a->base + end, (last < a->cap ? last : a->cap) - end, MADV_DONTNEED);
        a->high = end;
    }
    size_t bytes = round_up(chargeable(a, end), CHARGE_STEP);
    if (a->charged <= bytes) return;
    budget_give(a->budget, a->charged - bytes);
    a->charged = bytes;
}

// Takes what an allocation up to an offset needs beyond what is charged.
static bool pay(Arena *a, size_t offset) {
    size_t bytes = chargeable(a, offset);
    if (bytes <= a->charged) return true;
    size_t more = round_up(bytes - a->charged, CHARGE_STEP);
    if (!budget_take(a->budget, more)) return false;
    a->charged += more;
    return true;
}

void arena_trim(Arena *a) {
    size_t page = page_bytes(), keep = (a->used + page) / page * page;
    drop_spare(a);
    if (a->base == NULL || keep >= a->cap) return;
    if (munmap(a->base + keep, a->cap - keep) != 0) return;
    atomic_fetch_sub_explicit(&reserved_all, a->cap - keep, memory_order_relaxed);
    a->cap = a->most = keep;
    if (a->high > keep) a->high = keep;
}

static void *refuse(Arena *a, size_t bytes) {
    a->refused = bytes;
    return NULL;
}

void *arena_try(Arena *a, size_t count, size_t size, size_t align) {
    if (size != 0 && count > SIZE_MAX / size) return refuse(a, SIZE_MAX);
    size_t at = (a->used + align - 1) & ~(align - 1), bytes = count * size;
    if (at > a->cap || bytes > a->cap - at) {
        if (!grow(a, bytes, align)) return refuse(a, bytes);
        at = (a->used + align - 1) & ~(align - 1);
    }
    if (a->budget != NULL && !pay(a, at + bytes)) return refuse(a, bytes);
    if (at < a->high) memset(a->base + at, 0, bytes < a->high - at ? bytes : a->high - at);
    a->used = at + bytes;
    if (a->used > a->high) a->high = a->used;
    return a->base + at;
}

void *arena_alloc(Arena *a, size_t count, size_t size, size_t align) {
    void *p = arena_try(a, count, size, align);
    CHECK(p != NULL);
    return p;
}

void arena_rewind(Arena *a, size_t mark) {
    CHECK(mark <= a->used);
    while (a->chunk != NULL && mark <= a->chunk->start) leave_chunk(a);
    if (mark == a->used) return;  // an empty arena may have no memory
    poison_fill(a->base + mark, (a->used < a->high ? a->used : a->high) - mark);
    a->used = mark;
}

char *arena_str(Arena *a, const char *s) {
    size_t n = strlen(s) + 1;
    return memcpy(arena_alloc(a, n, 1, 1), s, n);
}

char *arena_try_vprintf(Arena *a, const char *fmt, va_list ap) {
    va_list again;
    va_copy(again, ap);
    int   n = vsnprintf(NULL, 0, fmt, again);
    char *s = n >= 0 ? arena_try_new(a, char, (size_t)n + 1) : NULL;
    va_end(again);
    if (s != NULL) (void)vsnprintf(s, (size_t)n + 1, fmt, ap);
    return s;
}

char *arena_printf(Arena *a, const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    char *s = arena_try_vprintf(a, fmt, ap);
    va_end(ap);
    CHECK(s != NULL);
    return s;
}
