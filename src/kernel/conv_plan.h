// ConvPlan: what follows from a convolution, a version and an instruction set: blocks, tasks,
// sizes.
#pragma once

#include "kernel/conv.h"

// A source is x or the rows a task staged. It has blocks of `block` channels side by side; terms
// of a tile are rows of taps of one block. Distances are in floats.
typedef struct ConvPlan {
    uint32_t lanes, registers;
    uint32_t groups, ic, oc;  // groups as run, and the channels of one
    uint32_t block, blocks;   // channels of a block, full blocks of a group
    uint32_t rest;            // channels after the full blocks
    uint32_t vecs;            // vectors of columns of a group
    bool     staged;
    bool     merged;          // images of one pixel each, taken as pixels of one image
    uint32_t images, pixels;  // what is left to go through
    uint32_t unit;            // pixels that stay together: a row when staged, else 1
    uint32_t width, height;   // of a staged block of rows, with its padding
    uint32_t step_x, step_y;  // from an output to the next, in the source
    size_t   row_pitch, block_pitch, group_pitch, image_pitch;  // of the source
    size_t   out_image, row_stride, vec_stride;                 // of y
    uint32_t row_terms;                                         // terms of one block
    uint32_t n_terms, term_depth;
    uint32_t n_tails, tail_depth;               // for the rest: a term is one tap
    size_t   block_weights, panel;              // floats of one vector: of a block, of all
    uint32_t tile_rows, tile_vecs, vec_groups;  // a group of vectors is the columns of a tile
    uint32_t row_blocks, col_groups, n_depths;  // pieces of a group
    uint32_t block_units;                       // the most units in a block of rows
    uint32_t tasks;
    size_t   terms_bytes, rows_bytes, slab_bytes;  // of scratch, in this order
} ConvPlan;

// One task: some vectors of a block of rows.
typedef struct ConvTask {
    uint32_t image, group, row_block, col_group;
} ConvTask;

ConvPlan conv_plan(const ConvShape *s, const Version *v, uint32_t lanes, uint32_t registers);
ConvTask conv_task(const ConvPlan *p, const Version *v, uint32_t index);

// Where piece i of n near-equal pieces starts.
static inline uint32_t conv_cut(uint32_t whole, uint32_t n, uint32_t i) {
    return n > 0 ? (uint32_t)((uint64_t)whole * i / n) : 0;
}
