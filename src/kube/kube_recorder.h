// KubeRecorder: what the scheduler decided and from what, as JSON lines: a header, then decisions,
// outcomes and ended jobs.
//
// A decision has the changes of the picture since the one before and the plan, so that the policy
// can be asked again (KubeReplay). An ended job has its demand and the work it did: the lines are a
// job trace too (format kube-records).
#pragma once

#include "base/str_buf.h"
#include "kube/kube_view.h"

typedef struct KubeRecordHead {  // all that a decision depends on besides pictures
    const char        *policy, *scheduler;
    const char *const *sets;  // [n_sets] KEY=VALUE of the policy
    uint32_t           n_sets;
    const char        *profiles;         // NULL: default
    const char        *quota, *weights;  // of tenants; NULL: none
    KubeRules          rules;
} KubeRecordHead;

typedef struct KubeRecordJob {                           // ended, or its last pod is gone
    const char *namespace_name, *name, *model, *tenant;  // model: NULL or "": none
    TimeNs      submit, start, end;                      // Unix time; start 0: never
    double      work_s;                                  // done, at the speed of the default demand
    uint32_t    gpus, gpu_milli, cores_milli, memory_mib, preemptions;
    int32_t     priority;
    bool        succeeded;
} KubeRecordJob;

typedef struct KubeRecordOutcome {  // of a job in a plan, or of a call that it led to
    const char *what;               // "bind", "evict", "resize"; "started", "refused", ...
    const char *namespace_name, *pod, *node;  // node NULL: none
    const char *result;                       // "done", or what went wrong
    bool        done;
    TimeNs      at, took;  // took: from the decision; 0: not known
} KubeRecordOutcome;

typedef struct KubeRecordView {
    const KubePicture *picture;
    uint64_t           setups;  // made since the engine began: the policy began anew with each
    uint64_t           alive_ns, busy_ns;  // of the view
} KubeRecordView;

typedef struct KubeRecorder KubeRecorder;

// Appends to path. Beyond `most` bytes (0: 768 MiB) nothing more is recorded but a last line that
// says so: a record with gaps could not be replayed.
MUST_USE Err kube_recorder_open(KubeRecorder **out, const char *path, size_t most,
                                const KubeRecordHead *h);
// The decisions that follow begin with nothing, as at the start of the file.
void kube_recorder_header(KubeRecorder *r, const KubeRecordHead *h);
void kube_recorder_decision(KubeRecorder *r, const KubeRecordView *v, const ClusterAction *plan,
                            uint32_t n);
void kube_recorder_outcome(KubeRecorder *r, const KubeRecordOutcome *o);
void kube_recorder_job(KubeRecorder *r, const KubeRecordJob *j);
void kube_recorder_flush(KubeRecorder *r);  // to the file; call it each second or so
bool kube_recorder_full(const KubeRecorder *r);
MUST_USE Err kube_recorder_close(KubeRecorder *r);  // accepts NULL; reports write errors

// The plan as a decision's line has it.
void kube_record_plan(StrBuf *s, const ClusterAction *plan, uint32_t n);
