// Course: how something goes over time, in a fixed number of spans that widen as time goes on.
#pragma once

#include "cluster/run.h"

typedef struct Course {
    ClusterUse now;    // since `until`
    TimeNs     until;  // all before it is summed up
    TimeNs     origin, span;
    ClusterUse sums[CLUSTER_SPANS];  // times nanoseconds
    uint32_t   n;
} Course;

void course_open(Course *c, TimeNs origin);
void course_go(Course *c, TimeNs to);  // what is now has been so since the last call
// Averages; writes what it has into at[CLUSTER_SPANS].
ClusterUse course_close(Course *c, ClusterUse *at, uint32_t *n, TimeNs *span);
