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

// Defines size(), a policy's state_size, from carve_all(setup, Carve *), which lays out its state.
#define CARVE_STATE_SIZE(Setup)                                                                    \
    static size_t size(const Setup *setup, const void *settings) {                                 \
        (void)settings;                                                                            \
        Carve c = {0};                                                                             \
        (void)carve_all(setup, &c);                                                                \
        return c.used;                                                                             \
    }

#define carve(c, T, n) ((T *)carve_bytes((c), (size_t)(n) * sizeof(T)))
