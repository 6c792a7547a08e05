// Line: tasks by rank, the least first; equal ones in the order in which they began to wait. Many
// lines can share the room of one, for a task stands in one line only.
#pragma once

#include "contract/cluster.h"
#include "policy/carve.h"

typedef struct Rank {
    double first, second;
} Rank;

typedef struct LineNode {
    Rank     rank;
    uint64_t entry;
    uint32_t left, right;
} LineNode;

typedef struct Line {
    LineNode *nodes;  // [n_slots]
    uint32_t  head;   // slot; CLUSTER_NONE: empty
} Line;

static inline int rank_compare(Rank a, Rank b) {
    if (a.first != b.first) return a.first < b.first ? -1 : 1;
    return a.second < b.second ? -1 : a.second > b.second;
}

void     line_push(Line *l, uint32_t slot, Rank rank, uint64_t entry);
uint32_t line_pop(Line *l);  // the head, or CLUSTER_NONE

static inline bool line_before(const LineNode *a, const LineNode *b) {
    int c = rank_compare(a->rank, b->rank);
    return c != 0 ? c < 0 : a->entry < b->entry;
}
