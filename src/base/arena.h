// Arena: a bump allocator in memory mappings of its own; freeing it returns every page at once.
//
// An arena reserves its address space at once, or grows by chunks: a chunk is mapped when the one
// before it is full, and unmapped when the arena is rewound to before its start.
#pragma once

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

typedef struct ArenaChunk {  // at the start of every chunk but the first
    struct ArenaChunk *before;
    char              *base;  // of the arena before this chunk, as the next two
    size_t             high, cap;
    size_t             start, gap;  // offset of this chunk; bytes left unused before it
} ArenaChunk;

typedef struct Arena {
    char          *base;     // offset 0: offsets in the last chunk are memory, others are not
    size_t         used;     // offset of the next allocation
    size_t         high;     // most ever used in the last chunk; pages beyond it are still zero
    size_t         cap;      // end of the last chunk
    size_t         most;     // bytes it may grow to
    size_t         gaps;     // unused bytes at the ends of chunks, part of `used`
    size_t         first;    // bytes of the first chunk that are not charged
    size_t         refused;  // bytes of the last allocation that failed
    ArenaChunk    *chunk;    // the last one; NULL: the first
    void          *spare;    // a chunk kept for the next growth
    size_t         spare_bytes, spare_high;
    size_t         huge_from;  // huge pages are requested beyond it; 0: nowhere
    struct Budget *budget;     // pays for its memory; NULL: none
    size_t         charged;    // bytes taken from the budget
} Arena;

MUST_USE Err arena_init(Arena *a, size_t cap);  // reserves address space only
// Reserves `first` bytes and grows by need up to `most`. A budget does not pay for the first bytes.
MUST_USE Err arena_init_growing(Arena *a, size_t first, size_t most);
void         arena_finish(Arena *a);  // accepts a zeroed Arena

size_t arena_left(const Arena *a);      // bytes that may still be allocated
size_t arena_in_use(const Arena *a);    // bytes in use
size_t arena_reserved(const Arena *a);  // bytes of address space
size_t arena_reserved_all(void);        // of all arenas of the process

// Whether the bytes are memory of the arena, in use or not.
bool arena_holds(const Arena *a, const void *at, size_t bytes);

// Requests huge pages (madvise) beyond the first `from` bytes, for large data that is read often.
// Up to 2 MB of the last page stay unused. A hint; call it before the first allocation.
void arena_use_huge_pages(Arena *a, size_t from);

// Charges its memory, also what is already in use, to a budget (NULL: to none) instead of the
// present one; allocations beyond the budget fail. False: the budget is too small, nothing changed.
bool arena_charge(Arena *a, struct Budget *b);
// Returns memory beyond `keep` bytes to the system and to the budget; requires used <= keep.
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
