// Traces that count iterations and leave the time to a profile: Gavel's two, Synergy's, Pollux'.
#include "base/decimal.h"
#include "cluster/trace_int.h"

static Err take_weight(TraceReader *r, const char *text, Job *j) {
    int64_t v = 0;
    TRY(trace_number(r, text, 1, INT32_MAX, &v));
    j->priority = (int32_t)v;
    return ERR_OK;
}

// A deadline in multiples of the time alone; -1 for none.
static Err take_slo(TraceReader *r, const char *text, Job *j) {
    (void)j;
    int64_t      v = 0;
    DecimalFault f = decimal_read(text, 1000000, INT64_C(1000000000000), &v);
    if (f != DECIMAL_OK && f != DECIMAL_NEGATIVE) return trace_bad(r, text, decimal_text(f));
    r->factor = f == DECIMAL_OK ? (double)v / 1e6 : 0;
    return ERR_OK;
}

static Err finish(TraceReader *r, Job *j) {
    TRY(trace_work_by_rate(r, j));
    double due = r->factor * (double)j->work;
    if (r->factor > 0 && j->work > 0 && due < (double)JOB_TIME_MAX) {
        j->deadline = (TimeNs)due;
        j->class = JOB_STRICT;
    }
    return ERR_OK;
}

static const TraceColumn gavel[] = {
    {"job_type", true, trace_take_model},
    {"command", true, NULL},
    {"working_directory", true, NULL},
    {"num_steps_arg", true, NULL},
    {"needs_data_dir", true, NULL},
    {"total_steps", true, trace_take_iterations},
    {"scale_factor", true, trace_take_gpus},
    {"priority_weight", true, take_weight},
    {"SLO", true, take_slo},
    {"arrival_time", true, trace_take_submit},
    {0},
};

const TraceFormat trace_gavel = {
    .name = "gavel", .sep = '\t', .unit = JOB_SECOND, .columns = gavel, .finish = finish};

static const TraceColumn gavel_msr[] = {
    {"job_type", true, trace_take_model},
    {"command", true, NULL},
    {"num_steps_arg", true, NULL},
    {"needs_data_dir", true, NULL},
    {"total_steps", true, trace_take_iterations},
    {"arrival_time", true, trace_take_submit},
    {"scale_factor", true, trace_take_gpus},
    {0},
};

const TraceFormat trace_gavel_msr = {
    .name = "gavel", .sep = '\t', .unit = JOB_SECOND, .columns = gavel_msr, .finish = finish};

static const TraceColumn synergy[] = {
    {"job_id", true, trace_take_id},      {"model", true, trace_take_model},
    {"arrival", true, trace_take_submit}, {"iterations", true, trace_take_iterations},
    {"gpus", true, trace_take_gpus},      {0},
};

const TraceFormat trace_synergy = {
    .name = "synergy", .sep = ',', .unit = JOB_SECOND, .columns = synergy, .finish = finish};

static const TraceColumn pollux[] = {
    {"name", true, trace_take_id},
    {"time", true, trace_take_submit},
    {"application", true, trace_take_model},
    {"num_replicas", true, trace_take_gpus},
    {"batch_size", true, NULL},
    {0},
};

const TraceFormat trace_pollux = {.name = "pollux",
                                  .sep = ',',
                                  .header = true,
                                  .unit = JOB_SECOND,
                                  .columns = pollux,
                                  .finish = finish};
