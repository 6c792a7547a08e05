// OracleVerdict: what is to become of a request.
#pragma once

#include "base/carve.h"
#include "contract/chip.h"

typedef enum OracleVerdict {
    ORACLE_REQUIRED,  // it is to be in time
    ORACLE_OPTIONAL,  // it may be, if that costs nobody anything
    ORACLE_REJECTED,
} OracleVerdict;

// OracleAdmit: which requests to keep when there are too many, on a package taken as one machine
// that can do a bit of everything at once.

typedef struct OracleAdmit {
    const ChipRequest *requests;  // [n] by arrival
    uint32_t           n;
    float             *work;     // [n] of each, in nanoseconds of the whole package
    float             *left;     // [n] of those pending
    uint32_t          *pending;  // [n] by deadline
    uint8_t           *lost;     // [n] given up
} OracleAdmit;

void oracle_admit_carve(OracleAdmit *a, const ChipRequest *requests, uint32_t n, Carve *from);

// Works by deadline at `speed`; when that cannot hold, gives up the largest of those in the way.
// What was begun before it was given up is left out from the start in another pass. Fills in lost.
void oracle_admit(OracleAdmit *a, double speed);

// OracleFilter: any policy, relieved of the requests that are not to be kept: they are dropped as
// they come, and it never sees them wait.

typedef struct OracleFilter {  // its settings
    const ChipPolicy *inner;
    const void       *settings, *loaded;  // of inner
    const uint8_t    *verdicts;           // [request]
} OracleFilter;

// In no list: the oracle alone knows it. Whoever is filtered thinks, or does not.
const ChipPolicy *oracle_filter(const ChipPolicy *inner);

// OracleRank: a list scheduler that is told beforehand what to make of every request.
//
// Tasks go by deadline, those that are to be in time before the spare ones; what is to be lost, or
// cannot be in time any more, is dropped. Bandwidth goes by the same order, through throttles: the
// first get all that they ask for, and what would get too little is not started.

typedef struct OracleListParams {  // its settings
    const uint8_t *verdicts;       // [request]
    double safety_factor;  // hope is lost when the rest would take this many times its least
    double patience;  // in favour of a busy unit against a free one, see unit_timeline_first_to_end
    double speed;     // least part of its full speed that a layer is started with
    double price;     // of what a layer takes of the package, against the time until it ends
    double size;      // weight of the time left to compute beside the deadline: short first
} OracleListParams;

extern const ChipPolicy oracle_list_scheduler;  // in no list: the oracle alone knows it

// OracleSearch: the best way through a trace that is known beforehand, found by rehearsing it.

typedef struct OracleCandidate {  // either the list scheduler, or a policy without some requests
    bool             is_list;
    OracleListParams plan;
    OracleFilter     filter;
} OracleCandidate;

typedef struct OracleSearch {
    const ChipSetup *setup;
    OracleAdmit      admit;
    uint8_t         *verdicts, *in_time;            // [n] of the rehearsal at hand
    uint8_t         *best_verdicts, *best_in_time;  // [n] of the best one
    OracleCandidate  candidate;                     // of the best one, with best_verdicts
    uint32_t         best;                          // how many are in time by it
    uint32_t         left;                          // simulations that may still be made
    bool             any;                           // one was
    Rng              rng;
} OracleSearch;

void oracle_search_carve(OracleSearch *s, const ChipSetup *setup, Carve *from);

// Rehearses online with nobody left out, then searches. verdicts of filters need not be set.
void oracle_search_run(OracleSearch *s, const OracleFilter *online, uint32_t n,
                       uint32_t simulations);

const ChipPolicy *oracle_candidate_policy(const OracleCandidate *w);
const void       *oracle_candidate_settings(const OracleCandidate *w);
