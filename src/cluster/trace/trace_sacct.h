// SacctRow: columns of Slurm's accounting, and the demand of a job that a row states.
#pragma once

#include "cluster/trace/job_trace_int.h"

typedef enum SacctColumn {
    SACCT_JOB_ID,
    SACCT_JOB_ID_RAW,
    SACCT_SUBMIT,
    SACCT_START,
    SACCT_END,
    SACCT_ELAPSED,
    SACCT_ELAPSED_RAW,
    SACCT_STATE,
    SACCT_N_NODES,
    SACCT_ALLOC_NODES,
    SACCT_ALLOC_CPUS,
    SACCT_N_CPUS,
    SACCT_REQ_CPUS,
    SACCT_REQ_MEM,
    SACCT_ALLOC_TRES,
    SACCT_REQ_TRES,
    SACCT_ALLOC_GRES,
    SACCT_REQ_GRES,
    SACCT_ACCOUNT,
    SACCT_USER,
    SACCT_JOB_NAME,
    SACCT_PRIORITY,
} SacctColumn;

bool sacct_is_blank(const char *text);  // NULL, empty, or Slurm's words for "not known"

// GPUs, cores and memory of this row: allocated; where the row lacks them, requested.
MUST_USE Err sacct_take_demand(TraceReader *r, Job *j);
