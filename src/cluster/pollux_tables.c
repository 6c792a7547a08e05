#include "cluster/pollux_tables.h"

#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/csv.h"
#include "base/decimal.h"
#include "base/file.h"

enum { FILE_MOST = 1 << 24, FILES = 64, NANO = 1000000000 };

static const char validation[] = "validation-";

static Err number(const Csv *c, uint32_t field, double lo, double hi, double *out) {
    char  *end = c->field[field];
    double x = strtod(c->field[field], &end);
    if (*end == '\0' && end != c->field[field] && x >= lo && x <= hi) {
        *out = x;
        return ERR_OK;
    }
    return err_set(ERR_PARSE, "%s:%zu: '%.40s' is no number from %g to %g", c->name, c->line,
                   c->field[field], lo, hi);
}

static Err column(const Csv *c, const char *name, uint32_t *out) {
    for (*out = 0; *out < c->n; (*out)++)
        if (strcmp(c->field[*out], name) == 0) return ERR_OK;
    return err_set(ERR_PARSE, "%s:1: lacks the column %s", c->name, name);
}

// The next row with as many fields as the header.
static Err row(Csv *c, uint32_t fields, bool *more) {
    TRY(csv_next(c, more));
    if (*more && c->n == 1 && c->field[0][0] == '\0' && csv_blank(c)) *more = false;
    if (*more && c->n != fields)
        return err_set(ERR_PARSE, "%s:%zu: %u fields where there should be %u", c->name, c->line,
                       c->n, fields);
    return ERR_OK;
}

// The last row of a training has its progress and its iterations.
static Err read_training(PolluxApp *x, Csv *c, double batch) {
    uint32_t progress = 0, iteration = 0, at = 0, fields = c->n;
    double   did = 0, iterations = 0;
    TRY(column(c, "progress", &progress));
    TRY(column(c, "iteration", &iteration));
    for (bool more = true;;) {
        TRY(row(c, fields, &more));
        if (!more) break;
        TRY(number(c, progress, 1e-3, 1e12, &did));
        TRY(number(c, iteration, 1, 1e12, &iterations));
    }
    if (!(iterations > 0)) return err_set(ERR_PARSE, "%s: has no rows", c->name);
    if (x->n_batches == POLLUX_BATCHES)
        return err_set(ERR_LIMIT, "%s: more than %d batch sizes", c->name, POLLUX_BATCHES);
    while (at < x->n_batches && x->batch[at].size < batch) at++;
    memmove(&x->batch[at + 1], &x->batch[at], (x->n_batches - at) * sizeof *x->batch);
    x->batch[at] = (PolluxBatch){batch, did / iterations};
    x->n_batches++;
    x->progress = fmax(x->progress, did);
    return ERR_OK;
}

// Progress of an iteration: in proportion below the smallest batch, 0 above the largest, else
// interpolated over the logarithm of the size.
static double gain_of(const PolluxApp *x, double size) {
    const PolluxBatch *b = x->batch;
    uint32_t           i = 0;
    if (size > b[x->n_batches - 1].size) return 0;
    if (size <= b[0].size) return b[0].gain * size / b[0].size;
    while (b[i + 1].size < size) i++;
    double way = log(size / b[i].size) / log(b[i + 1].size / b[i].size);
    return b[i].gain + (b[i + 1].gain - b[i].gain) * way;
}

// "224": eight GPUs on three servers.
static bool take_placement(const char *text, uint32_t *gpus, uint32_t *servers) {
    for (*gpus = *servers = 0; *text >= '1' && *text <= '9' && *servers < POLLUX_SERVERS; text++) {
        *gpus += (uint32_t)(*text - '0');
        (*servers)++;
    }
    return *text == '\0' && *gpus > 0 && *gpus <= POLLUX_GPUS;
}

static Err read_place(const Csv *c, uint32_t placement, uint32_t replicas, uint32_t *gpus,
                      uint32_t *servers) {
    double g = 0, s = 0;
    if (replicas == UINT32_MAX) {
        if (take_placement(c->field[placement], gpus, servers)) return ERR_OK;
        return err_set(ERR_PARSE, "%s:%zu: placement '%.40s': give a digit per server", c->name,
                       c->line, c->field[placement]);
    }
    TRY(number(c, placement, 1, POLLUX_SERVERS, &s));
    TRY(number(c, replicas, 1, POLLUX_GPUS, &g));
    *gpus = (uint32_t)g;
    *servers = (uint32_t)s;
    return ERR_OK;
}

static Err read_steps(PolluxApp *x, Csv *c, bool scaled) {
    uint32_t placement = 0, replicas = UINT32_MAX, size = 0, time = 0, fields = c->n;
    TRY(column(c, scaled ? "num_nodes" : "placement", &placement));
    if (scaled) TRY(column(c, "num_replicas", &replicas));
    TRY(column(c, "local_bsz", &size));
    TRY(column(c, "step_time", &time));
    if (x->n_batches == 0)
        return err_set(ERR_PARSE, "%s: no %sBATCH.csv beside it", c->name, validation);
    for (bool more = true;;) {
        uint32_t gpus = 0, servers = 0;
        double   local = 0, step_s = 0;
        TRY(row(c, fields, &more));
        if (!more) return ERR_OK;
        TRY(read_place(c, placement, replicas, &gpus, &servers));
        TRY(number(c, size, 1, 1e9, &local));
        TRY(number(c, time, 1e-6, 1e6, &step_s));
        double *best = &x->goodput[gpus][servers];
        *best = fmax(*best, gain_of(x, local * gpus) / step_s);
    }
}

Err pollux_app_parse(PolluxApp *x, const char *name, char *text, size_t len) {
    Csv         c;
    bool        more = false;
    const char *file = strrchr(name, '/');
    int64_t     batch = 0;
    char        digits[32] = "";
    TRY(csv_open(&c, name, text, len, ',', true));
    TRY(csv_next(&c, &more));
    file = file != NULL ? file + 1 : name;
    if (strcmp(file, "placements.csv") == 0) return read_steps(x, &c, false);
    if (strcmp(file, "scalability.csv") == 0) return read_steps(x, &c, true);
    bool named = strncmp(file, validation, strlen(validation)) == 0;
    if (named) (void)snprintf(digits, sizeof digits, "%s", file + strlen(validation));
    digits[strcspn(digits, ".")] = '\0';
    if (!named || decimal_read(digits, 1, NANO, &batch) != DECIMAL_OK || batch == 0)
        return err_set(ERR_PARSE, "%s: is none of Pollux' files", name);
    for (uint32_t i = 0; i < x->n_batches; i++)
        if (x->batch[i].size == (double)batch)
            return err_set(ERR_PARSE, "%s: its batch size for the second time", name);
    return read_training(x, &c, (double)batch);
}

double pollux_app_goodput(const PolluxApp *x, uint32_t gpus, uint32_t *servers) {
    for (*servers = 1; *servers <= POLLUX_SERVERS; (*servers)++)
        if (x->goodput[gpus][*servers] > 0) return x->goodput[gpus][*servers];
    *servers = 1;
    return 0;
}

static int by_name(const void *a, const void *b) {
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

// Names in a folder, sorted; those that begin with a dot are left out.
static Err list(const char *folder, Arena *a, const char **names, uint32_t *n) {
    DIR *d = opendir(folder);
    *n = 0;
    if (d == NULL) return file_failed("read", folder);
    for (struct dirent *e; *n < FILES && (e = readdir(d)) != NULL;)
        if (e->d_name[0] != '.') names[(*n)++] = arena_str(a, e->d_name);
    (void)closedir(d);
    qsort(names, *n, sizeof *names, by_name);
    return ERR_OK;
}

static Err read_file(PolluxApp *x, const char *folder, const char *name, Arena *a) {
    char       *text = NULL;
    size_t      len = 0;
    const char *path = arena_printf(a, "%s/%s", folder, name);
    TRY(file_read(path, FILE_MOST, a, &text, &len));
    return pollux_app_parse(x, path, text, len);
}

static Err read_app(PolluxApp *x, const char *folder, Arena *a) {
    const char *names[FILES];
    uint32_t    n = 0;
    TRY(list(folder, a, names, &n));
    for (uint32_t i = 0; i < n; i++)
        if (strncmp(names[i], validation, strlen(validation)) == 0)
            TRY(read_file(x, folder, names[i], a));
    TRY(read_file(x, folder, "placements.csv", a));
    TRY(read_file(x, folder, "scalability.csv", a));
    if (x->goodput[1][1] > 0) return ERR_OK;
    return err_set(ERR_PARSE, "%s/placements.csv: nothing on one GPU", folder);
}

Err pollux_tables_read(const char *folder, Arena *a, PolluxTables *out) {
    const char  *names[FILES];
    PolluxTables x = {0};
    TRY(list(folder, a, names, &x.n));
    if (x.n == 0 || x.n > POLLUX_APPS)
        return err_set(ERR_PARSE, "%s: %u folders of applications; give 1 to %d", folder, x.n,
                       POLLUX_APPS);
    x.at = arena_try_new(a, PolluxApp, x.n);
    if (x.at == NULL) return err_set(ERR_LIMIT, "%s: no memory for %u tables", folder, x.n);
    for (uint32_t i = 0; i < x.n; i++) {
        x.at[i].name = names[i];
        TRY(read_app(&x.at[i], arena_printf(a, "%s/%s", folder, names[i]), a));
    }
    *out = x;
    return ERR_OK;
}
