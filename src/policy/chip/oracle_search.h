// OracleSearch: the best way through a trace that is known beforehand, found by rehearsing it.
#pragma once

#include "policy/chip/oracle_admit.h"
#include "policy/chip/oracle_rank.h"

typedef struct OracleSearch {
    const ChipSetup *setup;
    OracleAdmit      admit;
    uint8_t         *fates, *in_time;            // [n] of the rehearsal at hand
    uint8_t         *best_fates, *best_in_time;  // [n] of the best one
    OraclePlan       plan;                       // of the best one, with best_fates
    uint32_t         best;                       // how many are in time with it
    uint32_t         left;                       // rehearsals that may still be made
    Rng              rng;
} OracleSearch;

void oracle_search_carve(OracleSearch *s, const ChipSetup *setup, Carve *from);

// How many of a policy's requests are in time, of those that count.
uint32_t oracle_search_rehearse(OracleSearch *s, const ChipPolicy *p, const void *settings);

void oracle_search_run(OracleSearch *s, uint32_t rehearsals);
