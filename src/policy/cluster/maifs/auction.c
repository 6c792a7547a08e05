#include "policy/cluster/maifs/auction.h"

#include "base/err.h"

void auction_carve(Auction *a, uint32_t bidders, uint32_t items, Carve *from) {
    a->price = carve(from, double, items);
    a->owner = carve(from, uint32_t, items);
    a->won = carve(from, uint32_t, bidders);
    a->queue = carve(from, uint32_t, bidders);
}

typedef struct Bid {
    double   best, second;  // profits; none is worth 0
    uint32_t at;            // entry of the best, or AUCTION_NONE
} Bid;

// Prices are never negative, so a worth below the second best profit ends the search.
static Bid best_bid(const Auction *a, const Market *m, uint32_t bidder) {
    Bid w = {0, 0, AUCTION_NONE};
    for (uint32_t e = m->first[bidder]; e < m->first[bidder + 1]; e++) {
        if (!(m->worth[e] > w.second)) break;
        double profit = m->worth[e] - a->price[m->item[e]];
        if (profit > w.best) {
            w = (Bid){profit, w.best, e};
        } else if (profit > w.second) {
            w.second = profit;
        }
    }
    return w;
}

// The queue is a ring: a bidder that loses its item joins at the end.
void auction_run(Auction *a, const Market *m, const bool *out, double step) {
    CHECK(step > 0);
    uint32_t waiting = 0, head = 0;
    for (uint32_t k = 0; k < m->items; k++) a->owner[k] = AUCTION_NONE;
    for (uint32_t i = 0; i < m->bidders; i++) {
        a->won[i] = AUCTION_NONE;
        if (out == NULL || !out[i]) a->queue[waiting++] = i;
    }
    while (waiting > 0) {
        uint32_t i = a->queue[head];
        head = head + 1 < m->bidders ? head + 1 : 0;
        waiting--;
        Bid w = best_bid(a, m, i);
        if (w.at == AUCTION_NONE) continue;
        uint32_t item = m->item[w.at], loser = a->owner[item];
        a->price[item] += w.best - w.second + step;
        a->owner[item] = i;
        a->won[i] = w.at;
        if (loser == AUCTION_NONE) continue;
        a->won[loser] = AUCTION_NONE;
        uint32_t end = head + waiting++;
        a->queue[end < m->bidders ? end : end - m->bidders] = loser;
    }
}

double auction_profit(const Auction *a, const Market *m, uint32_t bidder) {
    return best_bid(a, m, bidder).best;
}
