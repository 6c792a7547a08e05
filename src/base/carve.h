// Carve: hands out the parts of a policy's state. The same code, run first without memory, says how
// much there has to be.
#pragma once

#include <stddef.h>

typedef struct Carve {
    char  *base;  // NULL: only counting
    size_t used;
} Carve;

static inline void *carve_bytes(Carve *c, size_t bytes) {
    size_t at = (c->used + 63) / 64 * 64;  // parts do not share cache lines
    c->used = at + bytes;
    return c->base == NULL ? NULL : c->base + at;
}

#define carve(c, T, n) ((T *)carve_bytes((c), (size_t)(n) * sizeof(T)))
