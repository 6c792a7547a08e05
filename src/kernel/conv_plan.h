// ConvPlan: blocks, tasks, strides and scratch sizes that follow from a convolution's shape, its
// version and the instruction set. Internal to conv.c and vec_conv.c; the cost model reads it too.
#pragma once

#include "kernel/conv.h"

// The source is x or a task's staged rows. Its channels lie in blocks of `block`; a tile's terms
// are the kernel rows over one block. Pitches and strides are in floats.
typedef struct ConvPlan {
    uint32_t lanes, registers;
    uint32_t groups, ic, oc;  // groups as run (small ones are joined), channels per group
    uint32_t block, blocks;   // channels per block, full blocks per group
    uint32_t rest;            // channels after the full blocks
    uint32_t vecs;            // vectors of output channels per group
    bool     staged;
    bool     merged;          // 1x1-pixel images are treated as the pixels of one image
    uint32_t images, pixels;  // after merging; an output plane of a 3-D convolution is an image
    uint32_t planes, taps;    // kernel planes, elements of the kernel
    uint32_t out_depth;       // output planes per image of the batch
    uint32_t unit;            // pixels that stay together: an output row if staged, else 1
    uint32_t width, height;   // of a staged block of rows, padding included
    uint32_t step_x, step_y;  // source distance between neighbouring outputs
    size_t   row_pitch, plane_pitch, block_pitch;  // of the source
    size_t   group_pitch, image_pitch;             // of x
    size_t   out_image, row_stride, vec_stride;    // of y
    uint32_t row_terms;                            // terms per block
    uint32_t n_terms, term_depth;
    uint32_t n_tails, tail_depth;               // terms over `rest`: one per tap
    size_t   block_weights, panel;              // floats per vector: of one block, of all
    uint32_t tile_rows, tile_vecs, vec_groups;  // a vector group is the width of one tile
    uint32_t row_blocks, col_groups, n_depths;  // blocks of rows, columns, depth per group
    uint32_t block_units;                       // units in the largest block of rows
    uint32_t tasks;
    size_t   terms_bytes, rows_bytes, slab_bytes;  // scratch, in this order
} ConvPlan;

// One task: a group of columns over one block of rows.
typedef struct ConvTask {
    uint32_t image, group, row_block, col_group;
} ConvTask;

ConvPlan conv_plan(const ConvShape *s, const Version *v, uint32_t lanes, uint32_t registers);
ConvTask conv_task(const ConvPlan *p, const Version *v, uint32_t index);
