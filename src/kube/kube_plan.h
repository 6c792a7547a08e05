// KubePlan: a policy's plan as steps on pods: binds, evictions, resizes. Every pod is checked with
// kube_fit and assumed before the next one is looked at; a gang starts whole or not at all.
//
// A start that does not fit is refused and counted, never carried out in part: the plan was made
// for what the contract can say, and the node decides. Steps refer to jobs and pods, which are
// valid until the next update or change of the state.
#pragma once

#include "kube/kube_fit.h"
#include "kube/kube_jobs.h"

typedef enum KubeAct { KUBE_ACT_NONE, KUBE_ACT_BIND, KUBE_ACT_ALL } KubeAct;

typedef enum KubePreemption {
    KUBE_PREEMPT_NONE,
    KUBE_PREEMPT_PRIORITY,  // gangs of lower priority give way, as the engine chooses
    KUBE_PREEMPT_POLICY,    // as the policy chooses, never for a lower priority
} KubePreemption;

typedef struct KubePlanRules {
    KubeAct           act;
    KubePreemption    preemption;
    ClusterStopLimits stops;
    bool              resize;        // pods/resize exists
    TimeNs            resize_least;  // between two resizes of a job
} KubePlanRules;

typedef enum KubeStepKind { KUBE_STEP_BIND, KUBE_STEP_RESIZE, KUBE_STEP_EVICT } KubeStepKind;

typedef struct KubeStep {
    KubeStepKind kind;
    KubeJob     *job;
    KubeMember  *member;
    KubeNode    *node;                // BIND
    int64_t      cores_milli, bytes;  // RESIZE: the pod's total requests
    KubeJob     *for_job;             // EVICT
} KubeStep;

typedef enum KubeNoteKind {
    KUBE_NOTE_STARTED,  // as planned
    KUBE_NOTE_MOVED,    // on other nodes than planned
    KUBE_NOTE_OWN,      // placed by the engine itself
    KUBE_NOTE_REFUSED,  // does not fit
    KUBE_NOTE_EVICTED,
    KUBE_NOTE_NOT_EVICTED,  // the plan's preemption is against the rules
    KUBE_NOTE_RESIZED,
    KUBE_NOTES
} KubeNoteKind;

typedef struct KubeNote {
    KubeNoteKind       kind;
    const KubeJob     *job, *for_job;
    const KubeVerdict *why;  // REFUSED
    const char        *text;
} KubeNote;

typedef struct KubePlan {
    KubeState           *state;
    KubeJobs            *jobs;
    const KubePlanRules *rules;
    KubeNode *const     *nodes;
    uint32_t             n_nodes;
    uint64_t             version;  // of the state when the decision began
    KubeStep            *steps;    // [n]
    uint32_t             n, room;
    bool                 all_own;            // no policy: the cluster has no GPUs
    uint64_t             notes[KUBE_NOTES];  // counts, for ever
    uint32_t            *gpus_left;          // [slices] scratch
    uint32_t             gpus_left_room;
    void (*note)(void *self, const KubeNote *n);  // NULL: not called
    void *self;
} KubePlan;

void kube_plan_init(KubePlan *p, KubeState *s, KubeJobs *x, const KubePlanRules *r);
void kube_plan_finish(KubePlan *p);

void         kube_plan_open(KubePlan *p);  // no steps
MUST_USE Err kube_plan_apply(KubePlan *p, const ClusterView *v, const ClusterAction *a, uint32_t n);
// At most `most` jobs, by priority, then the oldest first: with `reserved` those for which room was
// made, else jobs that the contract cannot say, and pods that are missing in gangs that run.
MUST_USE Err kube_plan_own(KubePlan *p, bool reserved, uint32_t most);
// Resizes of pods that run now to what their start gave them.
MUST_USE Err kube_plan_wanted(KubePlan *p);
// Room for jobs that wait although jobs of lower priority run, at most for `most` of them.
MUST_USE Err kube_plan_preempt(KubePlan *p, uint32_t most);

// In the other files: a step more; the start of a job on slices (n 0: anywhere).
MUST_USE Err kube_plan_add(KubePlan *p, KubeStep s);
void         kube_plan_tell(KubePlan *p, KubeNote n);
MUST_USE Err kube_plan_start(KubePlan *p, KubeJob *j, const ClusterSlice *s, uint32_t n,
                             bool *started, bool *moved, KubeVerdict *why);
MUST_USE Err kube_plan_evict(KubePlan *p, KubeJob *victim, KubeJob *for_job);
bool         kube_plan_may_evict(const KubePlan *p, const KubeJob *victim, const KubeJob *for_job);
