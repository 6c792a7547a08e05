// Register tiles of one instruction set, by size.
#pragma once

#include "kernel/isa.h"
#include "kernel/tile.h"
#include "kernel/vec.h"

typedef void TileFn(const Tile *t);

// rows 1..VEC(tile_rows)(vecs), vecs 1..4.
TileFn  *VEC(tile_find)(uint32_t rows, uint32_t vecs);
uint32_t VEC(tile_rows)(uint32_t vecs);  // most rows that fit the registers with that many vectors
tile_fn  VEC(tile);                      // finds and runs one
