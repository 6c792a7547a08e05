// Logs with dates: Microsoft's Philly, and SenseTime's Helios, where jobs may have no GPU at all.
#include <inttypes.h>

#include "cluster/trace_int.h"

static Err take_gpu_time(TraceReader *r, const char *text, Job *j) {
    (void)j;
    return trace_number(r, text, JOB_SECOND / 1000, INT64_MAX, &r->ended);
}

// The product is there twice: once in the file, once as its factors.
static Err finish_philly(TraceReader *r, Job *j) {
    double said = (double)r->ended, is = (double)j->work / 1000 * j->gpus;
    double slack = 1e-9 * is + 1e3;  // both in microseconds
    if (r->ended >= 0 && (said > is + slack || said < is - slack))
        return err_set(ERR_INVALID,
                       "%s:%zu: gpu_time: %.1f s is not duration times num_gpus, %.1f s",
                       r->csv.name, r->csv.line, said / 1e6, is / 1e6);
    return ERR_OK;
}

static const TraceColumn philly[] = {
    {"timestamp", true, trace_take_date}, {"duration", true, trace_take_work},
    {"num_gpus", true, trace_take_gpus},  {"gpu_time", true, take_gpu_time},
    {"cluster", true, trace_take_tenant}, {0},
};

const TraceFormat trace_philly = {.name = "philly",
                                  .sep = ',',
                                  .header = true,
                                  .dated = true,
                                  .unit = JOB_SECOND,
                                  .columns = philly,
                                  .finish = finish_philly};

static const TraceColumn helios[] = {
    {"job_id", true, trace_take_id},
    {"vc", true, trace_take_tenant},
    {"gpu_num", true, trace_take_gpus_or_none},
    {"cpu_num", true, trace_take_cores},
    {"node_num", true, NULL},
    {"state", true, NULL},
    {"submit_time", true, trace_take_date},
    {"duration", true, trace_take_work},
    {0},
};

const TraceFormat trace_helios = {.name = "helios",
                                  .sep = ',',
                                  .header = true,
                                  .dated = true,
                                  .unit = JOB_SECOND,
                                  .columns = helios};
