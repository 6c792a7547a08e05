#include "chip/cost/mapping.h"

typedef enum Loop { K, C, X, LOOPS } Loop;

static const Loop orders[LOOP_ORDERS][LOOPS] = {
    [LOOP_KCX] = {K, C, X}, [LOOP_KXC] = {K, X, C}, [LOOP_CKX] = {C, K, X},
    [LOOP_CXK] = {C, X, K}, [LOOP_XKC] = {X, K, C}, [LOOP_XCK] = {X, C, K},
};

// How often a tensor is fetched as a whole: the rounds of the loop that it does not depend on, if a
// loop that it depends on is inside.
static double refetched(const Loop *order, const double *rounds, Loop without) {
    bool inside = false;
    for (int i = LOOPS - 1; i >= 0; i--) {
        if (order[i] == without) return inside ? rounds[without] : 1;
        inside = inside || rounds[order[i]] > 1;
    }
    return 1;
}

LoopTileTraffic loop_tile_traffic(const Shape *s, const LoopTile *t, LoopOrder order) {
    const Loop *o = orders[order];
    double      rounds[LOOPS] = {[K] = (double)ceil_div(s->k, t->k),
                                 [C] = (double)ceil_div(s->c, t->c),
                                 [X] = (double)ceil_div(s->p, t->p) * (double)ceil_div(s->n, t->n)};
    int         inner = LOOPS - 1;
    while (inner > 0 && rounds[o[inner]] <= 1) inner--;
    double sums = refetched(o, rounds, C), outputs = (double)(s->n * s->k) * (double)(s->p * s->q);
    double image = (double)(s->n * s->c) * (double)s->w;
    // Rows shared by two strips stay in the buffer if strips follow each other.
    double rows = (double)(o[inner] == X ? s->h : shape_sweep(s, t->p));
    return (LoopTileTraffic){
        .weights = (double)(s->k * s->c) * (double)(s->r * s->s) * refetched(o, rounds, X),
        .inputs = image * rows * refetched(o, rounds, K),
        .outputs = outputs,
        .spilled = 2 * (sums - 1) * outputs,
        .sums_stay = rounds[C] > 1 && sums <= 1,
    };
}

static bool has_room(const Shape *s, const LoopTileRoom *room, const LoopTile *t, bool sums_stay) {
    double in = (double)(t->n * t->c) * shape_touched(s, t->p);
    double out = (double)(t->n * t->k) * (double)t->p * (double)s->q;
    if (room->depthwise) in *= (double)t->k;
    return in * room->word_bytes + (sums_stay ? out * room->sum_bytes : 0) <= room->bytes;
}

static bool enlarge(const Shape *s, const LoopTileRoom *room, bool sums_stay, LoopTile *t) {
    int64_t lo = 0, hi = s->n + 1;  // lo has room, hi has not
    for (t->p = s->p; hi - lo > 1;) {
        t->n = (lo + hi) / 2;
        *(has_room(s, room, t, sums_stay) ? &lo : &hi) = t->n;
    }
    t->n = lo;
    if (lo > 0) return true;
    t->n = 1;
    for (hi = s->p; hi - lo > 1;) {
        t->p = (lo + hi) / 2;
        *(has_room(s, room, t, sums_stay) ? &lo : &hi) = t->p;
    }
    t->p = lo;
    return lo > 0;
}

bool loop_tile_fit(const Shape *s, const LoopTileRoom *room, LoopOrder order, LoopTile *t,
                   LoopTileTraffic *traffic) {
    for (int stay = 0; stay < 2; stay++) {
        if (!enlarge(s, room, stay == 1, t)) return false;
        *traffic = loop_tile_traffic(s, t, order);
        if (!traffic->sums_stay) return true;
    }
    return true;
}
