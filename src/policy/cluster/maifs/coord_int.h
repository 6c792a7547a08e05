// Coordination, internally: agents with a possible claim, their entries, the graph, and claims in
// progress. coordination.c: set-up and result; coord_graph.c: graph and messages; coord_claims.c:
// arbitration and gangs; coord_search.c: local search and pair payoffs.
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/rng.h"
#include "policy/cluster/maifs/auction.h"
#include "policy/cluster/maifs/coordination.h"

enum {
    CHOICES = 24,        // of an agent that messages are about: idle first, then claims
    CHOICES_PLAIN = 20,  // any claims; the rest is kept for claims in gangs
};

typedef struct CoordEdge {
    uint32_t a, b;  // a < b
} CoordEdge;

typedef struct CoordArc {  // one direction of an edge
    uint32_t to, back;     // agent; the arc in the other direction
} CoordArc;

typedef struct CoordMatch {  // of a neighbour's choice with one of ours
    float    worth;
    uint32_t of;  // our choice on the same job, or 0
} CoordMatch;

struct Coordination {
    CoordParams         params;
    CoordStats          stats;
    const CoordProblem *p;  // valid during a decision
    uint32_t            most_agents, most_jobs;
    Rng                 rng;
    uint32_t            n;          // agents with a possible claim, largest gain first
    uint32_t           *agent_ids;  // [n] in the problem
    double              scale;      // the largest gain
    uint64_t           *keys;       // for sorting

    // Entries: possible claims, by agent, largest gain first.
    uint32_t *first;  // [n + 1]
    uint16_t *job, *give;
    float    *gain;        // over idling, divided by `scale`
    float    *score;       // gain plus messages
    float    *factors;     // [entries][2][rank] left, then right, of pair payoffs
    float    *reach;       // [n] the largest factor of an agent's entries
    float    *idle_score;  // [n]
    bool     *incomplete;  // claimed, but the job did not get enough units

    uint32_t  n_gangs;     // entries that do not serve their job alone
    uint32_t *gang_first;  // [jobs + 1]
    uint32_t *gang_agent;  // of those entries, by job
    uint32_t *gang_entry;
    uint32_t *single_first;  // entries that do, as a market for the auction
    uint32_t *single_entry;
    uint16_t *single_job;
    float    *single_gain;
    Auction   auction;
    double   *profit;  // [n] of an agent in the auction
    bool     *taken;   // [n] by a built gang

    uint32_t *n_choices;  // [n] with idle
    uint32_t *choice;     // [n][CHOICES] entries; [0] is idle
    float    *sum;        // [n][CHOICES] gain plus messages
    float    *chance;     // [n][CHOICES] probability of the claim

    uint32_t    n_edges, n_arcs;
    CoordEdge  *edges;
    uint32_t   *arc_first;  // [n + 1]
    CoordArc   *arcs;
    float      *message;      // [arcs][CHOICES] by choice of its target
    CoordMatch *match;        // [arcs][CHOICES] by choice of its target
    uint32_t   *rival_first;  // [jobs + 1] agents that may claim a job, likeliest first
    uint32_t   *rival;
    uint32_t   *n_near;  // [n] neighbours so far
    uint32_t   *near;    // [n][degree]
    uint8_t    *at_job;  // [jobs] choice of the current agent

    uint32_t *bid, *claim, *best;         // [n] entries, or COORD_NONE
    uint32_t *got;                        // [jobs] units claimed
    double   *worth;                      // [jobs] sum of claimed gains
    bool     *closed;                     // [jobs] served
    uint32_t *pick;                       // [n] entries of a gang
    double    pair_sums[2 * COORD_RANK];  // of left, then of right, over all claims
    double    best_value;
};

static inline bool coord_has(const Coordination *a, CoordParts part) {
    return (a->params.parts & part) != 0;
}

static inline uint16_t coord_need(const Coordination *a, uint32_t entry) {
    return a->p->need[a->job[entry]];
}

void coord_graph(Coordination *a);          // choices, edges and arcs
void coord_pass_messages(Coordination *a);  // fills `score` and `idle_score`

// Arbitration of bids by `parts`, with re-bids if that is one of them; fills `claim`.
void coord_arbitrate(Coordination *a, uint32_t parts);
void coord_gangs(Coordination *a);  // after an auction of single entries; fills `claim`

double coord_value(Coordination *a);  // of `claim`, all pairs included, divided by `scale`

// Local search: neighbours swap claims and agents change theirs while the payoff grows.
void coord_improve(Coordination *a);

// Claims outside gangs anew, one after the other: the best first, then all others re-priced.
void coord_reprice(Coordination *a);

// PackedKey: a float and a tie-breaker in one integer that sorts like the pair.

// Sorts the largest x first, of equals the smallest tie. x is not NaN.
static inline uint64_t packed_key_descending(float x, uint32_t tie) {
    uint32_t bits;
    x += 0.0f;  // -0 becomes 0
    memcpy(&bits, &x, sizeof bits);
    bits ^= bits >> 31 ? UINT32_MAX : UINT32_C(1) << 31;
    return (uint64_t)~bits << 32 | tie;
}

static inline uint32_t packed_key_tie(uint64_t key) { return (uint32_t)key; }

// Merge sort without branches on keys. keys has room for 2 n; the second half is scratch.
static inline void packed_keys_sort(uint64_t *keys, uint32_t n) {
    uint64_t *from = keys, *to = keys + n;
    for (uint32_t run = 1; run < n; run *= 2) {
        for (uint32_t at = 0; at < n; at += 2 * run) {
            uint32_t middle = at + run < n ? at + run : n,
                     end = middle + run < n ? middle + run : n;
            uint32_t x = at, y = middle, out = at;
            while (x < middle && y < end) {
                bool second = from[y] < from[x];
                to[out++] = second ? from[y] : from[x];
                x += !second;
                y += second;
            }
            while (x < middle) to[out++] = from[x++];
            while (y < end) to[out++] = from[y++];
        }
        uint64_t *swap = from;
        from = to;
        to = swap;
    }
    if (from != keys) memcpy(keys, from, n * sizeof *keys);
}
