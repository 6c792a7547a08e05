// Coordination's parts: agents that could claim something, in an order that does not depend on
// their numbers; what they could claim; the graph that joins them; and claims while they are
// settled.
#pragma once

#include "policy/cluster/maifs/coordination.h"
#include "policy/cluster/maifs/auction.h"

enum {
    CHOICES = 12,       // that messages are about: idling, then claims
    CHOICES_PLAIN = 9,  // of them; the others are kept for gangs
};

enum { COORD_WIDE = 2 * COORD_RANK };

typedef struct CoordEdge {
    uint32_t a, b;  // a < b
} CoordEdge;

typedef struct CoordArc {  // one direction of an edge
    uint32_t to, back;     // agent; the arc in the other direction
} CoordArc;

typedef struct CoordMatch {  // of a partner's choice
    float    worth;
    uint32_t of;  // the choice on the same job, or 0
} CoordMatch;

typedef struct CoordNeighbor {  // a likely partner
    float    weight;
    uint32_t agent;
} CoordNeighbor;

struct Coordination {
    CoordParams         params;
    CoordStats          tale;
    const CoordProblem *p;  // while a decision lasts
    uint32_t            most_agents, most_jobs, most_arcs;
    uint32_t            n;      // agents that could claim something, the one who gains most first
    uint32_t           *who;    // [n] their numbers in the problem
    double              scale;  // the largest gain
    uint64_t           *keys;   // for sorting

    // Entries: what they could claim, by agent, the largest gain first.
    uint32_t *first;  // [n + 1]
    uint16_t *job, *give;
    float    *gain;   // over idling, as a part of `scale`
    float    *score;  // gain with what the others told
    float    *rest;   // [n] score of idling
    bool     *vain;   // claimed, and not enough others came

    uint32_t  n_gangs;     // entries that do not serve their job alone
    uint32_t *gang_first;  // [jobs + 1]
    uint32_t *gang_agent;  // by job, of those entries
    uint32_t *gang_entry;
    uint32_t *single_first;  // the other entries, as a market
    uint32_t *single_entry;
    uint16_t *single_job;
    float    *single_gain;
    Auction   auction;
    double   *profit;  // [n] elsewhere, of agents that a gang would take
    bool     *taken;   // [n] by gangs

    uint32_t *n_choices;       // [n] idling included
    uint32_t *choice;          // [n][CHOICES] entries; the first is none
    float    *side;            // [n][2 * rank][CHOICES] left, then right of the problem
    float    *sum, *best_sum;  // [n][CHOICES] gain and messages

    uint32_t    n_edges, n_arcs;
    CoordEdge  *edges;
    uint32_t   *arc_first;  // [n + 1]
    CoordArc   *arcs;
    float      *message;  // [arcs][CHOICES] by choices of its end
    CoordMatch *match;    // [arcs][CHOICES] by choices of its end
    float *pair;    // [arcs][CHOICES][CHOICES] by choices of its start, then of its end; with rank
    float *chance;  // [n][stride] of claiming a job
    float *mean, *mean_across;        // [n][COORD_WIDE] of sides over its claims
    float *product, *product_across;  // [n][COORD_WIDE^2] of products of two of them
    CoordNeighbor *near;              // [n][degree]
    uint32_t      *n_near;
    uint8_t       *at_job;  // [jobs] choice of the agent in hand

    uint32_t *wish, *claim, *best;  // [n] entries, or COORD_NONE
    uint32_t *got;                  // [jobs] units claimed
    double   *worth;                // [jobs] sum of gains claimed
    bool     *closed;               // [jobs] served
    uint32_t *pick, *best_pick;     // [n] agents of a gang
    double    best_value;
};

static inline uint16_t coord_need(const Coordination *a, uint32_t entry) {
    return a->p->need[a->job[entry]];
}

// What both claims are worth together besides, as a part of `scale`.
double coord_pair(const Coordination *a, uint32_t agent, uint16_t job, uint32_t other,
                  uint16_t its);

void coord_graph(Coordination *a);          // choices, edges and arcs
void coord_pass_messages(Coordination *a);  // messages; fills `score` and `rest`

// By descending score; fills `claim`. With re-bids, or only once.
void coord_arbitrate(Coordination *a, uint32_t rebids);
void coord_gangs(Coordination *a);  // fills `claim`; after an auction of what single claims serve

// Partners exchange claims, and agents change theirs, while that is worth more.
void coord_improve(Coordination *a);
