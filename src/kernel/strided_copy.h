// StridedCopy: data movement between layouts: strided N-D copies (transpose, slice, expand,
// concat), gathers of rows, and conversion between the plain and the blocked layout.
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/tensor.h"
#include "kernel/isa.h"

// How the innermost dimension is copied, after dimensions were merged.
typedef enum StridedCopyKind {
    STRIDED_COPY_EMPTY,       // no elements
    STRIDED_COPY_CONTIGUOUS,  // contiguous runs
    STRIDED_COPY_FILL,        // runs of one repeated element
    STRIDED_COPY_TRANSPOSE,   // 2-D transposes
    STRIDED_COPY_ELEMENTS,    // element by element
} StridedCopyKind;

typedef struct StridedCopyDim {
    size_t    n;
    ptrdiff_t to, from;  // strides in elements
} StridedCopyDim;

// Built once by strided_copy_make or strided_copy_permute; the caller sets the addresses before
// isa->strided_copy(&copy, part).
typedef struct StridedCopy {
    StridedCopyKind kind;
    uint32_t        rank, size;             // size: bytes per element: 1, 2, 4 or 8
    StridedCopyDim  dims[TENSOR_MAX_RANK];  // outermost output dimension first; TRANSPOSE: the last
                                            // two are the columns and the rows of the input
    ptrdiff_t   to_at, from_at;             // first element of each side
    const void *from;
    void       *to;
} StridedCopy;

// The sides must not overlap; stride 0 in `from` repeats elements. to_at and from_at are 0.
StridedCopy strided_copy_make(int32_t rank, const int64_t *dims, size_t size, const int64_t *to,
                              const int64_t *from);

// Transpose: dimension i of the output is dimension perm[i] of the input.
StridedCopy strided_copy_permute(int32_t rank, const int64_t *dims, const int32_t *perm,
                                 size_t size);

uint32_t strided_copy_tasks(const StridedCopy *s);

// Size of one task. TRANSPOSE: rows x columns of the input; others: `columns` elements of a run. If
// a whole run or transpose is smaller than a task, `group` of them form one.
typedef struct StridedCopyTask {
    size_t rows, columns, group;
} StridedCopyTask;
StridedCopyTask strided_copy_task(const StridedCopy *s);

// y[o][i] = x[o][index[i]] for rows of `bytes` bytes. Indices are in range; negative ones count
// from the end of axis.
typedef struct Gather {
    size_t      outer, axis, count, bytes;
    const void *index;  // [count], int64_t if wide, else int32_t
    bool        wide;
    const void *from;
    void       *to;
} Gather;

uint32_t gather_tasks(const Gather *p);
void     gather_run(const Gather *p, Part part);

// Conversion between plain [n][channels][pixels] and blocked
// [n][ceil(channels / lanes)][pixels][lanes]. isa->layout_to_blocked(&convert, part) zeroes lanes
// beyond the last channel; isa->layout_to_plain(&convert, part) is the inverse.
typedef struct LayoutConvert {
    const float *from;
    float       *to;
    uint32_t     n, channels;
    size_t       pixels;
} LayoutConvert;

uint32_t layout_convert_tasks(const LayoutConvert *r, uint32_t lanes);

enum { LAYOUT_CONVERT_PIXELS = 512 };  // per task
