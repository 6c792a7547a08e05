// OracleAdmit: which requests to keep when there are too many, on a package taken as one machine
// that can do a bit of everything at once.
#pragma once

#include "contract/chip.h"
#include "policy/carve.h"

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
