// Map: a way to lay a shape's loops over a unit, and the search for the best one of a dataflow.
#pragma once

#include "chip/cost.h"

// What a mapping makes of a shape. Counts are elements, of all groups.
typedef struct Map {
    Mapping how;
    double  array_cycles;                       // of the multipliers alone
    double  weights, inputs, outputs, spilled;  // of memory; spilled: sums, there and back
    double  buffer_words, buffer_sums;          // of the shared buffer, read or written
    double  in_inputs, in_weights, in_sums;     // of the elements' own buffers
    double  sent;                               // from the shared buffer to elements
} Map;

// Work in hand: the best mapping so far.
typedef struct MapSearch {
    const Shape *s;
    const Unit  *u;
    double       memory_cycles;  // if everything is moved once
    Cost         best;           // cycles INFINITY: none yet
} MapSearch;

void map_offer(MapSearch *x, const Map *m);  // takes it when it is better
// Whether no mapping whose array takes so long can still be better.
bool map_hopeless(const MapSearch *x, double array_cycles);

void map_rows(MapSearch *x);     // row stationary
void map_weights(MapSearch *x);  // weight stationary
void map_outputs(MapSearch *x);  // output stationary

static inline int64_t map_up(int64_t n, int64_t by) { return (n + by - 1) / by; }
static inline int64_t map_least(int64_t a, int64_t b) { return a < b ? a : b; }

// The size of equal parts of n that are at most `most`, as few of them as that allows.
static inline int64_t map_fit(int64_t n, int64_t most) {
    return map_up(n, map_up(n, map_least(n, most)));
}

// Of the ways to cut n into equal parts, the next with more: the size of a part; 0 after 1.
static inline int64_t map_next(int64_t n, int64_t part) {
    return part > 1 ? map_up(n, map_up(n, part - 1)) : 0;
}
