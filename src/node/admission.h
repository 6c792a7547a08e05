// Admission: how much of the machine each tenant may promise to clients, when all of them together
// want more than there is.
//
// What tenants ask for is watched, in cores. As long as that fits, everybody is let in. When it
// does not, cores are shared out: who asks for less than an equal share gets all of it, the others
// an equal part of the rest, but no less than what is kept for them. Who asks for more than its
// part is let in at the rate of its part. So a flood costs the tenant it belongs to, and what is
// let in can be answered in time.
#pragma once

#include <stdbool.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/clock.h"

typedef struct AdmissionTenant {
    double alone_ns;  // core nanoseconds that a request takes on a quiet machine
    double slow;      // times that, as it goes now
    double work_ns;   // the product and what the engine takes; 0: nobody is there
    double wants;     // cores, by what came lately
    double part;      // cores that it may promise
    double saved_ns;  // core nanoseconds of its part that were not used yet
    TimeNs qos_ns, at;
    double kept;  // cores, at least
} AdmissionTenant;

typedef struct Admission {
    AdmissionTenant *of;                   // [n] by number
    uint32_t         n;                    // that there may be
    double           cores;                // that there are
    double           spent_ns, stolen_ns;  // lately: in blocks, and of that to others on the system
    double           share;                // of the cores that are promised
    uint32_t         ended, waited;        // since it was last changed: promises, and those that
                                           // were broken for having waited
    bool   crowded;
    TimeNs corrected;  // not again before that
    TimeNs planned;
} Admission;

MUST_USE Err admission_init(Admission *a, uint32_t tenants, Arena *arena);
// One comes in the place of whoever was there. alone_ns: of a request on one core, as it is told.
void admission_join(Admission *a, uint32_t tenant, double alone_ns, TimeNs qos_ns, uint32_t kept);
void admission_leave(Admission *a, uint32_t tenant);

// A request came: whether it can be promised to be in time. Times do not go back.
bool admission_allows(Admission *a, uint32_t tenant, TimeNs now);
// A part of a request that should take alone_ns on one core took core_ns, all cores together, and
// stolen_ns of that were lost to others on the system.
void admission_note(Admission *a, uint32_t tenant, double alone_ns, double core_ns,
                    double stolen_ns);
// What was promised has ended; broken: it was late because it waited.
void admission_result(Admission *a, bool broken);
