// Auction: assigns each bidder at most one item: unassigned bidders raise prices (Bertsekas).
//
// A bid leaves its bidder worse off by at most `step` than any other item or none, so the total
// value is within step times the items sold of the optimum.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/carve.h"

#define AUCTION_NONE UINT32_MAX

typedef struct Market {
    uint32_t        bidders, items;
    const uint32_t *first;  // [bidders + 1] index of a bidder's first entry
    const uint16_t *item;   // [entries] by descending worth within a bidder
    const float    *worth;  // [entries] finite; 0 or less: never bid on
} Market;

typedef struct Auction {
    double   *price;  // [items] set by the caller: 0; INFINITY: not for sale
    uint32_t *owner;  // [items] bidder, or AUCTION_NONE
    uint32_t *won;    // [bidders] entry in the market, or AUCTION_NONE
    uint32_t *queue;  // [bidders]
} Auction;

void auction_carve(Auction *a, uint32_t bidders, uint32_t items, Carve *from);

// step > 0. Bidders with out[i] do not bid; NULL: all bid.
void auction_run(Auction *a, const Market *m, const bool *out, double step);

double auction_profit(const Auction *a, const Market *m, uint32_t bidder);  // best at these prices
