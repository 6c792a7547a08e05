// PackedKey: a float and a tie-breaker in one integer that sorts like the pair.
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

// Sorts the largest x first, of equals the smallest tie. x is not NaN.
static inline uint64_t packed_key_descending(float x, uint32_t tie) {
    uint32_t bits;
    x += 0.0f;  // -0 becomes 0
    memcpy(&bits, &x, sizeof bits);
    bits ^= bits >> 31 ? UINT32_MAX : UINT32_C(1) << 31;
    return (uint64_t)~bits << 32 | tie;
}

static inline uint32_t packed_key_tie(uint64_t key) { return (uint32_t)key; }

// Merge sort without branches on keys. keys has room for 2 n; the second half is scratch.
static inline void packed_keys_sort(uint64_t *keys, uint32_t n) {
    uint64_t *from = keys, *to = keys + n;
    for (uint32_t run = 1; run < n; run *= 2) {
        for (uint32_t at = 0; at < n; at += 2 * run) {
            uint32_t middle = at + run < n ? at + run : n,
                     end = middle + run < n ? middle + run : n;
            uint32_t x = at, y = middle, out = at;
            while (x < middle && y < end) {
                bool second = from[y] < from[x];
                to[out++] = second ? from[y] : from[x];
                x += !second;
                y += second;
            }
            while (x < middle) to[out++] = from[x++];
            while (y < end) to[out++] = from[y++];
        }
        uint64_t *swap = from;
        from = to;
        to = swap;
    }
    if (from != keys) memcpy(keys, from, n * sizeof *keys);
}
