// MappingCounts: a way to lay a shape's loops over a unit, and the search for the best one of a
// dataflow.
#pragma once

#include "chip/cost/cost.h"
#include "chip/cost/shape.h"

// What a mapping makes of a shape. Counts are elements, of all groups.
typedef struct MappingCounts {
    Mapping how;
    double  array_cycles;                       // of the multipliers alone
    double  weights, inputs, outputs, spilled;  // of memory; spilled: sums, there and back
    double  buffer_words, buffer_sums;          // of the shared buffer, read or written
    double  in_inputs, in_weights, in_sums;     // of the elements' own buffers
    double  sent;                               // from the shared buffer to elements
} MappingCounts;

// Work in hand: the best mapping so far.
typedef struct MappingSearch {
    const Shape    *s;
    const UnitSpec *u;
    double          memory_cycles;  // if everything is moved once
    Cost            best;           // cycles INFINITY: none yet
} MappingSearch;

void mapping_offer(MappingSearch *x, const MappingCounts *m);  // takes it when it is better
// Whether no mapping whose array takes so long can still be better.
bool mapping_cannot_improve(const MappingSearch *x, double array_cycles);

void mapping_row_stationary(MappingSearch *x);     // row stationary
void mapping_weight_stationary(MappingSearch *x);  // weight stationary
void mapping_output_stationary(MappingSearch *x);  // output stationary

static inline int64_t ceil_div(int64_t n, int64_t by) { return (n + by - 1) / by; }
static inline int64_t min_i64(int64_t a, int64_t b) { return a < b ? a : b; }

// The size of equal parts of n that are at most `most`, as few of them as that allows.
static inline int64_t mapping_part(int64_t n, int64_t most) {
    return ceil_div(n, ceil_div(n, min_i64(n, most)));
}

// Of the ways to cut n into equal parts, the next with more: the size of a part; 0 after 1.
static inline int64_t mapping_next_part(int64_t n, int64_t part) {
    return part > 1 ? ceil_div(n, ceil_div(n, part - 1)) : 0;
}

// LoopTile: the part of a layer that the buffers hold, and what walking over all parts moves.

typedef struct LoopTile {
    int64_t k, c;  // channels out and in
    int64_t p, n;  // rows, of so many images; several images only when p is all rows
} LoopTile;

typedef enum LoopOrder {  // of the loops over tiles, from the outermost; x: rows and images
    LOOP_KCX,
    LOOP_KXC,
    LOOP_CKX,
    LOOP_CXK,
    LOOP_XKC,
    LOOP_XCK,
    LOOP_ORDERS,
} LoopOrder;

typedef struct LoopTileTraffic {  // elements from and to memory, of one group
    double weights, inputs, outputs, spilled;
    bool   sums_stay;  // a tile's sums wait in the buffer while input channels come and go
} LoopTileTraffic;

typedef struct LoopTileRoom {  // of the buffer that inputs share with sums that stay
    double bytes, word_bytes, sum_bytes;
    bool   depthwise;  // each output channel has inputs of its own
} LoopTileRoom;

LoopTileTraffic loop_tile_traffic(const Shape *s, const LoopTile *t, LoopOrder order);

// Makes the strip as large as the buffer allows in this order; false: there is no room for one row.
bool loop_tile_fit(const Shape *s, const LoopTileRoom *room, LoopOrder order, LoopTile *t,
                   LoopTileTraffic *moves);
