// Tile: the part of a layer that the buffers hold, and what walking over all parts moves.
#pragma once

#include "chip/shape.h"

typedef struct Tile {
    int64_t k, c;  // channels out and in
    int64_t p, n;  // rows, of so many images; several images only when p is all rows
} Tile;

typedef enum TileOrder {  // of the loops over tiles, from the outermost; x: rows and images
    TILE_KCX,
    TILE_KXC,
    TILE_CKX,
    TILE_CXK,
    TILE_XKC,
    TILE_XCK,
    TILE_ORDERS,
} TileOrder;

typedef struct TileMoves {  // elements from and to memory, of one group
    double weights, inputs, outputs, spilled;
    bool   sums_stay;  // a tile's sums wait in the buffer while input channels come and go
} TileMoves;

typedef struct TileRoom {  // of the buffer that inputs share with sums that stay
    double bytes, word_bytes, sum_bytes;
    bool   depthwise;  // each output channel has inputs of its own
} TileRoom;

TileMoves tile_moves(const Shape *s, const Tile *t, TileOrder order);

// Makes the strip as large as the buffer allows in this order; false: there is no room for one row.
bool tile_fit(const Shape *s, const TileRoom *room, TileOrder order, Tile *t, TileMoves *moves);
