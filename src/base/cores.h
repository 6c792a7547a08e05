// Cores: a bit set of core numbers, passed by value.
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum { CORES_MAX = 256, CORES_WORDS = CORES_MAX / 64 };

typedef struct Cores {
    uint64_t bits[CORES_WORDS];
} Cores;

static inline bool cores_has(const Cores *s, uint32_t core) {
    return (s->bits[core / 64] >> core % 64 & 1) != 0;
}

static inline void cores_add(Cores *s, uint32_t core) {
    s->bits[core / 64] |= UINT64_C(1) << core % 64;
}

static inline void cores_remove(Cores *s, uint32_t core) {
    s->bits[core / 64] &= ~(UINT64_C(1) << core % 64);
}

static inline uint32_t cores_count(const Cores *s) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < CORES_WORDS; i++) n += (uint32_t)__builtin_popcountll(s->bits[i]);
    return n;
}

static inline Cores cores_all(uint32_t n) {  // 0 to n - 1
    Cores s = {0};
    for (uint32_t i = 0; i < n; i++) cores_add(&s, i);
    return s;
}

static inline Cores cores_union(Cores a, const Cores *b) {
    for (uint32_t i = 0; i < CORES_WORDS; i++) a.bits[i] |= b->bits[i];
    return a;
}

static inline Cores cores_intersection(Cores a, const Cores *b) {
    for (uint32_t i = 0; i < CORES_WORDS; i++) a.bits[i] &= b->bits[i];
    return a;
}

static inline Cores cores_difference(Cores a, const Cores *b) {
    for (uint32_t i = 0; i < CORES_WORDS; i++) a.bits[i] &= ~b->bits[i];
    return a;
}

static inline bool cores_is_subset(const Cores *a, const Cores *b) {  // a is a subset of b
    for (uint32_t i = 0; i < CORES_WORDS; i++)
        if ((a->bits[i] & ~b->bits[i]) != 0) return false;
    return true;
}

// The first core >= from in the set; CORES_MAX if there is none.
static inline uint32_t cores_next(const Cores *s, uint32_t from) {
    for (uint32_t w = from / 64; w < CORES_WORDS; w++) {
        uint64_t bits = s->bits[w];
        if (w == from / 64) bits &= ~UINT64_C(0) << from % 64;
        if (bits != 0) return w * 64 + (uint32_t)__builtin_ctzll(bits);
    }
    return CORES_MAX;
}
