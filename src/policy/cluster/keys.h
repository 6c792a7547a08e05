// Keys: numbers with a tie-breaker in one word, sorted in place without memory.
#pragma once

#include <stdint.h>
#include <string.h>

// Sorts the largest x first, of equals the least tie. x is a number.
static inline uint64_t key_falling(float x, uint32_t tie) {
    uint32_t bits;
    x += 0.0f;  // of the two zeros one
    memcpy(&bits, &x, sizeof bits);
    bits ^= bits >> 31 ? UINT32_MAX : UINT32_C(1) << 31;
    return (uint64_t)~bits << 32 | tie;
}

static inline uint32_t key_tie(uint64_t key) { return (uint32_t)key; }

static inline void keys_sort(uint64_t *keys, uint32_t n) {
    static const uint32_t gaps[] = {8861, 3938, 1750, 701, 301, 132, 57, 23, 10, 4, 1};
    for (uint32_t g = 0; g < sizeof gaps / sizeof *gaps; g++)
        for (uint32_t gap = gaps[g], i = gap; i < n; i++) {
            uint64_t key = keys[i];
            uint32_t at = i;
            for (; at >= gap && keys[at - gap] > key; at -= gap) keys[at] = keys[at - gap];
            keys[at] = key;
        }
}
