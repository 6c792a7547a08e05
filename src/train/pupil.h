// Pupil: a learned policy of a cluster as training sees it: numbers, and ways to better them.
#pragma once

#include "learn/float_vec.h"
#include "train/cluster_course.h"
#include "train/runs.h"

typedef struct PupilLesson {  // one generation
    const ClusterCourse *course;
    Runs                *runs;
    uint64_t             seed;
    uint32_t             generation, episodes, updates;
    double               weight;  // of the makespan, beside the completion time's 1
} PupilLesson;

typedef struct Pupil Pupil;
typedef Err          PupilLearn(Pupil *p, const PupilLesson *l, Arena *scratch, double *loss);

struct Pupil {
    const ClusterPolicy *policy;
    const void          *settings;
    FloatVec             w;      // the network's numbers
    FloatVec             head;   // the part of them that evolution moves
    const float         *scale;  // [head] how far, see train/evolve.h; NULL: all alike
    FloatVec             state;  // all that learning needs to go on, w included
    const char          *facts;  // lines "key=value\n" about its network
    // What the policy is handed for some numbers; NULL: for its rule without a network.
    const void *(*loaded)(const Pupil *p, const float *w, Arena *a);
    PupilLearn *imitate, *learn;
    void (*moved)(Pupil *p);  // told when w was set from elsewhere
    void *self;
};
