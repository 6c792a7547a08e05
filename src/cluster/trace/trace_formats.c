// Public trace formats.
//
// With dates: Microsoft's Philly, and SenseTime's Helios, where jobs may have no GPU.
#include <inttypes.h>
#include <string.h>

#include "base/decimal.h"
#include "cluster/trace/job_trace_int.h"

static Err take_gpu_time(TraceReader *r, const char *text, Job *j) {
    (void)j;
    return trace_number(r, text, JOB_SECOND / 1000, INT64_MAX, &r->ended);
}

// The file states GPU time and both its factors; they have to agree.
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

// Pods of Alibaba's GPU cluster of 2023. Pods that were never scheduled have unknown work; variants
// without times list pods in order, all submitted at 0.

static Err take_cores(TraceReader *r, const char *text, Job *j) {
    int64_t v = 0;
    TRY(trace_number(r, text, 1, INT32_MAX, &v));
    j->cores_milli = (uint32_t)v;
    return ERR_OK;
}

static Err take_memory(TraceReader *r, const char *text, Job *j) {
    int64_t v = 0;
    TRY(trace_number(r, text, 1, INT32_MAX, &v));
    j->memory_mib = (uint32_t)v;
    return ERR_OK;
}

static Err take_qos(TraceReader *r, const char *text, Job *j) {
    static const char *const known[] = {"BE", "LS", "Burstable", "Guaranteed", NULL};
    int                      i = 0;
    while (known[i] != NULL && strcmp(known[i], text) != 0) i++;
    if (known[i] == NULL && text[0] != '\0')
        return trace_bad(r, text, "is no class; give LS, BE, Burstable or Guaranteed");
    if (i == 0) j->class = JOB_BEST;
    j->priority = i == 0 ? 0 : 1;
    return ERR_OK;
}

static Err take_deletion(TraceReader *r, const char *text, Job *j) {
    (void)j;
    return text[0] == '\0' ? ERR_OK : trace_number(r, text, r->unit, JOB_TIME_MAX, &r->ended);
}

static Err take_scheduled(TraceReader *r, const char *text, Job *j) {
    (void)j;
    return text[0] == '\0' ? ERR_OK : trace_number(r, text, r->unit, JOB_TIME_MAX, &r->began);
}

static Err finish_openb(TraceReader *r, Job *j) {
    if (r->began == JOB_UNKNOWN || r->ended == JOB_UNKNOWN) return ERR_OK;
    if (r->ended < r->began)
        return err_set(ERR_INVALID, "%s:%zu: deletion_time: is before scheduled_time", r->csv.name,
                       r->csv.line);
    j->work = r->ended - r->began;
    return ERR_OK;
}

static const TraceColumn openb[] = {
    {"name", true, trace_take_id},
    {"cpu_milli", true, take_cores},
    {"memory_mib", true, take_memory},
    {"num_gpu", true, trace_take_gpus_or_none},
    {"gpu_milli", true, trace_take_gpu_milli},
    {"gpu_spec", false, trace_take_gpu_types},
    {"qos", false, take_qos},
    {"creation_time", false, trace_take_submit},
    {"deletion_time", false, take_deletion},
    {"scheduled_time", false, take_scheduled},
    {0},
};

const TraceFormat trace_openb = {.name = "openb",
                                 .sep = ',',
                                 .header = true,
                                 .unit = JOB_SECOND,
                                 .columns = openb,
                                 .finish = finish_openb};

// Tiresias' job table and its variants: Muri in milliseconds with priorities; Chronus in minutes
// with deadlines (its two weeks end at 20,151); Lucid with the minimum of columns.

static const TraceColumn tiresias[] = {
    {"job_id", true, trace_take_id},
    {"num_gpu", true, trace_take_gpus},
    {"submit_time", true, trace_take_submit},
    {"iterations", false, trace_take_iterations},
    {"model_name", true, trace_take_model},
    {"duration", true, trace_take_work},
    {0},
};

const TraceFormat trace_tiresias = {
    .name = "tiresias", .sep = ',', .header = true, .unit = JOB_SECOND, .columns = tiresias};

static const TraceColumn muri[] = {
    {"job_id", true, trace_take_id},
    {"num_gpu", true, trace_take_gpus},
    {"submit_time", true, trace_take_submit},
    {"iterations", true, trace_take_iterations},
    {"model_name", true, trace_take_model},
    {"duration", true, trace_take_work},
    {"iteration_time", true, trace_take_iteration},
    {"priority", true, trace_take_priority},
    {0},
};

const TraceFormat trace_muri = {
    .name = "muri", .sep = ',', .header = true, .unit = JOB_SECOND / 1000, .columns = muri};

static uint32_t steps_of(const char *list) {
    uint32_t n = 1;
    for (; *list != '\0'; list++) n += *list == '-';
    return n;
}

// "159-189-229-289": times at which the value falls; the first is the deadline.
static Err take_expected(TraceReader *r, const char *text, Job *j) {
    const char *rest = text;
    r->ended = steps_of(text);
    for (TimeNs last = -1; rest != NULL;) {
        char   step[32];
        TimeNs at = 0;
        size_t n = strcspn(rest, "-");
        if (n == 0 || n >= sizeof step) return trace_bad(r, text, "is no list of times; 159-189");
        memcpy(step, rest, n);
        step[n] = '\0';
        TRY(trace_number(r, step, r->unit, JOB_TIME_MAX, &at));
        if (at <= last) return trace_bad(r, text, "does not rise; put the earliest time first");
        if (last < 0) j->deadline = at;
        last = at;
        rest = rest[n] == '-' ? rest + n + 1 : NULL;
    }
    return ERR_OK;
}

static Err take_values(TraceReader *r, const char *text, Job *j) {
    (void)j;
    if (text[0] == '\0' || text[strspn(text, "0123456789.-")] != '\0')
        return trace_bad(r, text, "is no list of values; write 10-8-5");
    r->began = steps_of(text);
    return ERR_OK;
}

static Err take_class(TraceReader *r, const char *text, Job *j) {
    for (JobClass c = JOB_STRICT; c < JOB_CLASSES; c++)
        if (strcmp(job_class_name(c), text) == 0) {
            j->class = c;
            return ERR_OK;
        }
    return trace_bad(r, text, "is no class; give strict, soft or best");
}

static Err finish_chronus(TraceReader *r, Job *j) {
    if (r->began != r->ended)
        return err_set(ERR_INVALID, "%s:%zu: expect_value_list: %lld values for %lld times",
                       r->csv.name, r->csv.line, (long long)r->began, (long long)r->ended);
    if (j->class == JOB_BEST) j->deadline = 0;
    return ERR_OK;
}

static const TraceColumn chronus[] = {
    {"job_id", true, trace_take_id},
    {"user", true, trace_take_tenant},
    {"num_gpu", true, trace_take_gpus_or_none},
    {"submit_time", true, trace_take_submit},
    {"iterations", true, trace_take_iterations},
    {"model_name", true, trace_take_model},
    {"duration", true, trace_take_work},
    {"expect_time_list", true, take_expected},
    {"expect_value_list", true, take_values},
    {"job_type", true, take_class},
    {0},
};

const TraceFormat trace_chronus = {.name = "chronus",
                                   .sep = ',',
                                   .header = true,
                                   .unit = 60 * JOB_SECOND,
                                   .columns = chronus,
                                   .finish = finish_chronus};

static const TraceColumn lucid[] = {
    {"job_id", true, trace_take_id},
    {"gpu_num", true, trace_take_gpus},
    {"submit_time", true, trace_take_submit},
    {"duration", true, trace_take_work},
    {0},
};

const TraceFormat trace_lucid = {
    .name = "lucid", .sep = ',', .header = true, .unit = JOB_SECOND, .columns = lucid};

// Traces with work in iterations: Gavel's two formats, Synergy's, Pollux'.

static Err take_weight(TraceReader *r, const char *text, Job *j) {
    int64_t v = 0;
    TRY(trace_number(r, text, 1, INT32_MAX, &v));
    j->priority = (int32_t)v;
    return ERR_OK;
}

// A deadline as a multiple of the work; -1: none.
static Err take_slo(TraceReader *r, const char *text, Job *j) {
    (void)j;
    int64_t      v = 0;
    DecimalError f = decimal_read(text, 1000000, INT64_C(1000000000000), &v);
    if (f != DECIMAL_OK && f != DECIMAL_NEGATIVE) return trace_bad(r, text, decimal_error_text(f));
    r->factor = f == DECIMAL_OK ? (double)v / 1e6 : 0;
    return ERR_OK;
}

static Err finish_steps(TraceReader *r, Job *j) {
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
    .name = "gavel", .sep = '\t', .unit = JOB_SECOND, .columns = gavel, .finish = finish_steps};

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
    .name = "gavel", .sep = '\t', .unit = JOB_SECOND, .columns = gavel_msr, .finish = finish_steps};

static const TraceColumn synergy[] = {
    {"job_id", true, trace_take_id},      {"model", true, trace_take_model},
    {"arrival", true, trace_take_submit}, {"iterations", true, trace_take_iterations},
    {"gpus", true, trace_take_gpus},      {0},
};

const TraceFormat trace_synergy = {
    .name = "synergy", .sep = ',', .unit = JOB_SECOND, .columns = synergy, .finish = finish_steps};

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
                                  .finish = finish_steps};
