// Blocking: integer arithmetic shared by the kernels' plans: near-equal blocks, rounding, limits.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/tensor.h"

enum { LINE_FLOATS = 16 };  // a cache line

static inline uint32_t min_u32(uint32_t a, uint32_t b) { return a < b ? a : b; }
static inline uint32_t max_u32(uint32_t a, uint32_t b) { return a > b ? a : b; }

static inline uint32_t clamp_u32(uint32_t x, uint32_t low, uint32_t high) {
    return x < low ? low : x > high ? high : x;
}

static inline uint32_t ceil_div(uint32_t a, uint32_t b) {
    CHECK(b > 0);
    return (uint32_t)(((uint64_t)a + b - 1) / b);
}

static inline size_t ceil_div_size(size_t a, size_t b) { return (a + b - 1) / b; }

static inline uint32_t round_up(uint32_t a, uint32_t unit) { return ceil_div(a, unit) * unit; }

// `n` near-equal groups: the first `longer` have size + 1 members, the others size.
typedef struct EvenSplit {
    uint32_t n, size, longer;
} EvenSplit;

static inline EvenSplit even_split(uint32_t whole, uint32_t most) {
    uint32_t n = ceil_div(whole, most);
    CHECK(n > 0);
    return (EvenSplit){n, whole / n, whole % n};
}

// Start of block i when `whole` is cut into n blocks that differ by at most 1.
static inline uint32_t block_start(uint32_t whole, uint32_t n, uint32_t i) {
    return n > 0 ? (uint32_t)((uint64_t)whole * i / n) : 0;
}

static inline size_t round_to_lines(size_t floats) {
    return (floats + LINE_FLOATS - 1) / LINE_FLOATS * LINE_FLOATS;
}

// Aborts if a kernel has more tasks than a Part can count.
static inline uint32_t checked_tasks(uint64_t tasks) {
    CHECK(tasks <= UINT32_MAX);
    return (uint32_t)tasks;
}

static inline size_t align_bytes(size_t bytes) {
    return (bytes + TENSOR_ALIGN - 1) / TENSOR_ALIGN * TENSOR_ALIGN;
}
