// Shuffle: moves elements of 1, 2, 4 or 8 bytes between layouts, fast; arithmetic has no part in
// it.
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/tensor.h"
#include "kernel/isa.h"

// How the innermost dimension moves, after dimensions were merged.
typedef enum ShuffleWay {
    SHUFFLE_NONE,  // there are no elements
    SHUFFLE_ROWS,  // runs of elements stay together
    SHUFFLE_FILL,  // runs of one and the same element
    SHUFFLE_TURN,  // rows become columns
    SHUFFLE_EACH,  // every element goes its own way
} ShuffleWay;

typedef struct ShuffleDim {
    size_t    n;
    ptrdiff_t to, from;  // step of each side, in elements
} ShuffleDim;

// A copy of n-dimensional strided elements to n-dimensional strided elements. Made once by
// shuffle_make and its like; whoever runs it sets the addresses.
typedef struct Shuffle {
    ShuffleWay way;
    uint32_t   rank, size;             // size: bytes of an element
    ShuffleDim dims[TENSOR_MAX_RANK];  // outermost first in the output; of a turn the last two are
                                       // the columns and the rows of the input
    ptrdiff_t   to_at, from_at;        // the first element of each side
    const void *from;
    void       *to;
} Shuffle;

// Sides must not overlap; a step of 0 in `from` repeats elements. Offsets are 0.
Shuffle shuffle_make(int32_t rank, const int64_t *dims, size_t size, const int64_t *to,
                     const int64_t *from);

// y[i, j, ...] = x with its dimensions in the order perm.
Shuffle shuffle_permute(int32_t rank, const int64_t *dims, const int32_t *perm, size_t size);

// x of size in, put at `at` (which may be negative: cut off) into y of size out. The first copies
// x; the others, whose `from` is to be the address of the constant, fill what is left. All are
// disjoint. Returns how many there are.
enum { SHUFFLE_PADS = 2 * TENSOR_MAX_RANK + 1 };
uint32_t shuffle_pad(int32_t rank, const int64_t *in, const int64_t *at, const int64_t *out,
                     size_t size, Shuffle *shuffles);

// Vector kernel: isa->shuffle_run(shuffle, part).
uint32_t shuffle_tasks(const Shuffle *s);

// One task: of a turn so many rows and columns of the input, of others so many elements of a run;
// or, when that is all there is, so many turns or runs.
typedef struct ShuffleCut {
    size_t rows, columns, group;
} ShuffleCut;
ShuffleCut shuffle_cut(const Shuffle *s);

// y[o][i] = x[o][index[i]], blocks of `bytes` each; an index may be negative, and is in range.
typedef struct ShufflePick {
    size_t      outer, axis, count, bytes;
    const void *index;  // [count] of int64_t when wide, of int32_t otherwise
    bool        wide;
    const void *from;
    void       *to;
} ShufflePick;

uint32_t shuffle_pick_tasks(const ShufflePick *p);
void     shuffle_pick(const ShufflePick *p, Part part);
