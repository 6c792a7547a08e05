// Pods of Alibaba's GPU cluster of 2023. What never was scheduled has no work that anybody knows;
// re-mixes without times are pods in an order, all submitted at 0.
#include <string.h>

#include "cluster/trace_int.h"

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

static Err finish(TraceReader *r, Job *j) {
    if (r->began == JOB_UNKNOWN || r->ended == JOB_UNKNOWN) return ERR_OK;
    if (r->ended < r->began)
        return err_set(ERR_INVALID, "%s:%zu: deletion_time: is before scheduled_time", r->csv.name,
                       r->csv.line);
    j->work = r->ended - r->began;
    return ERR_OK;
}

static const TraceColumn columns[] = {
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
                                 .columns = columns,
                                 .finish = finish};
