// StridedCopy: moves elements of 1, 2, 4 or 8 bytes between layouts, fast; arithmetic has no part
// in it.
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/tensor.h"
#include "kernel/isa.h"

// How the innermost dimension moves, after dimensions were merged.
typedef enum StridedCopyKind {
    STRIDED_COPY_EMPTY,       // there are no elements
    STRIDED_COPY_CONTIGUOUS,  // runs of elements stay together
    STRIDED_COPY_FILL,        // runs of one and the same element
    STRIDED_COPY_TRANSPOSE,   // rows become columns
    STRIDED_COPY_ELEMENTS,    // every element goes its own way
} StridedCopyKind;

typedef struct StridedCopyDim {
    size_t    n;
    ptrdiff_t to, from;  // step of each side, in elements
} StridedCopyDim;

// A copy of n-dimensional strided elements to n-dimensional strided elements. Made once by
// strided_copy_make and its like; whoever runs it sets the addresses.
typedef struct StridedCopy {
    StridedCopyKind kind;
    uint32_t        rank, size;             // size: bytes of an element
    StridedCopyDim  dims[TENSOR_MAX_RANK];  // outermost first in the output; of a turn the last two
                                           // are the columns and the rows of the input
    ptrdiff_t   to_at, from_at;  // the first element of each side
    const void *from;
    void       *to;
} StridedCopy;

// Sides must not overlap; a step of 0 in `from` repeats elements. Offsets are 0.
StridedCopy strided_copy_make(int32_t rank, const int64_t *dims, size_t size, const int64_t *to,
                              const int64_t *from);

// y[i, j, ...] = x with its dimensions in the order perm.
StridedCopy strided_copy_permute(int32_t rank, const int64_t *dims, const int32_t *perm,
                                 size_t size);

// x of size in, put at `at` (which may be negative: cut off) into y of size out. The first copies
// x; the others, whose `from` is to be the address of the constant, fill what is left. All are
// disjoint. Returns how many there are.
enum { STRIDED_COPY_PADS = 2 * TENSOR_MAX_RANK + 1 };
uint32_t strided_copy_pad(int32_t rank, const int64_t *in, const int64_t *at, const int64_t *out,
                          size_t size, StridedCopy *shuffles);

// Vector kernel: isa->strided_copy(shuffle, part).
uint32_t strided_copy_tasks(const StridedCopy *s);

// One task: of a turn so many rows and columns of the input, of others so many elements of a run;
// or, when that is all there is, so many turns or runs.
typedef struct StridedCopyTask {
    size_t rows, columns, group;
} StridedCopyTask;
StridedCopyTask strided_copy_task(const StridedCopy *s);

// y[o][i] = x[o][index[i]], blocks of `bytes` each; an index may be negative, and is in range.
typedef struct Gather {
    size_t      outer, axis, count, bytes;
    const void *index;  // [count] of int64_t when wide, of int32_t otherwise
    bool        wide;
    const void *from;
    void       *to;
} Gather;

uint32_t gather_tasks(const Gather *p);
void     gather_run(const Gather *p, Part part);

// LayoutConvert: changes between the plain and the blocked layout.

// plain [n][channels][pixels] <-> blocked [n][ceil(channels / lanes)][pixels][lanes].
typedef struct LayoutConvert {
    const float *from;
    float       *to;
    uint32_t     n, channels;
    size_t       pixels;
} LayoutConvert;

// Vector kernels: isa->layout_to_blocked (to blocked; lanes without a channel become 0) and
// isa->layout_to_plain (to plain), each with (relay, part).
uint32_t layout_convert_tasks(const LayoutConvert *r, uint32_t lanes);
size_t   layout_convert_count(const LayoutConvert *r,
                              uint32_t             lanes);  // floats of the blocked tensor

// Pixels of one task.
enum { LAYOUT_CONVERT_PIXELS = 512 };
