#include "node/live/core_use.h"

#include <math.h>

enum { MEMORY_NS = 1000000000 };

double core_use_ns(const CoreUse *u, TimeNs now) {
    return now > u->at ? u->ns * exp(-(double)(now - u->at) / MEMORY_NS) : u->ns;
}

void core_use_add(CoreUse *u, double ns, TimeNs now) {
    u->ns = core_use_ns(u, now) + ns;
    if (now > u->at) u->at = now;
}
