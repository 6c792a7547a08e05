// Chronus' JSON, {model: {gpus: {servers: speed relative to one server}}}, and the choice of JSON
// format.
#include <math.h>
#include <string.h>

#include "base/decimal.h"
#include "cluster/profile/profiles_int.h"

static Err count(const char *text, const char *what, uint32_t *out) {
    int64_t      v = 0;
    DecimalError f = decimal_read(text, 1, 4096, &v);
    if (f != DECIMAL_OK || v == 0)
        return err_set(ERR_PARSE, "'%.40s' is no number of %s from 1 to 4096", text, what);
    *out = (uint32_t)v;
    return ERR_OK;
}

// Inserts x into an ascending axis.
static Err put_axis(double *axis, uint32_t *n, uint32_t most, double x) {
    uint32_t i = 0;
    while (i < *n && axis[i] < x) i++;
    if (i < *n && axis[i] == x) return ERR_OK;
    if (*n == most) return err_set(ERR_LIMIT, "more than %u of them", most);
    memmove(&axis[i + 1], &axis[i], sizeof *axis * (*n - i));
    axis[i] = x;
    (*n)++;
    return ERR_OK;
}

static Err find_axes(json_t *gangs, ProfileGrid *g) {
    const char *gpus = NULL, *servers = NULL;
    json_t     *row = NULL, *value = NULL;
    uint32_t    n = 0;
    g->column[0] = g->columns = 1;
    json_object_foreach(gangs, gpus, row) {
        TRY(count(gpus, "GPUs", &n));
        TRY(put_axis(g->row, &g->rows, PROFILE_ROWS, n));
        if (!json_is_object(row))
            return err_set(ERR_PARSE, "%.40s GPUs: give {servers: speed}", gpus);
        json_object_foreach(row, servers, value) {
            TRY(count(servers, "servers", &n));
            TRY(put_axis(g->column, &g->columns, PROFILE_COLUMNS, n));
        }
    }
    if (g->rows == 0) return err_set(ERR_PARSE, "has no gangs");
    return ERR_OK;
}

static uint32_t at_axis(const double *axis, double x) {
    uint32_t i = 0;
    while (axis[i] != x) i++;
    return i;
}

static Err fill(json_t *gangs, ProfileGrid *g) {
    const char *gpus = NULL, *servers = NULL;
    json_t     *row = NULL, *value = NULL;
    uint32_t    n = 0;
    json_object_foreach(gangs, gpus, row) {
        TRY(count(gpus, "GPUs", &n));
        double *at = g->at[at_axis(g->row, n)];
        at[0] = 1;
        json_object_foreach(row, servers, value) {
            double x = json_is_number(value) ? json_number_value(value) : 0;
            TRY(count(servers, "servers", &n));
            if (!(x > 0 && x <= 2) || (n == 1 && x != 1))
                return err_set(ERR_PARSE,
                               "%.40s GPUs on %.40s servers: give a speed against one "
                               "server, which is 1",
                               gpus, servers);
            at[at_axis(g->column, n)] = fmin(1, x);
        }
    }
    return ERR_OK;
}

// An unmeasured point: interpolated between gangs on as many servers, or 0. Elsewhere speeds that
// rise with servers, which is measurement noise, are clipped.
static double guess(const ProfileGrid *g, uint32_t i, uint32_t k) {
    uint32_t lo = i, hi = i;
    while (lo > 0 && !(g->at[lo][k] > 0)) lo--;
    while (hi + 1 < g->rows && !(g->at[hi][k] > 0)) hi++;
    if (!(g->at[lo][k] > 0) || !(g->at[hi][k] > 0) || g->row[i] < g->column[k]) return 0;
    double way = (g->row[i] - g->row[lo]) / (g->row[hi] - g->row[lo]);
    return g->at[lo][k] * (1 - way) + g->at[hi][k] * way;
}

static void complete(ProfileGrid *g) {
    ProfileGrid full = *g;
    for (uint32_t i = 0; i < g->rows; i++)
        for (uint32_t k = 1; k < g->columns; k++) {
            double x = g->at[i][k] > 0 ? g->at[i][k] : guess(g, i, k);
            full.at[i][k] = x > 0 ? fmin(x, full.at[i][k - 1]) : full.at[i][k - 1];
        }
    *g = full;
}

static Err read_model(ProfileReader *r, const char *model, json_t *gangs) {
    ProfileGrid g = {0};
    uint32_t    x = 0;
    if (!json_is_object(gangs)) return err_set(ERR_PARSE, "give {gpus: {servers: speed}}");
    TRY(find_axes(gangs, &g));
    TRY(fill(gangs, &g));
    complete(&g);
    TRY(profile_class(r, model, &x));
    if (x != PROFILE_NONE) r->p->at[x].spread = g;
    return ERR_OK;
}

Err profile_read_chronus(ProfileReader *r, const json_t *doc) {
    const char *model = NULL;
    json_t     *gangs = NULL, *all = (json_t *)(uintptr_t)doc;
    json_object_foreach(all, model, gangs) {
        Err e = read_model(r, model, gangs);
        if (e != ERR_OK) return err_add(e, "%s: %.80s", r->name, model);
    }
    return ERR_OK;
}

// Gavel's inner keys are models in parentheses, Chronus' are numbers.
static bool is_gavel(json_t *doc) {
    json_t *first = json_object_iter_value(json_object_iter(doc));
    void   *inner = json_object_iter(first);
    return inner != NULL && json_object_iter_key(inner)[0] == '(';
}

Err profile_read_json(ProfileReader *r, const char *text, size_t len) {
    json_t *doc = NULL;
    TRY(json_parse(r->name, text, len, &doc));
    Err e = ERR_OK;
    if (json_object_size(doc) == 0)
        e = err_set(ERR_PARSE, "%s: has no profiles", r->name);
    else
        e = is_gavel(doc) ? profile_read_gavel_json(r, doc) : profile_read_chronus(r, doc);
    json_decref(doc);
    return e;
}
