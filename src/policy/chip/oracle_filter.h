// OracleFilter: any policy, relieved of the requests that are not to be kept: they are dropped as
// they come, and it never sees them wait.
#pragma once

#include "contract/chip.h"
#include "policy/chip/oracle_fate.h"

typedef struct OracleFilter {  // its settings
    const ChipPolicy *inner;
    const void       *settings, *loaded;  // of inner
    const uint8_t    *fates;              // [request]
} OracleFilter;

// In no list: the oracle alone knows it. Whoever is filtered thinks, or does not.
const ChipPolicy *oracle_filter(const ChipPolicy *inner);
