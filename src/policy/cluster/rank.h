// Rank: the guests of an inn in the order in which they would go for others.
#pragma once

#include "policy/cluster/inn.h"

typedef struct RankLine {
    float   density;
    uint8_t guest;
} RankLine;

typedef struct Rank {  // guests, as victims are looked for
    uint64_t mask[INN_GUESTS];
    uint32_t cores_milli[INN_GUESTS], memory_mib[INN_GUESTS];  // that each needs at least
    int64_t  cores_left, memory_left;                          // when all have that
    RankLine line[INN_GUESTS];                                 // who may have to go, least first
    uint32_t n, n_line;
} Rank;

uint64_t rank_all(uint32_t gpus);                    // a mask of so many
uint64_t rank_lowest(uint64_t mask, uint32_t gpus);  // so many of it

void rank_open(Rank *r, const Inn *h, const Want *wants);

// Who has to go when a task gets so many whole GPUs and its lowest rung: the least worthy until
// there is room; then those stay, the worthiest first, who could as well. False: it cannot be.
bool rank_victims(const Rank *r, const Inn *h, const Want *w, uint32_t gpus, bool evict,
                  InnLeave *out, uint64_t *mask);
