// From scores to claims: arbitration with re-bids, and built gangs.
//
// Arbitration grants a job to the best-scoring agents until it has what it needs; a job without
// enough units is granted to none, and losers may bid again for the remaining jobs.
#include <math.h>
#include <string.h>

#include "learn/activation.h"
#include "policy/cluster/maifs/coord_int.h"

// -log of an exponential: added to scores, the largest sum is a draw by their softmax.
static float gumbel(Rng *rng) {
    return 0 - repro_log(0 - repro_log((rng_unit(rng) * 0.9999f + 0.00005f)));
}

// The best claim that beats idling, or one drawn of those.
static uint32_t bid_of(Coordination *a, uint32_t i, bool drawn) {
    uint32_t best = COORD_NONE;
    float    most = -INFINITY;
    for (uint32_t e = a->first[i]; e < a->first[i + 1]; e++) {
        float score = a->score[e];
        if (!(score > a->idle_score[i]) || a->closed[a->job[e]] || a->incomplete[e]) continue;
        if (drawn) score += a->params.draw * gumbel(&a->rng);
        if (!(score > most)) continue;
        best = e;
        most = score;
    }
    return best;
}

static uint32_t collect_bids(Coordination *a, uint32_t parts) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < a->n; i++) {
        if (a->claim[i] != COORD_NONE) continue;
        a->bid[i] = bid_of(a, i, (parts & COORD_DRAWN) != 0);
        if (a->bid[i] == COORD_NONE) continue;
        float rank =
            (parts & COORD_UNRANKED) != 0 ? 0 - (float)a->agent_ids[i] : a->score[a->bid[i]];
        a->keys[n++] = packed_key_descending(rank, i);
    }
    packed_keys_sort(a->keys, n);
    return n;
}

// Grants the jobs that the bids are for, all open until now.
static void grant(Coordination *a, uint32_t n) {
    memset(a->got, 0, a->p->jobs * sizeof *a->got);
    memset(a->worth, 0, a->p->jobs * sizeof *a->worth);
    for (uint32_t x = 0; x < n; x++) {
        uint32_t i = packed_key_tie(a->keys[x]), e = a->bid[i], k = a->job[e];
        if (a->got[k] >= a->p->need[k]) continue;
        a->claim[i] = e;
        a->got[k] += a->give[e];
        a->worth[k] += (double)a->gain[e];
    }
    for (uint32_t x = n; x > 0; x--) {  // last first: drops claims that others made needless
        uint32_t i = packed_key_tie(a->keys[x - 1]), e = a->claim[i];
        if (e == COORD_NONE || a->got[a->job[e]] < a->give[e] + (uint32_t)coord_need(a, e))
            continue;
        a->got[a->job[e]] -= a->give[e];
        a->worth[a->job[e]] -= (double)a->gain[e];
        a->claim[i] = COORD_NONE;
    }
}

// Withdraws claims on jobs without enough units or with a loss in all.
static void withdraw_unserved(Coordination *a, uint32_t n) {
    for (uint32_t x = 0; x < n; x++) {
        uint32_t i = packed_key_tie(a->keys[x]), e = a->bid[i], k = a->job[e];
        bool     enough = a->got[k] >= a->p->need[k];
        if (enough && (a->worth[k] > 0 || a->p->rank > 0)) {
            a->closed[k] = true;
        } else {
            a->incomplete[e] = true;
            a->claim[i] = COORD_NONE;
        }
    }
}

void coord_arbitrate(Coordination *a, uint32_t parts) {
    uint32_t rebids = (parts & COORD_REBIDS) != 0 ? a->params.rebids : 0;
    memset(a->claim, 0xff, a->n * sizeof *a->claim);
    memset(a->closed, 0, a->p->jobs * sizeof *a->closed);
    memset(a->incomplete, 0, a->first[a->n] * sizeof *a->incomplete);
    for (uint32_t round = 0; round <= rebids; round++) {
        uint32_t n = collect_bids(a, parts);
        if (n == 0) return;
        grant(a, n);
        withdraw_unserved(a, n);
    }
}

// Built gangs. The auction of single claims prices every agent's time and every job; a gang is
// worth its members' gains beyond those prices. The most valuable gang is built first; the
// remaining agents run another auction.

static double net_of(const Coordination *a, uint32_t g) {
    return (double)a->gain[a->gang_entry[g]] - a->profit[a->gang_agent[g]];
}

// The free entry with the most net gain per unit still needed; an index in the job's list.
static uint32_t next_of(const Coordination *a, uint32_t k, uint32_t left, const bool *in) {
    uint32_t best = COORD_NONE;
    double   most = -INFINITY;
    for (uint32_t g = a->gang_first[k]; g < a->gang_first[k + 1]; g++) {
        uint32_t i = a->gang_agent[g], e = a->gang_entry[g];
        if (a->taken[i] || in[g]) continue;
        uint32_t units = a->give[e] < left ? a->give[e] : left;
        double   each = net_of(a, g) / units;
        if (each > most) {
            most = each;
            best = g;
        }
    }
    return best;
}

// Drops needless members, most expensive first.
static uint32_t drop_needless(const Coordination *a, uint32_t *pick, uint32_t n, uint32_t spare,
                              bool *in) {
    for (;;) {
        uint32_t worst = COORD_NONE;
        double   least = INFINITY;
        for (uint32_t x = 0; x < n; x++) {
            uint32_t e = a->gang_entry[pick[x]];
            if (a->give[e] > spare || net_of(a, pick[x]) >= least) continue;
            least = net_of(a, pick[x]);
            worst = x;
        }
        if (worst == COORD_NONE) return n;
        spare -= a->give[a->gang_entry[pick[worst]]];
        in[pick[worst]] = false;
        memmove(pick + worst, pick + worst + 1, (n - worst - 1) * sizeof *pick);
        n--;
    }
}

// Replacing member x by `in` keeps enough units and makes no member needless.
static bool may_swap(const Coordination *a, const uint32_t *pick, uint32_t n, uint32_t x,
                     uint32_t in) {
    uint32_t got = a->give[a->gang_entry[in]], least = got, need = coord_need(a, a->gang_entry[in]);
    for (uint32_t y = 0; y < n; y++) {
        uint32_t give = a->give[a->gang_entry[pick[y]]];
        if (y == x) continue;
        got += give;
        least = give < least ? give : least;
    }
    return got >= need && got - least < need;
}

// Replaces members by more valuable free entries.
static void swap(const Coordination *a, uint32_t k, uint32_t *pick, uint32_t n, bool *in) {
    for (uint32_t x = 0; x < n; x++)
        for (uint32_t g = a->gang_first[k]; g < a->gang_first[k + 1]; g++) {
            if (in[g] || a->taken[a->gang_agent[g]] || net_of(a, g) <= net_of(a, pick[x])) continue;
            if (!may_swap(a, pick, n, x, g)) continue;
            in[pick[x]] = false;
            in[g] = true;
            pick[x] = g;
        }
}

// Builds a gang for a job; returns its value beyond the auction's prices, or -INFINITY.
static double gang_of(Coordination *a, uint32_t k, uint32_t *pick, uint32_t *n) {
    uint32_t need = a->p->need[k], got = 0;
    double   worth = 0 - a->auction.price[k];
    bool    *in = a->incomplete;  // by index in the gang lists
    *n = 0;
    memset(in + a->gang_first[k], 0, a->gang_first[k + 1] - a->gang_first[k]);
    while (got < need) {
        uint32_t g = next_of(a, k, need - got, in);
        if (g == COORD_NONE) return -INFINITY;
        in[g] = true;
        pick[(*n)++] = g;
        got += a->give[a->gang_entry[g]];
    }
    *n = drop_needless(a, pick, *n, got - need, in);
    swap(a, k, pick, *n, in);
    for (uint32_t x = 0; x < *n; x++) worth += net_of(a, pick[x]);
    return worth;
}

// A gang's value only falls while others take agents, so an old value is an upper bound: a job is
// recomputed only while its bound is the largest.
static bool make_best(Coordination *a, double *bound) {
    for (;;) {
        uint32_t best = 0, n;
        for (uint32_t k = 1; k < a->p->jobs; k++)
            if (bound[k] > bound[best]) best = k;
        if (!(bound[best] > 0)) return false;
        double worth = gang_of(a, best, a->pick, &n);
        bool   stands = worth >= bound[best];
        bound[best] = stands ? -INFINITY : worth;
        if (!stands) continue;
        for (uint32_t x = 0; x < n; x++) {
            uint32_t i = a->gang_agent[a->pick[x]];
            a->claim[i] = a->gang_entry[a->pick[x]];
            a->taken[i] = true;
        }
        a->closed[best] = true;
        return true;
    }
}

void coord_gangs(Coordination *a) {
    Market   m = {a->n, a->p->jobs, a->single_first, a->single_job, a->single_gain};
    double  *bound = a->worth;
    uint32_t n;
    memset(a->claim, 0xff, a->n * sizeof *a->claim);
    memset(a->taken, 0, a->n * sizeof *a->taken);
    memset(a->closed, 0, a->p->jobs * sizeof *a->closed);
    for (uint32_t i = 0; i < a->n; i++) a->profit[i] = auction_profit(&a->auction, &m, i);
    for (uint32_t k = 0; k < a->p->jobs; k++)
        bound[k] = a->gang_first[k] < a->gang_first[k + 1] ? gang_of(a, k, a->pick, &n) : -INFINITY;
    while (make_best(a, bound)) {
    }
    for (uint32_t k = 0; k < a->p->jobs; k++) a->auction.price[k] = a->closed[k] ? INFINITY : 0;
    auction_run(&a->auction, &m, a->taken, (double)a->params.step);
    for (uint32_t i = 0; i < a->n; i++)
        if (a->auction.won[i] != AUCTION_NONE) a->claim[i] = a->single_entry[a->auction.won[i]];
}
