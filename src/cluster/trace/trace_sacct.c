// Slurm's accounting: `sacct --parsable2` with a header and any selection of columns.
//
// A job is one allocation that ended. Amounts are those allocated; where the log lacks them, those
// requested. Rows that are no jobs that ran are counted by reason: steps (123.batch), jobs that
// wait or run, jobs cancelled before they started, runs that were requeued, rows of overlapping
// exports. Components of a heterogeneous job (123+0, 123+1) start together and are joined.
#include <string.h>

#include "base/decimal.h"
#include "cluster/trace/trace_sacct.h"
#include "cluster/trace/trace_window.h"

static const TraceColumn sacct[] = {
    [SACCT_JOB_ID] = {"JobID", false, NULL},
    [SACCT_JOB_ID_RAW] = {"JobIDRaw", false, NULL},
    [SACCT_SUBMIT] = {"Submit", true, NULL},
    [SACCT_START] = {"Start", false, NULL},
    [SACCT_END] = {"End", false, NULL},
    [SACCT_ELAPSED] = {"Elapsed", false, NULL},
    [SACCT_ELAPSED_RAW] = {"ElapsedRaw", false, NULL},
    [SACCT_STATE] = {"State", false, NULL},
    [SACCT_N_NODES] = {"NNodes", false, NULL},
    [SACCT_ALLOC_NODES] = {"AllocNodes", false, NULL},
    [SACCT_ALLOC_CPUS] = {"AllocCPUS", false, NULL},
    [SACCT_N_CPUS] = {"NCPUS", false, NULL},
    [SACCT_REQ_CPUS] = {"ReqCPUS", false, NULL},
    [SACCT_REQ_MEM] = {"ReqMem", false, NULL},
    [SACCT_ALLOC_TRES] = {"AllocTRES", false, NULL},
    [SACCT_REQ_TRES] = {"ReqTRES", false, NULL},
    [SACCT_ALLOC_GRES] = {"AllocGRES", false, NULL},
    [SACCT_REQ_GRES] = {"ReqGRES", false, NULL},
    [SACCT_ACCOUNT] = {"Account", false, NULL},
    [SACCT_USER] = {"User", false, NULL},
    [SACCT_JOB_NAME] = {"JobName", false, NULL},
    [SACCT_PRIORITY] = {"Priority", false, NULL},
    {0},
};

static bool absent(const TraceReader *r, uint32_t column) {
    return r->field_of[column] == JOB_NONE;
}

static Err begin(TraceReader *r) {
    const char *what = NULL, *add = NULL;
    if (absent(r, SACCT_JOB_ID) && absent(r, SACCT_JOB_ID_RAW)) {
        what = "a job's name";
        add = "JobID";
    } else if (absent(r, SACCT_ELAPSED) && absent(r, SACCT_ELAPSED_RAW) &&
               (absent(r, SACCT_START) || absent(r, SACCT_END))) {
        what = "a job's duration";
        add = "Start,End or ElapsedRaw";
    } else if (absent(r, SACCT_STATE) && absent(r, SACCT_END)) {
        what = "whether a job has ended";
        add = "End or State";
    } else if (absent(r, SACCT_ALLOC_TRES) && absent(r, SACCT_REQ_TRES) &&
               absent(r, SACCT_ALLOC_GRES) && absent(r, SACCT_REQ_GRES)) {
        what = "a job's GPUs";
        add = "AllocTRES";
    }
    if (what == NULL) return ERR_OK;
    return err_set(ERR_PARSE, "%s:1: no column states %s; add %s to sacct's --format", r->csv.name,
                   what, add);
}

// Of Unix time; JOB_UNKNOWN if the column is absent or says Unknown.
static Err take_time(TraceReader *r, uint32_t column, TimeNs *out) {
    const char *text = trace_text(r, column);
    *out = JOB_UNKNOWN;
    if (sacct_is_blank(text)) return ERR_OK;
    if (text[strspn(text, "0123456789")] == '\0')
        return trace_number(r, text, JOB_SECOND, JOB_TIME_MAX, out);
    if (instant_read(text, out)) return ERR_OK;
    *out = JOB_UNKNOWN;
    return trace_bad(r, text, "is no time; write it as 2024-03-01T08:30:00, or with +01:00");
}

// "3-04:05:06", "04:05:06" or "05:06.789".
static Err take_elapsed(TraceReader *r, const char *text, TimeNs *out) {
    static const char remedy[] = "is no span of time; write it as 1-02:03:04";
    int64_t           days = 0, whole = 0, part = 0;
    const char       *dash = strchr(text, '-'), *rest = dash != NULL ? dash + 1 : text;
    char              number[24];
    uint32_t          parts = 0;
    size_t            n = dash != NULL ? (size_t)(dash - text) : 0;
    if (dash != NULL && (n == 0 || n >= sizeof number)) return trace_bad(r, text, remedy);
    memcpy(number, text, n);
    number[n] = '\0';
    if (n > 0 && decimal_read(number, 1, 1000000, &days) != DECIMAL_OK)
        return trace_bad(r, text, remedy);
    for (bool last = false; !last; parts++) {
        n = strcspn(rest, ":");
        last = rest[n] == '\0';
        if (n == 0 || n >= sizeof number || parts == 3) return trace_bad(r, text, remedy);
        memcpy(number, rest, n);
        number[n] = '\0';
        if (decimal_read(number, JOB_SECOND, 1000000 * JOB_SECOND, &part) != DECIMAL_OK)
            return trace_bad(r, text, remedy);
        whole = whole * 60 + part;
        rest += n + !last;
    }
    const int64_t day = 86400 * JOB_SECOND;
    if (parts < 2 || days > JOB_TIME_MAX / day || whole > JOB_TIME_MAX - days * day)
        return trace_bad(r, text, remedy);
    *out = days * day + whole;
    return ERR_OK;
}

static Err take_work(TraceReader *r, Job *j) {
    const char *raw = trace_text(r, SACCT_ELAPSED_RAW);
    if (!sacct_is_blank(raw)) return trace_number(r, raw, JOB_SECOND, JOB_TIME_MAX, &j->work);
    const char *text = trace_text(r, SACCT_ELAPSED);
    if (!sacct_is_blank(text)) return take_elapsed(r, text, &j->work);
    (void)trace_text(r, SACCT_END);
    if (r->began == JOB_UNKNOWN || r->ended == JOB_UNKNOWN) return ERR_OK;
    if (r->ended < r->began)
        return err_set(ERR_INVALID, "%s:%zu: End: is before Start", r->csv.name, r->csv.line);
    j->work = r->ended - r->began;
    return ERR_OK;
}

static Err take_owner(TraceReader *r, Job *j) {
    const char *account = trace_text(r, SACCT_ACCOUNT), *user = trace_text(r, SACCT_USER);
    const char *name = trace_text(r, SACCT_JOB_NAME);
    const char *owner = !sacct_is_blank(account) ? account : user;
    if (!sacct_is_blank(owner)) TRY(interner_add(&r->tenants, owner, &j->tenant));
    if (!sacct_is_blank(name)) TRY(interner_add(&r->models, name, &j->model));
    const char *priority = trace_text(r, SACCT_PRIORITY);
    int64_t     v = 0;
    if (sacct_is_blank(priority)) return ERR_OK;
    TRY(trace_number(r, priority, 1, UINT32_MAX, &v));
    j->priority = v > INT32_MAX ? INT32_MAX : (int32_t)v;
    return ERR_OK;
}

// "CANCELLED by 1000": the first word counts.
static bool state_is(const char *state, const char *const *words) {
    for (; state != NULL && *words != NULL; words++) {
        size_t n = strlen(*words);
        if (strncmp(state, *words, n) == 0 && strchr(" +", state[n]) != NULL) return true;
    }
    return false;
}

// Why the row is no job that ran to its end; NULL: it is one.
static const char *reason_to_skip(TraceReader *r, const char *id, TimeNs submit, const Job *j) {
    static const char *const live[] = {
        "PENDING",     "RUNNING",      "SUSPENDED", "CONFIGURING", "COMPLETING",
        "RESIZING",    "SIGNALING",    "STAGE_OUT", "STOPPED",     "REQUEUE_HOLD",
        "REQUEUE_FED", "SPECIAL_EXIT", "PD",        "R",           "RESV_DEL_HOLD",
        NULL};
    static const char *const requeued[] = {"REQUEUED", "RQ", NULL};
    static const char *const cancelled[] = {"CANCELLED", "CA", "REVOKED", NULL};
    const char              *state = trace_text(r, SACCT_STATE);
    if (strchr(id, '.') != NULL) return "job steps";
    if (state_is(state, requeued)) return "runs that were requeued";
    if (state_is(state, live)) return "jobs that have not ended";
    if (submit == JOB_UNKNOWN) return "jobs without a time of submission";
    if (!absent(r, SACCT_START) && r->began == JOB_UNKNOWN) return "jobs that never started";
    if (!absent(r, SACCT_END) && r->ended == JOB_UNKNOWN) return "jobs that have not ended";
    if (j->work == 0 && state_is(state, cancelled)) return "jobs that never started";
    if (j->work == JOB_UNKNOWN) return "jobs without a duration";
    return j->work == 0 ? "jobs shorter than a second" : NULL;
}

// The same row twice, as in exports that overlap.
static Err note_row(TraceReader *r, const char *id, bool *again) {
    const char *submit = trace_text(r, SACCT_SUBMIT), *start = trace_text(r, SACCT_START);
    uint32_t    before = r->rows.n, index = 0;
    if (start == NULL) start = "";
    size_t n = strlen(id) + strlen(submit) + strlen(start) + 3;
    char  *key = arena_try(r->arena, n, 1, 1);
    if (key == NULL) return err_set(ERR_LIMIT, "%s: no memory for its jobs", r->csv.name);
    (void)snprintf(key, n, "%s|%s|%s", id, submit, start);
    TRY(interner_add(&r->rows, key, &index));
    *again = r->rows.n == before;
    return ERR_OK;
}

// Adds a component to the job of its allocation, if that was read; kept jobs and ids have the same
// numbers.
static Err join(TraceReader *r, const Job *j, uint32_t index) {
    Job *all = &r->list->at[index];
    if (j->gpus > JOB_GPUS_MAX - all->gpus || j->cores_milli > INT32_MAX - all->cores_milli ||
        j->memory_mib > INT32_MAX - all->memory_mib)
        return err_set(ERR_LIMIT, "%s:%zu: JobID: component of '%.60s' makes the job too large",
                       r->csv.name, r->csv.line, all->id);
    all->gpus += j->gpus;
    all->cores_milli += j->cores_milli;
    all->memory_mib += j->memory_mib;
    all->gpu_types |= j->gpu_types;
    all->gpu_milli = all->gpus > 0 ? 1000 : 0;
    if (j->work > all->work) all->work = j->work;
    r->skip = "components joined to their job";
    return ERR_OK;
}

static Err name_job(TraceReader *r, const char *id, Job *j) {
    char *plus = strchr(id, '+');
    if (plus == id) plus = NULL;
    char *base = arena_try(r->arena, strlen(id) + 1, 1, 1);
    if (base == NULL) return err_set(ERR_LIMIT, "%s: no memory for its jobs", r->csv.name);
    memcpy(base, id, strlen(id) + 1);
    if (plus != NULL) base[plus - id] = '\0';
    uint32_t known = plus != NULL ? interner_find(&r->ids, base) : STRING_MAP_NONE;
    if (known != STRING_MAP_NONE && r->list->at[known].submit == j->submit)
        return join(r, j, known);
    return trace_name_job(r, base, j);
}

static Err finish(TraceReader *r, Job *j) {
    const char *id = trace_text(r, SACCT_JOB_ID);
    bool        again = false;
    TimeNs      submit = JOB_UNKNOWN;
    if (sacct_is_blank(id)) id = trace_text(r, SACCT_JOB_ID_RAW);
    if (sacct_is_blank(id)) return trace_bad(r, "", "is empty; every row needs a JobID");
    TRY(take_time(r, SACCT_SUBMIT, &submit));
    TRY(take_time(r, SACCT_START, &r->began));
    TRY(take_time(r, SACCT_END, &r->ended));
    TRY(take_work(r, j));
    r->skip = reason_to_skip(r, id, submit, j);
    if (r->skip != NULL) return ERR_OK;
    j->submit = submit;
    TRY(note_row(r, id, &again));
    if (again) {
        r->skip = "rows stated twice";
        return ERR_OK;
    }
    TRY(sacct_take_demand(r, j));
    TRY(take_owner(r, j));
    return name_job(r, id, j);
}

const TraceFormat trace_sacct = {.name = "sacct",
                                 .sep = '|',
                                 .header = true,
                                 .dated = true,
                                 .unit = JOB_SECOND,
                                 .columns = sacct,
                                 .begin = begin,
                                 .finish = finish};
