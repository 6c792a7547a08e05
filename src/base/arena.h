// Arena: memory with one lifetime, in a mapping of its own, so that dropping it returns every page.
#pragma once

#include <stddef.h>

#include "base/err.h"

typedef struct Arena {
    char  *base;  // start of the reserved address range
    size_t used;  // bytes handed out
    size_t high;  // bytes ever handed out; beyond it the pages are still zero
    size_t cap;   // bytes reserved
} Arena;

MUST_USE Err arena_init(Arena *a, size_t cap);  // reserves address space, touches no page
void         arena_finish(Arena *a);            // accepts a zeroed Arena

// Asks for huge pages beyond the first `from` bytes: for much that is read again and again. The
// last one may hold up to 2 MB more than is used. A wish only; call it before anything is used.
void arena_use_huge_pages(Arena *a, size_t from);

// Gives back the addresses that are not used: nothing more will be asked for.
void arena_trim(Arena *a);

void *arena_alloc(Arena *a, size_t count, size_t size, size_t align);  // zeroed; full: aborts
void *arena_try(Arena *a, size_t count, size_t size, size_t align);    // zeroed; full: NULL
void  arena_rewind(Arena *a, size_t mark);                             // forget all after mark
char *arena_str(Arena *a, const char *s);                              // a copy of s
char *arena_printf(Arena *a, const char *fmt, ...) PRINTF(2, 3);

// For amounts that come from outside use the _try form and report ERR_LIMIT.
#define arena_new(a, T, n)     ((T *)arena_alloc((a), (n), sizeof(T), _Alignof(T)))
#define arena_try_new(a, T, n) ((T *)arena_try((a), (n), sizeof(T), _Alignof(T)))
