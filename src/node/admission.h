// Admission: per-tenant rate limits when the offered load exceeds the machine.
//
// Each tenant's offered load is tracked in cores. While the sum fits, every request is admitted.
// When it does not, cores are divided max-min fairly: a tenant below an equal share gets all it
// asks for, the others an equal part of the rest, but at least their reserved cores. A tenant above
// its part is admitted at the rate of its part. So a flood costs only the tenant that sends it, and
// admitted requests can meet their deadlines.
#pragma once

#include <stdbool.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/clock.h"

typedef struct AdmissionTenant {
    double alone_ns;  // core-ns of a request on an otherwise idle machine
    double slow;      // measured slow-down factor
    double work_ns;   // alone_ns x slow plus the engine's overhead; 0: empty slot
    double wants;     // offered load in cores, exponentially averaged
    double part;      // cores it may promise
    double saved_ns;  // token bucket: unused core-ns of its part
    TimeNs qos_ns, at;
    double kept;  // reserved cores
} AdmissionTenant;

typedef struct Admission {
    AdmissionTenant *of;           // [n] by number
    uint32_t         n;            // capacity
    double           cores;        // of the machine
    double   spent_ns, stolen_ns;  // recent: in blocks, and of that stolen by other processes
    double   share;                // share of the cores that may be promised
    uint32_t ended, waited;        // since the last change of share: promises ended, and
                                   // promises broken by queueing
    bool   crowded;
    TimeNs corrected;  // earliest time of the next change of share
    TimeNs planned;
} Admission;

MUST_USE Err admission_init(Admission *a, uint32_t tenants, Arena *arena);
// Puts a tenant into a slot. alone_ns: declared time of a request on one core.
void admission_join(Admission *a, uint32_t tenant, double alone_ns, TimeNs qos_ns, uint32_t kept);
void admission_leave(Admission *a, uint32_t tenant);

// A request arrived: whether it is admitted. t must not decrease.
bool admission_allows(Admission *a, uint32_t tenant, TimeNs now);
// A block expected to take alone_ns on one core took core_ns summed over cores, of which
// stolen_ns went to other processes.
void admission_note(Admission *a, uint32_t tenant, double alone_ns, double core_ns,
                    double stolen_ns);
// An admitted request ended; broken: it was late because of queueing.
void admission_result(Admission *a, bool broken);
