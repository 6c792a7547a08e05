// Oracle internals: the search for the best schedule of a trace that is known in advance, and the
// two policies that it simulates.
//
//     oracle_search.c          which requests to reject; candidates, simulated and improved
//     oracle_list_scheduler.c  a list scheduler that knows the verdict on every request
//     oracle_filter.c          any online policy without the rejected requests
#pragma once

#include "base/carve.h"
#include "contract/chip.h"

typedef enum OracleVerdict {  // on a request
    ORACLE_REQUIRED,          // to be in time
    ORACLE_OPTIONAL,          // in time only if that delays no required request
    ORACLE_REJECTED,
} OracleVerdict;

// The package as one machine on which any mix of requests runs at once.
typedef struct OracleAdmit {
    const ChipRequest *requests;  // [n] by arrival
    uint32_t           n;
    float             *work;      // [n] in nanoseconds of the whole package
    float             *left;      // [n] of pending requests
    uint32_t          *pending;   // by deadline
    uint8_t           *rejected;  // [n]
} OracleAdmit;

void oracle_admit_carve(OracleAdmit *a, const ChipRequest *requests, uint32_t n, Carve *from);

// Serves by deadline at `speed`; where a deadline cannot be met, rejects the request with the most
// work left up to there. Requests rejected after they were started are left out from the start in
// another pass. Fills in rejected.
void oracle_admit(OracleAdmit *a, double speed);

typedef struct OracleFilter {  // settings of the filter
    const ChipPolicy *inner;
    const void       *settings, *loaded;  // of inner
    const uint8_t    *verdicts;           // [request]
} OracleFilter;

// Drops requests that are not required as they arrive; inner never sees them. Not in chip.def.
const ChipPolicy *oracle_filter(const ChipPolicy *inner);

// Tasks start by deadline, required ones first; rejected and infeasible ones are dropped. Bandwidth
// goes by the same order, by throttles: the first get their whole demand, and a layer that would
// get too little is not started.
typedef struct OracleListParams {
    const uint8_t *verdicts;       // [request]
    double         safety_factor;  // see feasibility.h
    double         patience;       // factor in favour of a busy unit
    double         speed;          // least share of its full speed at which a layer is started
    double         price;          // weight of a layer's work, at the package's prices
    double         size;           // weight of the remaining time in the key
} OracleListParams;

extern const ChipPolicy oracle_list_scheduler;  // not in chip.def

typedef struct OracleCandidate {  // the list scheduler, or a filtered online policy
    bool             is_list;
    OracleListParams list;
    OracleFilter     filter;
} OracleCandidate;

typedef struct OracleSearch {
    const ChipSetup *setup;
    OracleAdmit      admit;
    uint8_t         *verdicts, *in_time;            // [n] of the current simulation
    uint8_t         *best_verdicts, *best_in_time;  // [n] of the best one
    OracleCandidate  candidate;                     // the best, with best_verdicts
    uint32_t         best;                          // requests in time by it
    uint32_t         left;                          // simulations that may still be run
    bool             any;                           // one was run
    Rng              rng;
} OracleSearch;

void oracle_search_carve(OracleSearch *s, const ChipSetup *setup, Carve *from);

// Simulates the online policies with all requests, then searches with so many simulations more. The
// verdicts of `online` are filled in.
void oracle_search_run(OracleSearch *s, const OracleFilter *online, uint32_t n,
                       uint32_t simulations);

const ChipPolicy *oracle_candidate_policy(const OracleCandidate *c);
const void       *oracle_candidate_settings(const OracleCandidate *c);
