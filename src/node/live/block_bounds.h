// BlockBounds: where the blocks of a program end at the latest, so that work for one core holds one
// core.
#pragma once

#include "base/arena.h"
#include "base/err.h"
#include "compile/program.h"
#include "contract/node.h"

typedef struct BlockBounds {
    uint32_t  n;       // layers of the program, the interpreted tail included
    uint32_t *cut;     // [n] end of a block that begins at the layer, if it has several cores
    uint32_t *serial;  // [n] the first layer from there on with several tasks; n: none
} BlockBounds;

typedef struct BlockExtent {
    uint32_t end;
    bool     solo;  // its layers have one task each: one core
} BlockExtent;

// Layers with one task are cut off from others if they take long together, or for an unknown time
// as the interpreted tail does.
MUST_USE Err block_bounds_init(BlockBounds *b, const Program *p, const NodeModel *m, Arena *a);
// The part of a block [first, end) that may run on `cores` cores.
BlockExtent block_bounds_fit(const BlockBounds *b, uint32_t first, uint32_t end, uint32_t cores);
