// Parsers of single fields, shared by all formats, and their errors.
#include <limits.h>
#include <math.h>
#include <string.h>

#include "base/decimal.h"
#include "cluster/trace/job_trace_int.h"
#include "cluster/trace/trace_window.h"

Err trace_bad(const TraceReader *r, const char *text, const char *reason) {
    return err_set(ERR_PARSE, "%s:%zu: %s: '%.60s' %s", r->csv.name, r->csv.line, r->column, text,
                   reason);
}

Err trace_number(const TraceReader *r, const char *text, int64_t unit, int64_t most, int64_t *out) {
    int64_t      v = 0;
    DecimalError f = decimal_read(text, unit, most, &v);
    char         reason[96];
    if (f == DECIMAL_OK) {
        *out = v;
        return ERR_OK;
    }
    (void)snprintf(reason, sizeof reason, "%s; give a number from 0 to %lld", decimal_error_text(f),
                   (long long)(most / unit));
    return trace_bad(r, text, text[0] == '\0' ? "is empty; give a number" : reason);
}

const char *trace_text(TraceReader *r, uint32_t column) {
    uint32_t field = r->field_of[column];
    r->column = r->format->columns[column].name;
    return field != JOB_NONE ? r->csv.field[field] : NULL;
}

void trace_leave_out(TraceReader *r, const char *reason, uint32_t rows) {
    uint32_t i = 0;
    if (rows == 0) return;
    while (i < r->n_left_out && strcmp(r->left_out[i].reason, reason) != 0) i++;
    CHECK(i < TRACE_REASONS);
    if (i == r->n_left_out) r->left_out[r->n_left_out++] = (RowsLeftOut){reason, 0};
    r->left_out[i].rows += rows;
}

static Err whole(const TraceReader *r, const char *text, int64_t most, int64_t *out) {
    const char *point = strchr(text, '.');
    if (point != NULL && point[1 + strspn(point + 1, "0")] != '\0')
        return trace_bad(r, text, "is not a whole number");
    return trace_number(r, text, 1, most, out);
}

static Err duration(TraceReader *r, const char *text, TimeNs *out) {
    return trace_number(r, text, r->unit, JOB_TIME_MAX, out);
}

Err trace_take_id(TraceReader *r, const char *text, Job *j) {
    uint32_t before = r->ids.n, index = 0;
    if (text[0] == '\0') return trace_bad(r, text, "is empty; every job needs a name of its own");
    TRY(interner_add(&r->ids, text, &index));
    if (r->ids.n == before) return trace_bad(r, text, "names a second job; give each its own name");
    j->id = text;
    return ERR_OK;
}

// Numbers are searched by doubling and halving: a name may be repeated in every row.
Err trace_name_job(TraceReader *r, const char *name, Job *j) {
    size_t   room = strlen(name) + 16;
    uint32_t taken = 1, free_ = 2, index = 0;
    if (interner_find(&r->ids, name) == STRING_MAP_NONE) {
        j->id = name;
        return interner_add(&r->ids, name, &index);
    }
    char *own = arena_try(r->arena, room, 1, 1);
    if (own == NULL) return err_set(ERR_LIMIT, "%s: no memory for its jobs", r->csv.name);
    for (bool up = true; up || free_ - taken > 1;) {
        uint32_t n = up ? free_ : taken + (free_ - taken) / 2;
        (void)snprintf(own, room, "%s#%u", name, n);
        bool is_free = interner_find(&r->ids, own) == STRING_MAP_NONE;
        if (is_free) free_ = n;
        if (!is_free) taken = n;
        if (up && !is_free) free_ = 2 * n;
        up = up && !is_free;
    }
    (void)snprintf(own, room, "%s#%u", name, free_);
    j->id = own;
    return interner_add(&r->ids, own, &index);
}

Err trace_take_submit(TraceReader *r, const char *text, Job *j) {
    return duration(r, text, &j->submit);
}

Err trace_take_date(TraceReader *r, const char *text, Job *j) {
    int64_t seconds = 0;
    if (text[0] != '\0' && text[strspn(text, "0123456789")] == '\0')
        return trace_number(r, text, JOB_SECOND, JOB_TIME_MAX, &j->submit);
    if (!date_read(text, &seconds))
        return trace_bad(r, text, "is no date; write it as 2017-10-09 07:01:55");
    j->submit = seconds * JOB_SECOND;
    return ERR_OK;
}

Err trace_take_work(TraceReader *r, const char *text, Job *j) {
    return duration(r, text, &j->work);
}

Err trace_take_gpus_or_none(TraceReader *r, const char *text, Job *j) {
    int64_t v = 0;
    TRY(whole(r, text, JOB_GPUS_MAX, &v));
    j->gpus = (uint32_t)v;
    return ERR_OK;
}

Err trace_take_gpus(TraceReader *r, const char *text, Job *j) {
    TRY(trace_take_gpus_or_none(r, text, j));
    return j->gpus > 0 ? ERR_OK : trace_bad(r, text, "asks for no GPU; jobs here need one or more");
}

Err trace_take_gpu_milli(TraceReader *r, const char *text, Job *j) {
    int64_t v = 0;
    if (text[0] == '\0') return ERR_OK;
    TRY(whole(r, text, 1000, &v));
    j->gpu_milli = (uint32_t)v;
    return ERR_OK;
}

static const char type_letters[] =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-.";

// "V100M16|V100M32": alternatives.
Err trace_take_gpu_types(TraceReader *r, const char *text, Job *j) {
    while (*text != '\0') {
        size_t   n = strcspn(text, "|");
        uint32_t index = 0;
        char     name[64];
        if (n == 0 || n >= sizeof name || strspn(text, type_letters) < n)
            return trace_bad(r, text, "names no type; write A10|T4");
        memcpy(name, text, n);
        name[n] = '\0';
        index = interner_find(&r->gpu_types, name);
        if (index == STRING_MAP_NONE) {
            char *kept = arena_try(r->arena, n + 1, 1, 1);
            if (kept == NULL) return trace_bad(r, text, "does not fit into memory");
            memcpy(kept, name, n + 1);
            TRY(interner_add(&r->gpu_types, kept, &index));
        }
        if (index >= JOB_TYPES)
            return trace_bad(r, text, "is the 33rd type of GPU; 32 is the most");
        j->gpu_types |= 1u << index;
        text += n;
        if (*text == '|' && *++text == '\0') return trace_bad(r, text, "ends in the middle");
    }
    return ERR_OK;
}

Err trace_take_cores(TraceReader *r, const char *text, Job *j) {
    int64_t v = 0;
    if (text[0] == '\0') return ERR_OK;
    TRY(trace_number(r, text, 1000, INT32_MAX, &v));
    j->cores_milli = (uint32_t)v;
    return ERR_OK;
}

Err trace_take_model(TraceReader *r, const char *text, Job *j) {
    return text[0] == '\0' ? ERR_OK : interner_add(&r->models, text, &j->model);
}

Err trace_take_tenant(TraceReader *r, const char *text, Job *j) {
    return text[0] == '\0' ? ERR_OK : interner_add(&r->tenants, text, &j->tenant);
}

Err trace_take_priority(TraceReader *r, const char *text, Job *j) {
    int64_t v = 0;
    bool    minus = text[0] == '-';
    if (text[0] == '\0') return ERR_OK;
    TRY(whole(r, text + minus, INT32_MAX, &v));
    j->priority = (int32_t)(minus ? -v : v);
    return ERR_OK;
}

Err trace_take_iterations(TraceReader *r, const char *text, Job *j) {
    return text[0] == '\0' ? ERR_OK : whole(r, text, INT64_C(1) << 53, &j->iterations);
}

Err trace_take_iteration(TraceReader *r, const char *text, Job *j) {
    return text[0] == '\0' ? ERR_OK : duration(r, text, &j->iteration);
}

Err trace_work_by_rate(TraceReader *r, Job *j) {
    const IterationTimes *rates = r->options->rates;
    const IterationTime  *rate =
        rates != NULL && j->model != JOB_NONE
             ? iteration_times_find(rates, r->models.at[j->model], j->gpus > 0 ? j->gpus : 1)
             : NULL;
    j->work = JOB_UNKNOWN;
    if (rate == NULL) return ERR_OK;
    if (j->iterations == 0) j->iterations = rate->iterations;
    double work = rate->iteration_s * (double)j->iterations * (double)JOB_SECOND;
    if (!(work < (double)JOB_TIME_MAX) || !(rate->iteration_s < 4e9))
        return err_set(ERR_INVALID, "%s:%zu: %lld iterations of %g s are more than a century",
                       r->csv.name, r->csv.line, (long long)j->iterations, rate->iteration_s);
    j->iteration = llround(rate->iteration_s * (double)JOB_SECOND);
    if (j->iterations > 0) j->work = llround(work);
    return ERR_OK;
}
