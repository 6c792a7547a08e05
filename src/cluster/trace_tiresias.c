// Tiresias' table of jobs and what others made of it: Muri in milliseconds, with priorities;
// Chronus with deadlines, in minutes (its two weeks end at 20,151); Lucid with the bare minimum.
#include <string.h>

#include "base/decimal.h"
#include "cluster/trace_int.h"

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

// "159-189-229-289": its value falls at each; the first is the deadline.
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
