// Records of `cotenant cluster schedule`: the lines of jobs that ended are a trace; all others are
// passed over. Work is what a job did at the speed of its default demand.
#include <math.h>
#include <string.h>

#include "base/json.h"
#include "cluster/trace/job_trace_int.h"

static const char job_start[] = "{\"kind\":\"job\"";
enum { START = sizeof job_start - 1 };

static Err bad_line(const TraceReader *r, size_t line, const char *what) {
    return err_set(ERR_PARSE, "%s:%zu: a record of a job: %s", r->csv.name, line, what);
}

static Err copy(TraceReader *r, const char *text, const char **out) {
    size_t n = strlen(text) + 1;
    char  *to = arena_try(r->arena, n, 1, 1);
    if (to == NULL) return err_set(ERR_LIMIT, "%s: no memory for its jobs", r->csv.name);
    *out = memcpy(to, text, n);
    return ERR_OK;
}

static Err take_names(TraceReader *r, const json_t *o, size_t line, Job *j) {
    const char *space = json_string_value(json_object_get(o, "namespace")),
               *name = json_string_value(json_object_get(o, "name")),
               *tenant = json_string_value(json_object_get(o, "tenant")),
               *model = json_string_value(json_object_get(o, "model"));
    char whole[600];
    if (space == NULL || name == NULL || tenant == NULL || model == NULL ||
        strlen(space) + strlen(name) + 2 > sizeof whole)
        return bad_line(r, line, "namespace, name, tenant and model are texts");
    (void)snprintf(whole, sizeof whole, "%s/%s", space, name);
    TRY(copy(r, whole, &name));
    TRY(trace_name_job(r, name, j));
    TRY(copy(r, tenant, &tenant));
    TRY(copy(r, model, &model));
    if (*tenant != '\0') TRY(interner_add(&r->tenants, tenant, &j->tenant));
    return *model != '\0' ? interner_add(&r->models, model, &j->model) : ERR_OK;
}

static Err take_int(const TraceReader *r, const json_t *o, size_t line, const char *key, int64_t lo,
                    int64_t hi, int64_t *out) {
    const json_t *x = json_object_get(o, key);
    if (!json_is_integer(x) || json_integer_value(x) < lo || json_integer_value(x) > hi)
        return bad_line(r, line, key);
    *out = json_integer_value(x);
    return ERR_OK;
}

static Err take_demand(const TraceReader *r, const json_t *o, size_t line, Job *j) {
    int64_t gpus, milli, cores, memory, priority;
    TRY(take_int(r, o, line, "gpus", 0, JOB_GPUS_MAX, &gpus));
    TRY(take_int(r, o, line, "gpu_milli", 0, 1000, &milli));
    TRY(take_int(r, o, line, "cores_milli", 0, INT32_MAX, &cores));
    TRY(take_int(r, o, line, "memory_mib", 0, INT32_MAX, &memory));
    TRY(take_int(r, o, line, "priority", -INT32_MAX, INT32_MAX, &priority));
    j->gpus = (uint32_t)gpus;
    j->gpu_milli = gpus == 1 && milli > 0 ? (uint32_t)milli : gpus > 0 ? 1000 : 0;
    j->cores_milli = (uint32_t)cores;
    j->memory_mib = (uint32_t)memory;
    j->priority = (int32_t)priority;
    return ERR_OK;
}

// NULL: it is a job of the trace.
static const char *left_out(const json_t *o, double work_s) {
    if (!(work_s > 0)) return "jobs that never ran";
    return json_integer_value(json_object_get(o, "succeeded")) != 0
               ? NULL
               : "jobs that failed or were deleted";
}

static Err take_job(TraceReader *r, const json_t *o, size_t line) {
    JobList    *l = r->list;
    Job        *j = &l->at[l->n];
    double      work = json_number_value(json_object_get(o, "work_s"));
    const char *why = left_out(o, work);
    if (why != NULL) {
        trace_leave_out(r, why, 1);
        return ERR_OK;
    }
    *j = (Job){.row = l->n, .model = JOB_NONE, .tenant = JOB_NONE};
    TRY(take_int(r, o, line, "submit", 0, JOB_TIME_MAX, &j->submit));
    if (!isfinite(work) || work * 1e9 > (double)JOB_TIME_MAX) return bad_line(r, line, "work_s");
    j->work = (TimeNs)(work * 1e9);
    if (j->work < 1) j->work = 1;
    TRY(take_demand(r, o, line, j));
    TRY(take_names(r, o, line, j));
    l->n++;
    return ERR_OK;
}

static Err take_line(TraceReader *r, const char *text, size_t len, size_t line) {
    json_t *o = NULL;
    if (len < START || memcmp(text, job_start, START) != 0) return ERR_OK;
    Err e = json_parse(r->csv.name, text, len, &o);
    if (e != ERR_OK) return err_add(e, "line %zu", line);
    e = take_job(r, o, line);
    json_decref(o);
    return e;
}

static const char *next_line(const char *at, const char *end) {
    const char *nl = memchr(at, '\n', (size_t)(end - at));
    return nl != NULL ? nl : end;
}

static Err room_for_jobs(TraceReader *r, const char *text, size_t len) {
    size_t n = 0;
    for (const char *at = text, *end = text + len; at < end; at = next_line(at, end) + 1)
        n += (size_t)(end - at) >= START && memcmp(at, job_start, START) == 0;
    r->list->at = n < UINT32_MAX ? arena_try_new(r->arena, Job, n + 1) : NULL;
    if (r->list->at == NULL)
        return err_set(ERR_LIMIT, "%s: no memory for %zu jobs", r->csv.name, n);
    if (n == 0)
        return err_set(ERR_PARSE,
                       "%s: has no job that ended; cotenant cluster schedule --records "
                       "writes them",
                       r->csv.name);
    return ERR_OK;
}

// A last line without its end was cut when the scheduler was killed.
static Err read(TraceReader *r, const char *text, size_t len) {
    size_t line = 1;
    TRY(room_for_jobs(r, text, len));
    for (const char *at = text, *end = text + len; at < end; line++) {
        const char *to = next_line(at, end);
        if (to < end) TRY(take_line(r, at, (size_t)(to - at), line));
        at = to + 1;
    }
    return ERR_OK;
}

const TraceFormat trace_kube_records = {.name = "kube-records", .dated = true, .read = read};
