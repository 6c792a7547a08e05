// OracleSearch: the best way through a trace that is known beforehand, found by rehearsing it.
#pragma once

#include "policy/chip/oracle_admit.h"
#include "policy/chip/oracle_filter.h"
#include "policy/chip/oracle_rank.h"

typedef struct OracleWay {  // either the list scheduler, or a policy without some requests
    bool         ranked;
    OraclePlan   plan;
    OracleFilter filter;
} OracleWay;

typedef struct OracleSearch {
    const ChipSetup *setup;
    OracleAdmit      admit;
    uint8_t         *fates, *in_time;            // [n] of the rehearsal at hand
    uint8_t         *best_fates, *best_in_time;  // [n] of the best one
    OracleWay        way;                        // of the best one, with best_fates
    uint32_t         best;                       // how many are in time by it
    uint32_t         left;                       // rehearsals that may still be made
    bool             any;                        // one was
    Rng              rng;
} OracleSearch;

void oracle_search_carve(OracleSearch *s, const ChipSetup *setup, Carve *from);

// Rehearses contenders with nobody left out, then searches. fates of filters need not be set.
void oracle_search_run(OracleSearch *s, const OracleFilter *contenders, uint32_t n,
                       uint32_t rehearsals);

const ChipPolicy *oracle_way_policy(const OracleWay *w);
const void       *oracle_way_settings(const OracleWay *w);
