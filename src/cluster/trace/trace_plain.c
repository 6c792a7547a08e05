// Our own format: a header, four required columns and optional ones.
#include <string.h>

#include "base/decimal.h"
#include "cluster/trace/job_trace_int.h"

static Err take_work(TraceReader *r, const char *text, Job *j) {
    return text[0] == '\0' ? ERR_OK : trace_take_work(r, text, j);
}

static Err take_memory(TraceReader *r, const char *text, Job *j) {
    int64_t v = 0;
    if (text[0] == '\0') return ERR_OK;
    TRY(trace_number(r, text, 1024, INT32_MAX, &v));
    j->memory_mib = (uint32_t)v;
    return ERR_OK;
}

static Err take_deadline(TraceReader *r, const char *text, Job *j) {
    return text[0] == '\0' ? ERR_OK : trace_number(r, text, r->unit, JOB_TIME_MAX, &j->deadline);
}

static Err take_class(TraceReader *r, const char *text, Job *j) {
    for (JobClass c = 0; c < JOB_CLASSES; c++)
        if (strcmp(job_class_name(c), text) == 0) {
            j->class = c;
            return ERR_OK;
        }
    return text[0] == '\0' ? ERR_OK
                           : trace_bad(r, text, "is no class; give plain, strict, soft or best");
}

static Err take_least(TraceReader *r, const char *text, Job *j) {
    int64_t v = 0;
    if (text[0] == '\0') return ERR_OK;
    TRY(trace_number(r, text, 1, JOB_GPUS_MAX, &v));
    j->gpus_min = (uint32_t)v;
    return ERR_OK;
}

static Err take_most(TraceReader *r, const char *text, Job *j) {
    int64_t v = 0;
    if (text[0] == '\0') return ERR_OK;
    TRY(trace_number(r, text, 1, JOB_GPUS_MAX, &v));
    j->gpus_max = (uint32_t)v;
    return ERR_OK;
}

// One of the two bounds is enough; equal ones are no elastic job.
static Err finish(TraceReader *r, Job *j) {
    if (j->gpus_min == 0 && j->gpus_max == 0) return ERR_OK;
    if (j->gpus_min == 0) j->gpus_min = j->gpus;
    if (j->gpus_max == 0) j->gpus_max = j->gpus;
    if (j->gpus == 0 || j->gpu_milli < 1000 || j->gpus_min > j->gpus || j->gpus_max < j->gpus)
        return err_set(ERR_PARSE,
                       "%s:%zu: gpus_min, gpus_max: %u to %u GPUs; give bounds around its %u "
                       "whole GPUs",
                       r->csv.name, r->csv.line, j->gpus_min, j->gpus_max, j->gpus);
    if (j->gpus_min == j->gpus_max) j->gpus_min = j->gpus_max = 0;
    return ERR_OK;
}

static const TraceColumn columns[] = {
    {"job", true, trace_take_id},
    {"submit_s", true, trace_take_submit},
    {"duration_s", true, take_work},
    {"gpus", true, trace_take_gpus_or_none},
    {"gpu_milli", false, trace_take_gpu_milli},
    {"cores", false, trace_take_cores},
    {"memory_gb", false, take_memory},
    {"model", false, trace_take_model},
    {"tenant", false, trace_take_tenant},
    {"priority", false, trace_take_priority},
    {"gpu_type", false, trace_take_gpu_types},
    {"iterations", false, trace_take_iterations},
    {"iteration_s", false, trace_take_iteration},
    {"deadline_s", false, take_deadline},
    {"class", false, take_class},
    {"gpus_min", false, take_least},
    {"gpus_max", false, take_most},
    {0},
};

const TraceFormat trace_plain = {.name = "plain",
                                 .sep = ',',
                                 .header = true,
                                 .strict = true,
                                 .unit = JOB_SECOND,
                                 .columns = columns,
                                 .finish = finish};

static void put_types(FILE *f, const JobList *l, const Job *j) {
    bool first = true;
    for (uint32_t t = 0; t < l->n_gpu_types; t++) {
        if ((j->gpu_types >> t & 1) == 0) continue;
        if (!first) (void)fputc('|', f);
        (void)fputs(l->gpu_types[t], f);
        first = false;
    }
}

enum { REQUIRED = 4, COLUMNS = sizeof columns / sizeof *columns - 1 };

// The job has a value in an optional column.
static bool has_value(const Job *j, int column) {
    switch (column) {
    case 4: return j->gpu_milli != 1000 && j->gpus > 0;
    case 5: return j->cores_milli > 0;
    case 6: return j->memory_mib > 0;
    case 7: return j->model != JOB_NONE;
    case 8: return j->tenant != JOB_NONE;
    case 9: return j->priority != 0;
    case 10: return j->gpu_types != 0;
    case 11: return j->iterations > 0;
    case 12: return j->iteration > 0;
    case 13: return j->deadline > 0;
    case 14: return j->class != JOB_PLAIN;
    case 15:
    case 16: return j->gpus_max > 0;
    default: return true;
    }
}

static void put_text(FILE *f, const char *text) {
    if (text[0] != '\0') csv_put(f, text);
}

static void put(FILE *f, const JobList *l, const Job *j, int column) {
    switch (column) {
    case 0: csv_put(f, j->id); break;
    case 1: decimal_put(f, j->submit, JOB_SECOND); break;
    case 2:
        if (j->work >= 0) decimal_put(f, j->work, JOB_SECOND);
        break;
    case 3: decimal_put(f, j->gpus, 1); break;
    case 4: decimal_put(f, j->gpu_milli, 1); break;
    case 5: decimal_put(f, j->cores_milli, 1000); break;
    case 6: decimal_put(f, j->memory_mib, 1024); break;
    case 7: put_text(f, job_model(l, j)); break;
    case 8: put_text(f, job_tenant(l, j)); break;
    case 9: decimal_put(f, j->priority, 1); break;
    case 10: put_types(f, l, j); break;
    case 11: decimal_put(f, j->iterations, 1); break;
    case 12: decimal_put(f, j->iteration, JOB_SECOND); break;
    case 13: decimal_put(f, j->deadline, JOB_SECOND); break;
    case 15: decimal_put(f, j->gpus_min, 1); break;
    case 16: decimal_put(f, j->gpus_max, 1); break;
    default: (void)fputs(job_class_name(j->class), f); break;
    }
}

void trace_write(FILE *f, const JobList *l) {
    bool used[COLUMNS] = {true, true, true, true};
    for (int c = REQUIRED; c < COLUMNS; c++)
        for (uint32_t i = 0; i < l->n && !used[c]; i++) used[c] = has_value(&l->at[i], c);
    for (int c = 0; c < COLUMNS; c++)
        if (used[c]) (void)fprintf(f, "%s%s", c > 0 ? "," : "", columns[c].name);
    (void)fputc('\n', f);
    for (uint32_t i = 0; i < l->n; i++) {
        for (int c = 0; c < COLUMNS; c++) {
            if (!used[c]) continue;
            if (c > 0) (void)fputc(',', f);
            if (has_value(&l->at[i], c)) put(f, l, &l->at[i], c);
        }
        (void)fputc('\n', f);
    }
}
