// Pod: a Kubernetes pod, read from JSON: what it requests, when it ran, and the job it is part of.
#pragma once

#include <jansson.h>

#include "cluster/job.h"

typedef struct Pod {
    const char *space, *name, *uid;
    const char *group;     // its job, unique: several pods with the same one form a gang
    const char *job;       // the name of that job
    const char *app;       // label app.kubernetes.io/name, or app; NULL: none
    const char *gpu_type;  // of its node selector; NULL: any
    const char *unread;    // a resource that is a part of a GPU; NULL: none
    TimeNs      created, began, ended;  // Unix time, or JOB_UNKNOWN
    uint32_t    gpus, cores_milli, memory_mib;
    int32_t     priority;
    bool        live;  // waits or runs
} Pod;

// place: names the pod's place in errors. Strings are copied into the arena.
MUST_USE Err pod_read(const char *place, const json_t *doc, Arena *a, Pod *out);

// "500m", "2", "2Gi", "1e3": rounded up to whole 1/unit, at most `most`.
MUST_USE Err quantity_read(const char *text, int64_t unit, int64_t most, int64_t *out);

// A string member along the path of keys ("metadata", "name", NULL); NULL: it is not there.
const char *json_path_text(const json_t *doc, const char *const *path);
