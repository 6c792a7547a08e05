// KubeWatch: the objects of one collection, as a consistent list and the changes after it.
//
// It lists in pages of 500 at one resourceVersion, then watches with bookmarks. A clean end of the
// stream resumes at the last version seen; 410 (HTTP status, or an ERROR event) and a list that
// expired between pages list anew: begin(), put() of everything there is, then end(), and the owner
// drops what was not put. begin() may come again before end(): that list starts over. Errors back
// off from 0.8 s, doubling to 30 s with jitter. The sink may stop the watch.
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

typedef struct KubeWatchPace {    // 0: the default
    TimeNs   first, most, reset;  // delay after an error: 0.8 s, 30 s; first again after 2 min
    TimeNs   missing;             // between questions for a missing collection: 1 min
    uint32_t watch_s;             // time-out of a watch: random from this to its double: 300
    TimeNs   silence;             // beyond that time-out without a line: 30 s
    uint32_t page;                // objects of a list's page: 500
} KubeWatchPace;

typedef struct KubeWatch KubeWatch;

// path: "/api/v1/pods"; selector: "fieldSelector=...&labelSelector=..." encoded, or NULL.
MUST_USE Err    kube_watch_start(KubeWatch **out, KubeApi *a, Loop *l, const char *path,
                                 const char *selector, const KubeWatchSink *sink, Rng rng);
void            kube_watch_pace(KubeWatch *w, const KubeWatchPace *p);  // directly after start
void            kube_watch_stop(KubeWatch *w);                          // accepts NULL
KubeWatchCounts kube_watch_counts(const KubeWatch *w);
const char     *kube_watch_fault(const KubeWatch *w);  // the last error, "" if there was none
