// Sums: numbers that are not negative, their total, and who is at a place in it, in logarithmic
// time.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"

typedef struct Sums {
    double  *node;  // [2 * leaves] a tree: the sum of nodes 2 i and 2 i + 1 is node i
    uint32_t leaves;
} Sums;

void sums_init(Sums *s, Arena *a, uint32_t n);  // all 0
void sums_set(Sums *s, uint32_t i, double value);

static inline double sums_get(const Sums *s, uint32_t i) { return s->node[s->leaves + i]; }
static inline double sums_total(const Sums *s) { return s->node[1]; }

// The first i such that what stands up to and with i sums to more than `at`; never one that is 0.
uint32_t sums_find(const Sums *s, double at);
