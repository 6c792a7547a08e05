// Job: what a user asks a cluster of GPUs to do, and lists of jobs in the order they come.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/clock.h"

#define JOB_NONE     UINT32_MAX  // no model, no tenant
#define JOB_SECOND   INT64_C(1000000000)
#define JOB_UNKNOWN  INT64_C(-1)                         // work that the trace does not tell
#define JOB_TIME_MAX (INT64_C(4000000000) * JOB_SECOND)  // two of them still fit into a TimeNs
#define JOB_GPUS_MAX 100000
#define JOB_TYPES    32

typedef enum JobClass {  // what its deadline means
#define X(id, name, about) JOB_##id,
#include "cluster/job_class.def"
#undef X
    JOB_CLASSES
} JobClass;

typedef struct Job {
    const char *id;
    TimeNs      submit;
    TimeNs      work;        // how long it takes with its default demand; or JOB_UNKNOWN
    TimeNs      iteration;   // one iteration with its default demand; 0: not known
    TimeNs      deadline;    // since submission; 0: none
    int64_t     iterations;  // 0: not known
    uint32_t    row;         // its place in the file, from 0
    uint32_t    gpus;        // all at once or none; 0: it runs on CPUs alone
    uint32_t    gpu_milli;   // of each GPU: 1000 is whole; less only with one GPU
    uint32_t    gpu_types;   // bit t: list.gpu_types[t] will do; 0: any will
    uint32_t    cores_milli, memory_mib;  // by default, the whole gang's; 0: the share of its GPUs
    uint32_t    model, tenant;            // in the list's names; or JOB_NONE
    int32_t     priority;                 // larger is more urgent
    JobClass class;
} Job;

typedef struct JobList {
    Job         *at;  // [n] by time of submission, in file order where that is the same
    uint32_t     n;
    uint32_t     n_models, n_tenants, n_gpu_types;
    const char **models, **tenants, **gpu_types;
    TimeNs       origin;  // Unix time of our time 0; 0: the trace has no dates
    const char  *name, *format;
} JobList;

MUST_USE Err job_list_sort(JobList *l, Arena *scratch);  // scratch is given back

const char *job_class_name(JobClass c);
const char *job_model(const JobList *l, const Job *j);   // "" when it has none
const char *job_tenant(const JobList *l, const Job *j);  // "" when it has none
double      job_gpu_seconds(const Job *j);  // work times its part of GPUs; 0 when unknown
