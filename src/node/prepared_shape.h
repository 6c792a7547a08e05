// PreparedShape: a program of a prepared model for other input shapes, which runs as one of its
// layers, versions and execution contexts. Making one packs and measures nothing.
#pragma once

#include "node/prepared_model.h"

typedef struct PreparedShape {
    Arena        arena;  // holds the shaped graph
    ShapedGraph *shaped;
    Program      program;
    size_t       bytes;  // of both
} PreparedShape;

// *fits false: it has other layers or needs more memory than the model's contexts have, and was not
// made. The model must outlive it. scratch: of compilation; NULL: a new one.
MUST_USE Err prepared_shape_make(PreparedShape *s, const PreparedModel *of, const Tensor *shapes,
                                 Arena *scratch, bool *fits);
// Size of an open dimension for which a tenant is made that serves all sizes rounded up to it.
int64_t prepared_shape_round(int64_t size);
void    prepared_shape_finish(PreparedShape *s);  // accepts a zeroed PreparedShape
