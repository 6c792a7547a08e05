// KubeWatch: the objects of one collection, as a consistent list and the changes after it.
//
// It lists in pages of 500 at one resourceVersion, then watches with bookmarks. A clean end of the
// stream resumes at the last version seen; 410 (HTTP status, or an ERROR event) and a list that
// expired between pages list anew: begin(), put() of everything there is, then end(), and the owner
// drops what was not put. Errors back off from 0.8 s, doubling to 30 s with jitter.
#pragma once

#include "base/rng.h"
#include "kube/kube_api.h"

typedef struct KubeWatchSink {
    void (*begin)(void *self);                       // a list begins
    void (*put)(void *self, const json_t *object);   // listed, added or modified
    void (*gone)(void *self, const json_t *object);  // deleted, or left the selector
    void (*end)(void *self);                         // the list is complete
    void (*missing)(void *self);  // 404: the server has no such collection; asked again each minute
    void *self;
} KubeWatchSink;

typedef struct KubeWatchCounts {
    uint64_t lists, relists, events, bookmarks, errors;
    TimeNs   heard;   // last line or response; 0: none yet
    bool     synced;  // a list was completed and the watch runs or resumes
} KubeWatchCounts;

typedef struct KubeWatch KubeWatch;

// path: "/api/v1/pods"; selector: "fieldSelector=...&labelSelector=..." encoded, or NULL.
MUST_USE Err    kube_watch_start(KubeWatch **out, KubeApi *a, Loop *l, const char *path,
                                 const char *selector, const KubeWatchSink *sink, Rng rng);
void            kube_watch_stop(KubeWatch *w);  // accepts NULL
KubeWatchCounts kube_watch_counts(const KubeWatch *w);
