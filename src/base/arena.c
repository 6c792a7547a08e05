#include "base/arena.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/budget.h"
#include "base/err.h"
#include "base/poison.h"

enum { CHARGE_STEP = 65536 };  // bytes

Err arena_init(Arena *a, size_t cap) {
    *a = (Arena){0};
    void *p =
        mmap(NULL, cap, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED)
        return err_set(ERR_LIMIT, "cannot reserve %zu bytes of address space: %s; raise ulimit -v",
                       cap, strerror(errno));
    *a = (Arena){.base = p, .cap = cap};
    return ERR_OK;
}

void arena_use_huge_pages(Arena *a, size_t from) {
    enum { HUGE = 2 << 20 };
    uintptr_t begin = ((uintptr_t)a->base + from + HUGE - 1) / HUGE * HUGE;
    uintptr_t end = ((uintptr_t)a->base + a->cap) / HUGE * HUGE;
    if (begin < end) (void)madvise((void *)begin, end - begin, MADV_HUGEPAGE);
}

// munmap can fail with ENOMEM at the mapping limit; the pages are freed all the same.
void arena_finish(Arena *a) {
    if (a->base != NULL && munmap(a->base, a->cap) != 0) {
        CHECK(errno == ENOMEM);
        (void)madvise(a->base, a->cap, MADV_DONTNEED);
    }
    budget_give(a->budget, a->charged);
    *a = (Arena){0};
}

static size_t round_up(size_t n, size_t step) { return (n + step - 1) / step * step; }

bool arena_charge(Arena *a, Budget *b) {
    size_t bytes = b != NULL ? round_up(a->high, CHARGE_STEP) : 0;
    if (a->budget == b) return true;
    if (!budget_take(b, bytes)) return false;
    budget_give(a->budget, a->charged);
    a->budget = b;
    a->charged = bytes;
    return true;
}

void arena_shrink(Arena *a, size_t keep) {
    size_t end = round_up(keep, CHARGE_STEP);
    CHECK(a->used <= keep);
    if (a->base == NULL || a->high <= end) return;
    size_t last = round_up(a->high, CHARGE_STEP);
    (void)madvise(a->base + end, (last < a->cap ? last : a->cap) - end, MADV_DONTNEED);
    a->high = end;
    if (a->charged <= end) return;
    budget_give(a->budget, a->charged - end);
    a->charged = end;
}

// Takes what an allocation up to `used` bytes needs beyond what is charged.
static bool pay(Arena *a, size_t used) {
    size_t more = round_up(used - a->charged, CHARGE_STEP);
    if (!budget_take(a->budget, more)) return false;
    a->charged += more;
    return true;
}

void arena_trim(Arena *a) {
    size_t page = (size_t)sysconf(_SC_PAGESIZE), keep = (a->used + page) / page * page;
    if (a->base == NULL || keep >= a->cap) return;
    if (munmap(a->base + keep, a->cap - keep) != 0) return;
    a->cap = keep;
    if (a->high > keep) a->high = keep;
}

void *arena_try(Arena *a, size_t count, size_t size, size_t align) {
    if (size != 0 && count > SIZE_MAX / size) return NULL;
    size_t at = (a->used + align - 1) & ~(align - 1), bytes = count * size;
    if (at > a->cap || bytes > a->cap - at) return NULL;
    if (a->budget != NULL && at + bytes > a->charged && !pay(a, at + bytes)) return NULL;
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
    poison_fill(a->base + mark, a->used - mark);
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
