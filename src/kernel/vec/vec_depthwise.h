// VecDepth: the register code of depthwise convolutions: a strip of pixels of one output row.
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "kernel/vec/vec.h"

enum { STRIP_TILE = 8 };  // most pixels held in registers

// `count` tiles of pixels next to each other, in `lines` output rows below each other. Pixel p of
// the first line meets input columns from `column` + p * step and input rows from `top` on.
typedef struct Strip {
    const float *x;                     // input row `first`
    size_t       x_line;                // floats of an input row
    size_t       y_line;                // and of an output row
    const float *weights, *bias, *add;  // [kh][taps][lanes]; or NULL, or NULL
    float       *y;
    size_t       at;  // of the first pixel, in a line of add and y
    ptrdiff_t    column, top, first;
    uint32_t     count, lines;
    uint32_t     ih, kh, sh, dh;
    uint32_t     from, to;           // of an edge: columns inside the input, counted from `column`
    uint32_t     taps, apart, step;  // a loose strip's: taps of a row, columns between them, stride
    bool         clips;
    float        lo, hi;
} Strip;

typedef void StripFn(const Strip *s);

// For dh == 1, taps 3 or 5 next to each other, step 1 or 2, tile 1..STRIP_TILE. An edge is one tile
// of which less than `taps` columns on either side lie outside; others lie inside altogether.
StripFn *VEC(strip_taps)(uint32_t taps, uint32_t step, uint32_t tile, bool edge);

// Any taps, inside altogether.
StripFn *VEC(strip_loose)(uint32_t step, uint32_t tile);
