#include "learn/block.h"

#include <math.h>
#include <string.h>

#include "base/check.h"

Block block_new(Arena *a, size_t n) { return (Block){arena_alloc(a, n, sizeof(float), 64), n}; }

Block block_part(Block b, size_t from, size_t n) {
    CHECK(from <= b.n && n <= b.n - from);
    return (Block){b.at + from, n};
}

void block_zero(Block b) { memset(b.at, 0, b.n * sizeof *b.at); }

void block_copy(Block to, Block from) {
    CHECK(to.n == from.n);
    memcpy(to.at, from.at, to.n * sizeof *to.at);
}

void block_blend(Block to, Block from, float tau) {
    CHECK(to.n == from.n);
    for (size_t i = 0; i < to.n; i++) to.at[i] += tau * (from.at[i] - to.at[i]);
}

void block_add(Block to, Block from) {
    CHECK(to.n == from.n);
    for (size_t i = 0; i < to.n; i++) to.at[i] += from.at[i];
}

void block_scale(Block b, float by) {
    for (size_t i = 0; i < b.n; i++) b.at[i] *= by;
}

// Four sums that take turns, in this order on every machine.
double block_norm(Block b) {
    double sum[4] = {0};
    for (size_t i = 0; i < b.n; i++) sum[i & 3] += (double)b.at[i] * (double)b.at[i];
    return sqrt((sum[0] + sum[1]) + (sum[2] + sum[3]));
}

double block_clip(Block b, double max) {
    double norm = block_norm(b);
    if (norm > max) block_scale(b, (float)(max / norm));
    return norm;
}

bool block_finite(Block b) {
    for (size_t i = 0; i < b.n; i++)
        if (!isfinite(b.at[i])) return false;
    return true;
}
