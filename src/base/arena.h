// Arena: a bump allocator in a memory mapping of its own; freeing it returns every page at once.
#pragma once

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

typedef struct Arena {
    char          *base;     // start of the reserved address range
    size_t         used;     // bytes allocated
    size_t         high;     // most bytes ever allocated; pages beyond it are still zero
    size_t         cap;      // bytes reserved
    struct Budget *budget;   // pays for its memory; NULL: none
    size_t         charged;  // bytes taken from the budget
} Arena;

MUST_USE Err arena_init(Arena *a, size_t cap);  // reserves address space only
void         arena_finish(Arena *a);            // accepts a zeroed Arena

// Requests huge pages (madvise) beyond the first `from` bytes, for large data that is read often.
// Up to 2 MB of the last page stay unused. A hint; call it before the first allocation.
void arena_use_huge_pages(Arena *a, size_t from);

// Charges its memory, also what is already in use, to a budget (NULL: to none) instead of the
// present one; allocations beyond the budget fail. False: the budget is too small, nothing changed.
bool arena_charge(Arena *a, struct Budget *b);
// Returns pages beyond `keep` bytes to the system and to the budget; requires used <= keep.
void arena_shrink(Arena *a, size_t keep);

// Unmaps the unused address space; no allocation may follow.
void arena_trim(Arena *a);

void *arena_alloc(Arena *a, size_t count, size_t size, size_t align);  // zeroed; full: aborts
void *arena_try(Arena *a, size_t count, size_t size, size_t align);    // zeroed; full: NULL
void  arena_rewind(Arena *a, size_t mark);  // frees everything after mark
char *arena_str(Arena *a, const char *s);   // a copy of s
char *arena_printf(Arena *a, const char *fmt, ...) PRINTF(2, 3);
char *arena_try_vprintf(Arena *a, const char *fmt, va_list ap) PRINTF(2, 0);  // full: NULL

// Sizes that come from input use the _try form and report ERR_LIMIT.
#define arena_new(a, T, n)     ((T *)arena_alloc((a), (n), sizeof(T), _Alignof(T)))
#define arena_try_new(a, T, n) ((T *)arena_try((a), (n), sizeof(T), _Alignof(T)))
