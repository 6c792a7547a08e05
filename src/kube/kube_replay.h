// KubeReplay: asks the policy again for every recorded decision and compares the plans, byte for
// byte.
#pragma once

#include "kube/kube_recorder.h"

typedef struct KubeReplayRun {  // of one header: a scheduler's time as leader
    KubeRecordHead head;        // strings in the arena
    // Filled by the caller's `choose`.
    const ClusterPolicy   *policy;
    const void            *settings;
    const ClusterProfiles *profiles;
    const TenantShares    *shares;  // NULL: none
} KubeReplayRun;

typedef struct KubeReplayCounts {
    uint64_t lines, headers, decisions, same, outcomes, jobs;
    uint64_t first;             // line of the first plan that differs; 0: none
    TimeNs   from, to;          // Unix time of the first and the last decision
    char    *recorded, *again;  // those plans, in the arena
    bool     full;              // recording ended at the limit of the file
    bool     cut;               // the last line is incomplete: the scheduler was killed
} KubeReplayCounts;

// choose() is called for every header. Plans that differ are no error.
MUST_USE Err kube_replay(const char *path, Err (*choose)(void *self, KubeReplayRun *run, Arena *a),
                         void *self, Arena *a, KubeReplayCounts *out);
MUST_USE Err kube_replay_text(const char *name, const char *text, size_t len,
                              Err (*choose)(void *self, KubeReplayRun *run, Arena *a), void *self,
                              Arena *a, KubeReplayCounts *out);
