// Carve: divides one block of memory into arrays. The same code runs twice: with base NULL it
// measures the size, with memory it assigns the arrays.
#pragma once

#include <stddef.h>

typedef struct Carve {
    char  *base;  // NULL: measuring
    size_t used;
} Carve;

static inline void *carve_bytes(Carve *c, size_t bytes) {
    size_t at = (c->used + 63) / 64 * 64;  // arrays do not share cache lines
    c->used = at + bytes;
    return c->base == NULL ? NULL : c->base + at;
}

#define carve(c, T, n) ((T *)carve_bytes((c), (size_t)(n) * sizeof(T)))
