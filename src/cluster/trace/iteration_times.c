#include "cluster/trace/iteration_times.h"

#include <string.h>

#include "base/csv.h"
#include "base/decimal.h"
#include "base/file.h"
#include "cluster/pollux_tables.h"

enum { FILE_MOST = 1 << 26, NANO = 1000000000 };

typedef struct Layout {  // column names; key: column that selects rows, NULL: all rows
    const char *key, *model, *gpus, *time;
    bool        inverse;  // the time column is iterations per second
} Layout;

static const Layout layouts[] = {
    {NULL, "model", "gpus", "iteration_s", false},
    {"gpu_type", "model", "scale_factor", "steps_per_s", true},
    {"set", "model", "gpus", "iter_time_s", false},
};
enum { LAYOUTS = sizeof layouts / sizeof *layouts };

typedef struct Fields {
    const Layout *layout;
    int32_t       key, model, gpus, time, iterations;  // -1: absent
} Fields;

static int32_t field_named(const Csv *c, const char *name) {
    for (uint32_t i = 0; name != NULL && i < c->n; i++)
        if (strcmp(c->field[i], name) == 0) return (int32_t)i;
    return -1;
}

static Err find_fields(const Csv *c, Fields *out) {
    for (size_t i = 0; i < LAYOUTS; i++) {
        const Layout *l = &layouts[i];
        *out = (Fields){l,
                        field_named(c, l->key),
                        field_named(c, l->model),
                        field_named(c, l->gpus),
                        field_named(c, l->time),
                        field_named(c, "iterations")};
        if (out->model >= 0 && out->gpus >= 0 && out->time >= 0 &&
            (l->key == NULL || out->key >= 0))
            return ERR_OK;
    }
    return err_set(ERR_PARSE,
                   "%s:1: not a table of iteration times; its columns are model,gpus,iteration_s",
                   c->name);
}

static Err number(const Csv *c, int32_t field, const char *what, int64_t unit, int64_t most,
                  int64_t *out) {
    DecimalError f = decimal_read(c->field[field], unit, most, out);
    if (f == DECIMAL_OK) return ERR_OK;
    return err_set(ERR_PARSE, "%s:%zu: %s: '%.40s' %s; give one up to %lld", c->name, c->line, what,
                   c->field[field], decimal_error_text(f), (long long)(most / unit));
}

static Err read_rate(const Csv *c, const Fields *f, IterationTime *out) {
    int64_t gpus = 0, time = 0;
    *out = (IterationTime){.model = c->field[f->model]};
    TRY(number(c, f->gpus, f->layout->gpus, 1, 100000, &gpus));
    TRY(number(c, f->time, f->layout->time, NANO, INT64_MAX, &time));
    if (f->iterations >= 0)
        TRY(number(c, f->iterations, "iterations", 1, INT64_C(1) << 53, &out->iterations));
    out->gpus = (uint32_t)gpus;
    if (time > 0) out->iteration_s = f->layout->inverse ? NANO / (double)time : (double)time / NANO;
    return ERR_OK;
}

static bool wanted(const Csv *c, const Fields *f, const char *gpu_type) {
    const char *key = f->layout->inverse ? (gpu_type != NULL ? gpu_type : "v100") : "models";
    return f->key < 0 || f->layout->key == NULL || strcmp(c->field[f->key], key) == 0;
}

static Err parse(const char *name, char *text, size_t len, const char *gpu_type, Arena *a,
                 IterationTimes *out) {
    Csv            c;
    Fields         f;
    bool           more = false;
    size_t         lines = 1;
    IterationTimes r = {0};
    for (size_t i = 0; i < len; i++) lines += text[i] == '\n';
    TRY(csv_open(&c, name, text, len, ',', true));
    TRY(csv_next(&c, &more));
    TRY(find_fields(&c, &f));
    uint32_t fields = c.n;
    r.at = arena_try_new(a, IterationTime, lines);
    if (r.at == NULL) return err_set(ERR_LIMIT, "%s: no memory for %zu lines", name, lines);
    for (;;) {
        TRY(csv_next(&c, &more));
        if (!more || (c.n == 1 && c.field[0][0] == '\0' && csv_blank(&c))) break;
        if (c.n != fields)
            return err_set(ERR_PARSE, "%s:%zu: %u fields where there should be %u", name, c.line,
                           c.n, fields);
        if (!wanted(&c, &f, gpu_type)) continue;
        TRY(read_rate(&c, &f, &r.at[r.n]));
        r.n += r.at[r.n].iteration_s > 0;  // 0: the model does not fit on that GPU
    }
    if (r.n == 0) return err_set(ERR_PARSE, "%s: has no usable rows", name);
    *out = r;
    return ERR_OK;
}

Err iteration_times_parse(const char *name, const char *text, size_t len, const char *gpu_type,
                          Arena *a, IterationTimes *out) {
    char *copy = arena_try(a, len + 1, 1, 1);
    if (copy == NULL) return err_set(ERR_LIMIT, "%s: no memory for %zu bytes", name, len);
    if (len > 0) memcpy(copy, text, len);
    return parse(name, copy, len, gpu_type, a, out);
}

static Err from_pollux(const char *folder, Arena *a, IterationTimes *out) {
    PolluxTables   tables;
    IterationTimes r = {0};
    TRY(pollux_tables_read(folder, a, &tables));
    r.at = arena_try_new(a, IterationTime, (size_t)tables.n * POLLUX_GPUS);
    if (r.at == NULL) return err_set(ERR_LIMIT, "%s: no memory for its tables", folder);
    for (uint32_t i = 0; i < tables.n; i++)
        for (uint32_t gpus = 1, servers; gpus <= POLLUX_GPUS; gpus++) {
            double goodput = pollux_app_goodput(&tables.at[i], gpus, &servers);
            if (!(goodput > 1e-9)) continue;
            r.at[r.n++] = (IterationTime){.model = tables.at[i].name,
                                          .gpus = gpus,
                                          .iteration_s = 1 / goodput,
                                          .iterations = (int64_t)tables.at[i].progress};
        }
    *out = r;
    return ERR_OK;
}

Err iteration_times_read(const char *path, const char *gpu_type, Arena *a, IterationTimes *out) {
    char  *text = NULL;
    size_t len = 0;
    if (file_is_folder(path)) return from_pollux(path, a, out);
    TRY(file_read(path, FILE_MOST, a, &text, &len));
    return parse(path, text, len, gpu_type, a, out);
}

// Distance to the wanted number of GPUs: any number below is nearer than any above.
static uint64_t distance(uint32_t gpus, uint32_t wanted_gpus) {
    return gpus <= wanted_gpus ? wanted_gpus - gpus : (UINT64_C(1) << 32) + gpus;
}

const IterationTime *iteration_times_find(const IterationTimes *r, const char *model,
                                          uint32_t gpus) {
    const IterationTime *best = NULL;
    for (uint32_t i = 0; i < r->n; i++) {
        const IterationTime *x = &r->at[i];
        if (strcmp(x->model, model) != 0) continue;
        if (best == NULL || distance(x->gpus, gpus) < distance(best->gpus, gpus)) best = x;
    }
    return best;
}
