// OracleRank: a list scheduler that is told beforehand what to make of every request.
//
// Tasks go by deadline, those that are to be in time before the spare ones; what is to be lost, or
// cannot be in time any more, is dropped. Bandwidth goes by the same order, through throttles: the
// first get all that they ask for, and what would get too little is not started.
#pragma once

#include "contract/chip.h"
#include "policy/chip/oracle_fate.h"

typedef struct OraclePlan {   // its settings
    const uint8_t *fates;     // [request]
    double         ease;      // hope is lost when the rest would take this many times its least
    double         patience;  // in favour of a busy unit against a free one, see fleet_soonest
    double         speed;     // least part of its full speed that a layer is started with
    double         price;  // of what a layer takes of the package, against the time until it ends
    double         size;   // weight of the time left to compute beside the deadline: short first
} OraclePlan;

extern const ChipPolicy oracle_rank;  // in no list: the oracle alone knows it
