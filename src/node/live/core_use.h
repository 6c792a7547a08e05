// CoreUse: the core time that a tenant used lately; older use counts less.
#pragma once

#include "base/clock.h"

typedef struct CoreUse {
    double ns;  // at that time
    TimeNs at;
} CoreUse;

void   core_use_add(CoreUse *u, double ns, TimeNs now);
double core_use_ns(const CoreUse *u, TimeNs now);
