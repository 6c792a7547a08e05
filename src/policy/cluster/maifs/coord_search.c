// Local search over claims, and the payoffs of pairs of claims.
//
// The payoff of a claim beside all others is linear in the sums of their factors, so pricing one
// claim anew costs `rank` products whatever the number of agents.
#include <math.h>
#include <string.h>

#include "policy/cluster/maifs/coord_int.h"

// left [rank], then right [rank].
static const float *factors_of(const Coordination *a, uint32_t entry) {
    return a->factors + (size_t)entry * 2 * a->p->rank;
}

static void add_pairs(Coordination *a, uint32_t entry, double sign) {
    uint32_t wide = 2 * a->p->rank;
    if (wide == 0 || entry == COORD_NONE) return;
    const float *of = factors_of(a, entry);
    for (uint32_t r = 0; r < wide; r++) a->pair_sums[r] += sign * (double)of[r];
}

static void sum_pairs(Coordination *a) {
    memset(a->pair_sums, 0, sizeof a->pair_sums);
    for (uint32_t i = 0; i < a->n; i++) add_pairs(a, a->claim[i], 1);
}

// Payoff of a claim with its pairs with all claims that are summed.
static double worth_of(const Coordination *a, uint32_t entry) {
    uint32_t rank = a->p->rank;
    double   sum = 0;
    if (entry == COORD_NONE) return 0;
    if (rank == 0) return (double)a->gain[entry];
    const float *left = factors_of(a, entry), *right = left + rank;
    for (uint32_t r = 0; r < rank; r++)
        sum += (double)left[r] * a->pair_sums[rank + r] + (double)right[r] * a->pair_sums[r];
    return (double)a->gain[entry] + sum / (2 * a->scale);
}

double coord_value(Coordination *a) {
    double sum = 0;
    memset(a->pair_sums, 0, sizeof a->pair_sums);
    for (uint32_t i = 0; i < a->n; i++) {
        sum += worth_of(a, a->claim[i]);
        add_pairs(a, a->claim[i], 1);
    }
    return sum;
}

enum { SWEEPS = 4 };

static uint32_t entry_of(const Coordination *a, uint32_t i, uint32_t job) {
    for (uint32_t e = a->first[i]; e < a->first[i + 1]; e++)
        if (a->job[e] == job) return e;
    return COORD_NONE;
}

// The job keeps enough units and no needless claim when entry `in` replaces `out`.
static bool stays_served(const Coordination *a, uint32_t out, uint32_t in) {
    uint32_t need = coord_need(a, out), got = a->give[in], least = got;
    if (a->give[out] >= need) return got >= need;
    for (uint32_t i = 0; i < a->n; i++) {
        uint32_t e = a->claim[i];
        if (e == COORD_NONE || e == out || a->job[e] != a->job[out]) continue;
        got += a->give[e];
        least = a->give[e] < least ? a->give[e] : least;
    }
    return got >= need && got - least < need;
}

// The entry of agent i that replaces another's claim.
static bool in_place(const Coordination *a, uint32_t i, uint32_t claim, uint32_t *entry) {
    *entry = COORD_NONE;
    if (claim == COORD_NONE) return true;
    *entry = entry_of(a, i, a->job[claim]);
    return *entry != COORD_NONE && stays_served(a, claim, *entry);
}

// Payoff of two agents' claims; neither is summed.
static double both_worth(Coordination *a, uint32_t x, uint32_t y) {
    double sum = worth_of(a, x);
    add_pairs(a, x, 1);
    sum += worth_of(a, y);
    add_pairs(a, x, -1);
    return sum;
}

static bool swap_claims(Coordination *a, uint32_t i, uint32_t j) {
    uint32_t mine = a->claim[i], its = a->claim[j], x, y;
    if (mine == its) return false;  // both idle
    if (mine != COORD_NONE && its != COORD_NONE && a->job[mine] == a->job[its]) return false;
    if (!in_place(a, i, its, &x) || !in_place(a, j, mine, &y)) return false;
    add_pairs(a, mine, -1);
    add_pairs(a, its, -1);
    bool better = both_worth(a, x, y) > both_worth(a, mine, its) + 1e-9;
    if (better) {
        a->claim[i] = x;
        a->claim[j] = y;
    }
    add_pairs(a, a->claim[i], 1);
    add_pairs(a, a->claim[j], 1);
    return better;
}

// The most that pairs can add to a claim of agent i.
static double most_of_pairs(const Coordination *a, uint32_t i) {
    double sum = 0;
    for (uint32_t r = 0; r < 2 * a->p->rank; r++) sum += fabs(a->pair_sums[r]);
    return sum * (double)a->reach[i] / (2 * a->scale) * 1.0001;
}

// The open job outside gangs, or idling, with the largest payoff above that of `old`.
static uint32_t best_change(const Coordination *a, uint32_t i, uint32_t old, double *most) {
    uint32_t best = old;
    double   pairs = most_of_pairs(a, i);
    *most = worth_of(a, old) + 1e-9;
    if (*most < 0) {
        *most = 0;
        best = COORD_NONE;
    }
    for (uint32_t e = a->first[i]; e < a->first[i + 1]; e++) {
        if (a->closed[a->job[e]] || a->give[e] < coord_need(a, e)) continue;
        if ((double)a->gain[e] + pairs <= *most) break;  // sorted: no later entry is worth more
        double worth = worth_of(a, e);
        if (!(worth > *most)) continue;
        *most = worth;
        best = e;
    }
    return best;
}

static bool change_claim(Coordination *a, uint32_t i) {
    uint32_t old = a->claim[i];
    double   most;
    if (old != COORD_NONE && a->give[old] < coord_need(a, old)) return false;
    add_pairs(a, old, -1);
    a->claim[i] = best_change(a, i, old, &most);
    add_pairs(a, a->claim[i], 1);
    if (a->claim[i] == old) return false;
    if (old != COORD_NONE) a->closed[a->job[old]] = false;
    if (a->claim[i] != COORD_NONE) a->closed[a->job[a->claim[i]]] = true;
    return true;
}

static void find_closed(Coordination *a) {
    memset(a->closed, 0, a->p->jobs * sizeof *a->closed);
    for (uint32_t i = 0; i < a->n; i++)
        if (a->claim[i] != COORD_NONE) a->closed[a->job[a->claim[i]]] = true;
}

void coord_improve(Coordination *a) {
    bool changed = true;
    find_closed(a);
    for (uint32_t sweep = 0; sweep < SWEEPS && changed; sweep++) {
        changed = false;
        sum_pairs(a);
        for (uint32_t e = 0; e < a->n_edges; e++)
            changed |= swap_claims(a, a->edges[e].a, a->edges[e].b);
        for (uint32_t i = 0; i < a->n; i++) changed |= change_claim(a, i);
    }
}

// Grants the best claim outside gangs; false: none gains.
static bool grant_best(Coordination *a) {
    uint32_t agent = COORD_NONE, entry = COORD_NONE;
    double   best = 0, most;
    for (uint32_t i = 0; i < a->n; i++) {
        if (a->claim[i] != COORD_NONE || a->first[i] == a->first[i + 1]) continue;
        if ((double)a->gain[a->first[i]] + most_of_pairs(a, i) <= best) continue;
        uint32_t e = best_change(a, i, COORD_NONE, &most);
        if (e == COORD_NONE || !(most > best)) continue;
        best = most;
        agent = i;
        entry = e;
    }
    if (agent == COORD_NONE) return false;
    a->claim[agent] = entry;
    a->closed[a->job[entry]] = true;
    add_pairs(a, entry, 1);
    return true;
}

void coord_reprice(Coordination *a) {
    for (uint32_t i = 0; i < a->n; i++)
        if (a->claim[i] != COORD_NONE && a->give[a->claim[i]] >= coord_need(a, a->claim[i]))
            a->claim[i] = COORD_NONE;
    find_closed(a);
    sum_pairs(a);
    while (grant_best(a)) {
    }
    coord_improve(a);
}
