// Job: one job of a trace with its demand, and job lists in the order of submission.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/err.h"

#define JOB_NONE     UINT32_MAX  // no model, no tenant
#define JOB_SECOND   INT64_C(1000000000)
#define JOB_UNKNOWN  INT64_C(-1)                         // work missing in the trace
#define JOB_TIME_MAX (INT64_C(4000000000) * JOB_SECOND)  // two of them still fit into a TimeNs
#define JOB_GPUS_MAX 100000
#define JOB_TYPES    32

typedef enum JobClass {  // meaning of the deadline
#define X(id, name, about) JOB_##id,
#include "cluster/job_class.def"
#undef X
    JOB_CLASSES
} JobClass;

typedef struct Job {
    const char *id;
    TimeNs      submit;
    TimeNs      work;                     // duration with the default demand; or JOB_UNKNOWN
    TimeNs      iteration;                // duration of one with the default demand; 0: unknown
    TimeNs      deadline;                 // since submission; 0: none
    int64_t     iterations;               // 0: unknown
    uint32_t    row;                      // row in the file, from 0
    uint32_t    gpus;                     // gang: all at once or none; 0: CPUs only
    uint32_t    gpus_min, gpus_max;       // of an elastic job, around gpus; 0: not elastic
    uint32_t    gpu_milli;                // thousandths of each GPU; below 1000 only with one GPU
    uint32_t    gpu_types;                // bit t: list.gpu_types[t] is allowed; 0: any type
    uint32_t    cores_milli, memory_mib;  // default demand of the gang; 0: the share of its GPUs
    uint32_t    model, tenant;            // index in the list's names; or JOB_NONE
    int32_t     priority;                 // larger is more important
    const uint64_t
        *servers;  // bit i: server i is allowed, and equal sets share one pointer; NULL: any
    JobClass class;
} Job;

typedef struct RowsLeftOut {  // rows of a trace that are not jobs that ran
    const char *reason;
    uint32_t    rows;
} RowsLeftOut;

typedef struct JobList {
    Job         *at;  // [n] by submission, ties in file order
    uint32_t     n;
    uint32_t     n_models, n_tenants, n_gpu_types;
    const char **models, **tenants, **gpu_types;
    TimeNs       origin;  // Unix time of time 0; 0: the trace has no dates
    const char  *name, *format;

    const RowsLeftOut *left_out;  // [n_left_out]
    uint32_t           n_left_out;
} JobList;

typedef struct ElasticRange {  // which jobs are made elastic: whole GPUs from min to max; max 0:
                               // none
    uint32_t min, max;
    double   share;  // of these jobs, drawn by their rows in the file
} ElasticRange;

// "1..8", or "1..8,0.5" for a share of the jobs.
MUST_USE Err elastic_range_read(const char *text, ElasticRange *out);
void         job_list_make_elastic(JobList *l, const ElasticRange *x);

MUST_USE Err job_list_sort(JobList *l, Arena *scratch);  // rewinds scratch

const char *job_class_name(JobClass c);
const char *job_model(const JobList *l, const Job *j);   // "" when it has none
const char *job_tenant(const JobList *l, const Job *j);  // "" when it has none
double      job_gpu_seconds(const Job *j);               // work x GPUs; 0 when unknown
uint32_t    job_list_left_out(const JobList *l);         // rows, for all reasons
