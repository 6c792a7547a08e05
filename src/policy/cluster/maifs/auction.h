// Auction: who gets which item, when everybody utilities one at most: unhappy bidders raise prices.
//
// A bid leaves its bidder worse off by at most `step` than with any other item or with none, so the
// sum of worths comes within step times the items sold of the best there is (Bertsekas).
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/carve.h"

#define AUCTION_NONE UINT32_MAX

typedef struct Market {
    uint32_t        bidders, items;
    const uint32_t *first;  // [bidders + 1] of those that follow
    const uint16_t *item;   // that a bidder could have, the one worth most first
    const float    *worth;  // finite; 0 or less is worth nothing
} Market;

typedef struct Auction {
    double   *price;  // [items] set by the caller: 0, or INFINITY: not for sale
    uint32_t *owner;  // [items] bidder, or AUCTION_NONE
    uint32_t *won;    // [bidders] place in the market's lists, or AUCTION_NONE
    uint32_t *queue;  // [bidders]
} Auction;

void auction_carve(Auction *a, uint32_t bidders, uint32_t items, Carve *from);

// step > 0. Those who are `out` do not bid; NULL: nobody is.
void auction_run(Auction *a, const Market *m, const bool *out, double step);

double auction_profit(const Auction *a, const Market *m, uint32_t bidder);  // best at these prices
double auction_value(const Auction *a, const Market *m);                    // sum of worths
// What no assignment can exceed: profits and prices.
double auction_bound(const Auction *a, const Market *m, const bool *out);
