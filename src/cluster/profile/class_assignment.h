// ClassAssignment: which class of profiles each job of a trace is of.
#pragma once

#include "base/rng.h"
#include "cluster/job.h"
#include "cluster/profile/profiles.h"

typedef struct ClassAssignment {
    uint32_t *class_of;               // [jobs of the list]
    uint32_t  jobs[PROFILE_CLASSES];  // of each class
    uint32_t  by_name, by_alias;      // jobs whose model is a class, or another name of one
    uint32_t  by_model;               // whose model is unknown: drawn once for the model
    uint32_t  drawn;                  // that have no model: drawn for the job
} ClassAssignment;

// mix: "res50:3 bert:1" for what is drawn; NULL: the classes' own weights. The draw hangs on the
// seed and the job's row in its file, or its model's name, so a window of a trace keeps its
// classes.
MUST_USE Err class_assignment_draw(const ClusterProfiles *p, const JobList *l, const char *mix,
                                   Rng rng, Arena *a, ClassAssignment *out);
