// ClassAssignment: the profile class of each job of a trace.
#pragma once

#include "base/rng.h"
#include "cluster/job.h"
#include "cluster/profile/profiles.h"

typedef struct ClassAssignment {
    uint32_t *class_of;               // [jobs]
    uint32_t  jobs[PROFILE_CLASSES];  // of each class
    uint32_t  by_name, by_alias;      // jobs with a class name as model, or an alias
    uint32_t  by_model;               // with an unknown model: drawn once per model
    uint32_t  drawn;                  // without a model: drawn per job
} ClassAssignment;

// mix: weights for drawn classes, as "res50:3 bert:1"; NULL: the classes' own. A draw depends on
// the seed and the job's row or model name only, so a window of a trace keeps its classes.
MUST_USE Err class_assignment_draw(const ClusterProfiles *p, const JobList *l, const char *mix,
                                   Rng rng, Arena *a, ClassAssignment *out);
