// Why: what kept a job waiting in a run, moment by moment.
//
// After every decision the job is tried on what is left, as policies place gangs: on one server if
// any is wide enough, else on whole ones and a rest. If it would fit, the queue or the policy
// held it. If it would fit without those who were started while it waited, they did. Otherwise the
// reason is what was missing with those who ran before: GPUs, GPUs together, cores, memory, a type.
#pragma once

#include "cluster/sim/cluster_run.h"

typedef enum WhyReason {
#define X(id, name, about) WHY_##id,
#include "cluster/sim/why_reason.def"
#undef X
    WHY_REASONS
} WhyReason;

typedef struct WhyBlocker {  // a job that stood in its way
    uint32_t  job;           // in the list of jobs
    WhyReason as;            // BEHIND, STOPPED or HEAD
    TimeNs    ns;            // for how long
} WhyBlocker;

typedef struct WhyLack {   // GPUs in thousandths, cores in thousandths, memory in MiB; by reason
    int64_t first, least;  // when it came; at best. -1: it was not for that
} WhyLack;

typedef struct Why Why;

// Of one job. ends: of the same run before, to tell whom a policy put first; NULL: by arrival. The
// arena is not the run's.
MUST_USE Err why_open(const ClusterRun *run, uint32_t job, const ClusterEnd *ends, Arena *own,
                      Why **out);
// For ClusterRun.after; self is the Why.
void why_note(void *self, const ClusterView *v, const ClusterAction *plan, uint32_t n);

const char *why_name(WhyReason r);
const char *why_about(WhyReason r);

TimeNs    why_waited(const Why *w);            // in all; is the sum over reasons
TimeNs    why_for(const Why *w, WhyReason r);  // because of one
WhyReason why_most(const Why *w);              // the one that took longest
// GPUS: in all. SCATTERED: on the server that has most. CORES, MEMORY: where there are GPUs.
WhyLack           why_lack(const Why *w, WhyReason r);
const WhyBlocker *why_blockers(const Why *w, uint32_t *n);  // those in its way longest first
