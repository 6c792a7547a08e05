// Why: the reason a job waits in a run, from decision to decision.
//
// After every decision the placement module tries the job on what is left free. If it fits, the
// queue order or the policy holds it back. If it would fit without the jobs started while it
// waited, those are the reason. Otherwise the reason is the missing resource: GPUs, GPUs on one
// server, cores, memory, GPU type or room beside co-runners.
#pragma once

#include "cluster/sim/cluster_run.h"

typedef enum WhyReason {
#define X(id, name, about) WHY_##id,
#include "cluster/sim/why_reason.def"
#undef X
    WHY_REASONS
} WhyReason;

typedef struct WhyBlocker {  // a job in the way of the explained one
    uint32_t  job;           // index in the list of jobs
    WhyReason as;            // BEHIND, STOPPED or HEAD
    TimeNs    ns;            // time it was in the way
} WhyBlocker;

typedef struct WhyLack {   // missing amount: GPUs and cores in thousandths, memory in MiB
    int64_t first, least;  // at submission; smallest seen. -1: this was not the reason
} WhyLack;

typedef struct Why Why;

// Explains one job. ends: of the same run before, which tell what order the policy chose; NULL:
// order of arrival. `own` must not be the run's arena.
MUST_USE Err why_open(const ClusterRun *run, uint32_t job, const ClusterEnd *ends, Arena *own,
                      Why **out);
// A ClusterRun.after callback; self is the Why.
void why_note(void *self, const ClusterView *v, const ClusterAction *plan, uint32_t n);

const char *why_name(WhyReason r);
const char *why_about(WhyReason r);

TimeNs    why_waited(const Why *w);            // in all: the sum over reasons
TimeNs    why_for(const Why *w, WhyReason r);  // for one reason
WhyReason why_most(const Why *w);              // the reason with the most time
// GPUS: in all. SCATTERED: on the server with the most. CORES, MEMORY: where GPUs are free.
WhyLack           why_lack(const Why *w, WhyReason r);
const WhyBlocker *why_blockers(const Why *w, uint32_t *n);  // longest first
