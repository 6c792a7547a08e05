// Mapping search: the best way to map a layer's loops to a unit, for each dataflow.
// LoopTile: the part of a layer that the buffers hold, and the traffic of a loop over all parts.
#pragma once

#include "chip/cost/cost.h"
#include "chip/cost/shape.h"

// Work of a mapping. Counts are elements, over all groups.
typedef struct MappingCounts {
    Mapping mapping;
    double  array_cycles;  // of the multipliers alone
    double  weights, inputs, outputs,
        spilled;  // from and to memory; spilled: partial sums, written and read
    double buffer_words, buffer_sums;       // accesses to the shared buffer
    double in_inputs, in_weights, in_sums;  // accesses to the elements' buffers
    double sent;                            // from the shared buffer to elements
} MappingCounts;

typedef struct MappingSearch {
    const Shape    *s;
    const UnitSpec *u;
    double          memory_cycles;  // if every element is moved once
    Cost            best;           // so far; cycles INFINITY: none
} MappingSearch;

void mapping_offer(MappingSearch *x, const MappingCounts *m);  // kept if better
// Whether no mapping with so many array cycles can be better than the best so far.
bool mapping_cannot_improve(const MappingSearch *x, double array_cycles);

// One search per dataflow, in a file of the same name.
void mapping_row_stationary(MappingSearch *x);
void mapping_weight_stationary(MappingSearch *x);
void mapping_output_stationary(MappingSearch *x);

static inline int64_t ceil_div(int64_t n, int64_t by) { return (n + by - 1) / by; }
static inline int64_t min_i64(int64_t a, int64_t b) { return a < b ? a : b; }

// Size of the fewest equal parts of n that are at most `most`.
static inline int64_t mapping_part(int64_t n, int64_t most) {
    return ceil_div(n, ceil_div(n, min_i64(n, most)));
}

// The next smaller size of equal parts of n with more parts; 0 after 1.
static inline int64_t mapping_next_part(int64_t n, int64_t part) {
    return part > 1 ? ceil_div(n, ceil_div(n, part - 1)) : 0;
}

typedef struct LoopTile {
    int64_t k, c;  // channels out and in
    int64_t p, n;  // rows; images, more than one only if p is all rows
} LoopTile;

typedef enum LoopOrder {  // of the loops over tiles, outermost first; x: rows and images
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
    bool   sums_stay;  // partial sums stay in the buffer over all input channels
} LoopTileTraffic;

typedef struct LoopTileRoom {  // the buffer for inputs and for sums that stay
    double bytes, word_bytes, sum_bytes;
    bool   depthwise;  // each output channel has inputs of its own
} LoopTileRoom;

LoopTileTraffic loop_tile_traffic(const Shape *s, const LoopTile *t, LoopOrder order);

// Sets n and p of the tile as large as the buffer allows; false: not even one row fits.
bool loop_tile_fit(const Shape *s, const LoopTileRoom *room, LoopOrder order, LoopTile *t,
                   LoopTileTraffic *traffic);
