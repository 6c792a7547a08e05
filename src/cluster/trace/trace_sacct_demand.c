// Demand of a job in Slurm's accounting: lists of TRES (gres/gpu:a100=2), older lists of GRES
// (gpu:a100:2), counts of cores, memory per job, node or core.
#include <string.h>

#include "base/decimal.h"
#include "cluster/trace/trace_sacct.h"

static bool is_one_of(const char *text, const char *const *words) {
    for (; *words != NULL; words++)
        if (strcmp(text, *words) == 0) return true;
    return false;
}

bool sacct_is_blank(const char *text) {
    static const char *const words[] = {"", "Unknown", "None", "N/A", "INVALID", NULL};
    return text == NULL || is_one_of(text, words);
}

// A number with a unit of 1024s after it, as 64G: at most `most` of 1/unit.
static Err amount(const TraceReader *r, const char *text, size_t n, int64_t unit, int64_t most,
                  int64_t *out) {
    static const char units[] = "KMGTP";
    char              number[32];
    const char       *letter = n > 0 && text[n - 1] != '\0' ? strchr(units, text[n - 1]) : NULL;
    size_t            digits = n - (letter != NULL);
    if (digits == 0 || digits >= sizeof number) return trace_bad(r, text, "has no number");
    memcpy(number, text, digits);
    number[digits] = '\0';
    if (letter != NULL) unit *= INT64_C(1) << 10 * (letter - units + 1);
    DecimalError f = decimal_read(number, unit, most, out);
    return f == DECIMAL_OK ? ERR_OK : trace_bad(r, text, decimal_error_text(f));
}

typedef struct Amounts {  // of a TRES or GRES list; 0: not stated
    int64_t gpus, typed_gpus, cores_milli, memory_bytes;
    bool    stated;
} Amounts;

static Err add_type(TraceReader *r, const char *type, size_t n, Job *j) {
    char name[64];
    if (n == 0 || n >= sizeof name) return trace_bad(r, type, "names no type of GPU");
    memcpy(name, type, n);
    name[n] = '\0';
    return trace_take_gpu_types(r, name, j);
}

// "gres/gpu=2", "gres/gpu:a100=2", "cpu=8", "mem=64G"; others do not matter here.
static Err add_tres(TraceReader *r, const char *item, size_t n, Job *j, Amounts *x) {
    static const char gpu[] = "gres/gpu";
    const char       *is = memchr(item, '=', n);
    size_t            name = is != NULL ? (size_t)(is - item) : n, own = sizeof gpu - 1;
    int64_t           v = 0;
    if (is == NULL) return trace_bad(r, item, "is no NAME=AMOUNT; as gres/gpu=2");
    const char *value = is + 1;
    size_t      rest = n - name - 1;
    if (name == 3 && strncmp(item, "cpu", 3) == 0)
        return amount(r, value, rest, 1000, INT32_MAX, &x->cores_milli);
    if (name == 3 && strncmp(item, "mem", 3) == 0)
        return amount(r, value, rest, 1, (int64_t)INT32_MAX << 20, &x->memory_bytes);
    if (name < own || strncmp(item, gpu, own) != 0) return ERR_OK;
    if (name == own) return amount(r, value, rest, 1, JOB_GPUS_MAX, &x->gpus);
    if (item[own] != ':') return ERR_OK;
    TRY(amount(r, value, rest, 1, JOB_GPUS_MAX, &v));
    x->typed_gpus += v;
    return v > 0 ? add_type(r, item + own + 1, name - own - 1, j) : ERR_OK;
}

static Err read_tres(TraceReader *r, uint32_t column, Job *j, Amounts *x) {
    const char *text = trace_text(r, column);
    *x = (Amounts){.stated = !sacct_is_blank(text)};
    for (size_t n = 0; x->stated && *text != '\0'; text += n + (text[n] == ',')) {
        n = strcspn(text, ",");
        TRY(add_tres(r, text, n, j, x));
    }
    if (x->gpus == 0) x->gpus = x->typed_gpus;
    return x->gpus <= JOB_GPUS_MAX ? ERR_OK : trace_bad(r, text, "states too many GPUs");
}

static bool is_count(const char *text, size_t n) {
    return n > 0 && strspn(text, "0123456789") >= n;
}

// "gpu", "gpu:2", "gpu:a100:2(IDX:0-1)", "gres:gpu:2"; Slurm writes 7696487 for gpu where its
// plug-in is missing.
static Err add_gres(TraceReader *r, const char *item, size_t n, Job *j, Amounts *x) {
    static const char *const prefixes[] = {"gres:", "gres/"}, *const gpus[] = {"gpu", "7696487"};
    const char *bracket = memchr(item, '(', n);
    int64_t     v = 1;
    size_t      own = 0;
    if (bracket != NULL) n = (size_t)(bracket - item);
    for (int i = 0; i < 2; i++)
        if (n > 5 && strncmp(item, prefixes[i], 5) == 0) {
            item += 5;
            n -= 5;
        }
    for (int i = 0; i < 2 && own == 0; i++) {
        size_t k = strlen(gpus[i]);
        if (n >= k && strncmp(item, gpus[i], k) == 0 && (n == k || item[k] == ':')) own = k;
    }
    if (own == 0) return ERR_OK;
    const char *last = item + n;
    while (last > item + own && last[-1] != ':') last--;
    size_t digits = (size_t)(item + n - last);
    bool   counted = last > item + own && is_count(last, digits);
    if (counted) TRY(amount(r, last, digits, 1, JOB_GPUS_MAX, &v));
    x->gpus += v;
    const char *type = item + own + 1, *end = counted ? last - 1 : item + n;
    return end > type && v > 0 ? add_type(r, type, (size_t)(end - type), j) : ERR_OK;
}

// Slurm's GRES lists; commas within brackets separate indices.
static Err read_gres(TraceReader *r, uint32_t column, int64_t nodes, Job *j, int64_t *gpus) {
    const char *text = trace_text(r, column);
    Amounts     x = {0};
    *gpus = 0;
    if (sacct_is_blank(text) || strcmp(text, "(null)") == 0) return ERR_OK;
    for (const char *at = text; *at != '\0';) {
        size_t n = 0;
        for (int depth = 0; at[n] != '\0' && (at[n] != ',' || depth > 0); n++)
            depth += (at[n] == '(') - (at[n] == ')');
        TRY(add_gres(r, at, n, j, &x));
        at += n + (at[n] == ',');
    }
    if (x.gpus > JOB_GPUS_MAX / nodes) return trace_bad(r, text, "states too many GPUs");
    *gpus = x.gpus * nodes;
    return ERR_OK;
}

static Err take_nodes(TraceReader *r, int64_t *nodes) {
    const char *text = trace_text(r, SACCT_N_NODES);
    if (sacct_is_blank(text)) text = trace_text(r, SACCT_ALLOC_NODES);
    *nodes = 1;
    if (sacct_is_blank(text)) return ERR_OK;
    TRY(amount(r, text, strlen(text), 1, JOB_GPUS_MAX, nodes));
    if (*nodes == 0) *nodes = 1;
    return ERR_OK;
}

static Err take_cores(TraceReader *r, const Amounts *got, const Amounts *asked, Job *j) {
    int64_t milli = got->cores_milli;
    for (uint32_t c = SACCT_ALLOC_CPUS; c <= SACCT_N_CPUS && milli == 0; c++) {
        const char *text = trace_text(r, c);
        if (!sacct_is_blank(text)) TRY(amount(r, text, strlen(text), 1000, INT32_MAX, &milli));
    }
    if (milli == 0) milli = asked->cores_milli;
    const char *text = trace_text(r, SACCT_REQ_CPUS);
    if (milli == 0 && !sacct_is_blank(text))
        TRY(amount(r, text, strlen(text), 1000, INT32_MAX, &milli));
    j->cores_milli = (uint32_t)milli;
    return ERR_OK;
}

// ReqMem: "64G" of the job; before Slurm 21 "16Gn" per node and "4000Mc" per core.
static Err take_memory(TraceReader *r, const Amounts *got, const Amounts *asked, int64_t nodes,
                       Job *j) {
    int64_t       bytes = got->memory_bytes > 0 ? got->memory_bytes : asked->memory_bytes, each = 1;
    const char   *text = trace_text(r, SACCT_REQ_MEM);
    size_t        n = text != NULL ? strlen(text) : 0;
    const int64_t most = (int64_t)INT32_MAX << 20;
    if (bytes == 0 && !sacct_is_blank(text) && strcmp(text, "?") != 0) {
        if (text[n - 1] == 'n') each = nodes;
        if (text[n - 1] == 'c') each = (j->cores_milli + 999) / 1000;
        bool unit = strchr("KMGTP", text[n - 1]) != NULL || (n > 1 && !is_count(text + n - 2, 1));
        n -= text[n - 1] == 'n' || text[n - 1] == 'c';
        TRY(amount(r, text, n, unit ? 1 : 1 << 20, most, &bytes));
        if (each > 1 && bytes > most / each) return trace_bad(r, text, "is too large");
        bytes *= each > 1 ? each : 1;
    }
    j->memory_mib = (uint32_t)((bytes + (1 << 20) - 1) >> 20);
    return ERR_OK;
}

Err sacct_take_demand(TraceReader *r, Job *j) {
    Amounts got, asked;
    int64_t nodes = 1, gpus = 0;
    TRY(take_nodes(r, &nodes));
    TRY(read_tres(r, SACCT_ALLOC_TRES, j, &got));
    gpus = got.gpus;
    if (gpus == 0) TRY(read_gres(r, SACCT_ALLOC_GRES, 1, j, &gpus));
    Job unused = {0};
    TRY(read_tres(r, SACCT_REQ_TRES, gpus == 0 ? j : &unused, &asked));
    if (gpus == 0) gpus = asked.gpus;
    if (gpus == 0) TRY(read_gres(r, SACCT_REQ_GRES, nodes, j, &gpus));
    j->gpus = (uint32_t)gpus;
    TRY(take_cores(r, &got, &asked, j));
    return take_memory(r, &got, &asked, nodes, j);
}
