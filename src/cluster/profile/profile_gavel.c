// Gavel's measurements: steps per second by GPU type and gang, on one server or spread, and of two
// jobs on one GPU; as CSV and as Gavel's JSON.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "cluster/profile/profiles_int.h"

enum { TYPE, MODEL, SCALE, STEPS, SINGLE_COLUMNS };
static const char *const single_columns[] = {"gpu_type", "model", "scale_factor", "steps_per_s"};

enum { PAIR_TYPE, MODEL1, SCALE1, MODEL2, SCALE2, NORM1, NORM2, PAIR_COLUMNS };
static const char *const pair_columns[] = {"gpu_type", "model1", "sf1",  "model2",
                                           "sf2",      "norm1",  "norm2"};

static const char apart[] = "_unconsolidated";

Err profile_gavel_begin(ProfileReader *r, ProfileGavel **out) {
    ProfileGavel *g = arena_try_new(r->arena, ProfileGavel, 1);
    if (g == NULL) return err_set(ERR_LIMIT, "no memory for profiles");
    *out = g;
    return ERR_OK;
}

static bool of_type(const ProfileReader *r, const char *type) {
    return profile_same(type, r->o->gpu_type != NULL ? r->o->gpu_type : "v100");
}

// Index of a gang size in the ascending list; inserts it.
static Err scale_place(ProfileGavel *g, uint32_t scale, uint32_t *out) {
    uint32_t i = 0;
    while (i < g->n_scales && g->scale[i] < scale) i++;
    if (i == g->n_scales || g->scale[i] != scale) {
        if (g->n_scales == PROFILE_GAVEL_SCALES)
            return err_set(ERR_LIMIT, "more than %d sizes of gangs", PROFILE_GAVEL_SCALES);
        for (uint32_t k = g->n_scales++; k > i; k--) {
            g->scale[k] = g->scale[k - 1];
            for (uint32_t x = 0; x < PROFILE_CLASSES; x++)
                for (int a = 0; a < 2; a++) g->steps[x][a][k] = g->steps[x][a][k - 1];
        }
        for (uint32_t x = 0; x < PROFILE_CLASSES; x++) g->steps[x][0][i] = g->steps[x][1][i] = 0;
        g->scale[i] = scale;
    }
    *out = i;
    return ERR_OK;
}

Err profile_gavel_steps(ProfileReader *r, ProfileGavel *g, const char *type, const char *model,
                        double scale, double steps) {
    char        name[64];
    uint32_t    x = 0, t = 0, at = 0, gang = (uint32_t)scale;
    const char *tail = strstr(type, apart);
    bool        spread = tail != NULL && strcmp(tail, apart) == 0;
    size_t      len = spread ? (size_t)(tail - type) : strlen(type);
    if (len == 0 || len >= sizeof name || gang != scale || gang == 0)
        return err_set(ERR_PARSE, "'%.80s' with %g GPUs is no type and gang", type, scale);
    memcpy(name, type, len);
    name[len] = '\0';
    TRY(profile_class(r, model, &x));
    TRY(profile_type_named(r, name, &t));
    if (x == PROFILE_NONE || !(steps > 1e-9)) return ERR_OK;  // 0: it does not fit on that GPU
    if (gang == 1 && !spread && !r->o->fold) r->p->at[x].iteration_s[t] = 1 / steps;
    if (gang == 1 && !spread) {
        g->by_type[x][t].log_steps += log(steps);
        g->by_type[x][t].n++;
    }
    if (!of_type(r, name)) return ERR_OK;
    TRY(scale_place(g, gang, &at));
    g->steps[x][spread][at] = steps + (r->o->fold ? g->steps[x][spread][at] : 0);
    return ERR_OK;
}

Err profile_gavel_pair(ProfileReader *r, ProfileGavel *g, const char *const model[2],
                       const double speed[2]) {
    uint32_t x[2];
    bool     fit = speed[0] > 0 && speed[1] > 0;
    for (int i = 0; i < 2; i++) TRY(profile_class(r, model[i], &x[i]));
    if (x[0] == PROFILE_NONE || x[1] == PROFILE_NONE) return ERR_OK;
    for (int i = 0; i < 2; i++) {
        struct ProfileGavelPair *pair = &g->pair[i][x[i]][x[1 - i]];
        pair->sum += fit ? fmin(1, speed[i]) : 0;
        pair->fits += fit;
        pair->n++;
    }
    return ERR_OK;
}

// Rate of x beside y; 0: most pairs do not fit; below 0: not measured.
static double measured(const ProfileGavel *g, uint32_t x, uint32_t y) {
    const struct ProfileGavelPair *pair = &g->pair[0][x][y];
    if (pair->n == 0) pair = &g->pair[1][x][y];
    if (pair->n == 0) return -1;
    return pair->fits > 0 && 2 * (uint64_t)pair->fits >= pair->n ? pair->sum / pair->fits : 0;
}

// "Unconsolidated" is one GPU per server; fewer servers are interpolated.
static void take_spread(ClusterProfile *c, const ProfileGavel *g, uint32_t x) {
    ProfileGrid s = {.columns = 1, .column = {1}};
    for (uint32_t i = 0; i < g->n_scales; i++)
        if (g->scale[i] > 1) s.column[s.columns++] = g->scale[i];
    for (uint32_t i = 0; i < g->n_scales; i++) {
        double together = g->steps[x][0][i], alone = g->steps[x][1][i], gang = g->scale[i];
        if (gang < 2 || !(together > 0) || !(alone > 0)) continue;
        s.row[s.rows] = gang;
        for (uint32_t k = 0; k < s.columns; k++) {
            double way = (fmin(s.column[k], gang) - 1) / (gang - 1);
            s.at[s.rows][k] = 1 - (1 - fmin(1, alone / together)) * way;
        }
        s.rows++;
    }
    if (s.rows > 0) c->spread = s;
}

// GPU utilization that explains the slowdown of two jobs of the class.
static void take_util(ClusterProfiles *p, const ProfileGavel *g, uint32_t x) {
    double twin = measured(g, x, x);
    if (twin < 0) return;
    p->at[x].gpu_util = twin > 0 ? fmin(1, 0.5 / twin) : 1;
    profile_guess_pairs(p, x);
}

// Into an existing class: its iteration by type, relative to type 0, where as many of its models
// fit on both.
static void take_types(ClusterProfile *c, const ProfileGavel *g, uint32_t x) {
    const struct ProfileGavelType *of = g->by_type[x];
    for (uint32_t t = 1; t < PROFILE_TYPES; t++)
        if (of[t].n > 0 && of[t].n == of[0].n && c->iteration_s[0] > 0)
            c->iteration_s[t] =
                c->iteration_s[0] * exp((of[0].log_steps - of[t].log_steps) / of[t].n);
}

void profile_gavel_take(ProfileReader *r, const ProfileGavel *g) {
    ClusterProfiles *p = r->p;
    for (uint32_t x = 0; r->o->fold && x < p->n; x++) take_types(&p->at[x], g, x);
    for (uint32_t x = 0; x < p->n; x++) take_spread(&p->at[x], g, x);
    for (uint32_t x = 0; x < p->n; x++) take_util(p, g, x);
    for (uint32_t x = 0; x < p->n; x++)
        for (uint32_t y = 0; y < p->n; y++)
            if (measured(g, x, y) >= 0)
                p->pair[(size_t)x * PROFILE_CLASSES + y] =
                    measured(g, y, x) != 0 ? measured(g, x, y) : 0;
}

Err profile_read_gavel(ProfileReader *r, Csv *c) {
    uint32_t      field[SINGLE_COLUMNS], fields = c->n, rows = 0;
    ProfileGavel *g = NULL;
    TRY(profile_columns(c, single_columns, SINGLE_COLUMNS, field));
    TRY(profile_gavel_begin(r, &g));
    for (bool more = true;; rows++) {
        double scale = 0, steps = 0;
        TRY(profile_row(c, fields, &more));
        if (!more) break;
        TRY(profile_number(c, field[SCALE], single_columns[SCALE], 1, 4096, &scale));
        TRY(profile_number(c, field[STEPS], single_columns[STEPS], 0, 1e6, &steps));
        Err e =
            profile_gavel_steps(r, g, c->field[field[TYPE]], c->field[field[MODEL]], scale, steps);
        if (e != ERR_OK) return err_add(e, "%s:%zu", c->name, c->line);
    }
    if (rows == 0) return err_set(ERR_PARSE, "%s: has a header and no rows", r->name);
    profile_gavel_take(r, g);
    return ERR_OK;
}

Err profile_read_gavel_pairs(ProfileReader *r, Csv *c) {
    uint32_t      field[PAIR_COLUMNS], fields = c->n, found = 0;
    ProfileGavel *g = NULL;
    TRY(profile_columns(c, pair_columns, PAIR_COLUMNS, field));
    TRY(profile_gavel_begin(r, &g));
    for (bool more = true;;) {
        double scale[2], speed[2];
        TRY(profile_row(c, fields, &more));
        if (!more) break;
        TRY(profile_number(c, field[SCALE1], pair_columns[SCALE1], 1, 4096, &scale[0]));
        TRY(profile_number(c, field[SCALE2], pair_columns[SCALE2], 1, 4096, &scale[1]));
        TRY(profile_number(c, field[NORM1], pair_columns[NORM1], 0, 10, &speed[0]));
        TRY(profile_number(c, field[NORM2], pair_columns[NORM2], 0, 10, &speed[1]));
        if (scale[0] != 1 || scale[1] != 1 || !of_type(r, c->field[field[PAIR_TYPE]])) continue;
        const char *model[2] = {c->field[field[MODEL1]], c->field[field[MODEL2]]};
        Err         e = profile_gavel_pair(r, g, model, speed);
        if (e != ERR_OK) return err_add(e, "%s:%zu", c->name, c->line);
        found++;
    }
    if (found == 0)
        return err_set(ERR_PARSE, "%s: has no pair on one GPU of type %.40s", r->name,
                       r->o->gpu_type != NULL ? r->o->gpu_type : "v100");
    profile_gavel_take(r, g);
    return ERR_OK;
}

// Gavel's JSON: {type: {"('MODEL', gang)": {"null": steps/s, "('OTHER', gang)": [mine,
// its]}}}.

typedef struct Key {
    char     model[128];
    uint32_t gang;
} Key;

static Err read_key(const char *text, Key *out) {
    const char *end = NULL, *quote = text + strlen(text);
    while (quote > text && *quote != '\'') quote--;
    size_t len = (size_t)(quote - text);
    if (strncmp(text, "('", 2) != 0 || len < 3 || len - 2 >= sizeof out->model ||
        strncmp(quote, "', ", 3) != 0)
        return err_set(ERR_PARSE, "'%.80s' is no key like ('model', 1)", text);
    memcpy(out->model, text + 2, len - 2);
    out->model[len - 2] = '\0';
    out->gang = 0;
    for (end = quote + 3; *end >= '0' && *end <= '9' && out->gang < 4096; end++)
        out->gang = out->gang * 10 + (uint32_t)(*end - '0');
    if (strcmp(end, ")") != 0 || out->gang == 0 || out->gang > 4096)
        return err_set(ERR_PARSE, "'%.80s' is no key like ('model', 1)", text);
    return ERR_OK;
}

static Err number(const json_t *v, double *out) {
    double x = json_is_number(v) ? json_number_value(v) : -1;
    if (!(x >= 0 && x <= 1e6)) return err_set(ERR_PARSE, "steps a second are 0 to 1000000");
    *out = x;
    return ERR_OK;
}

static Err alone(const json_t *models, const char *key, double *out) {
    return number(json_object_get(json_object_get(models, key), "null"), out);
}

static Err read_pair(ProfileReader *r, ProfileGavel *g, const json_t *models, const char *mine,
                     const char *other, const json_t *both) {
    Key    key[2];
    double steps[2], iso[2], speed[2] = {0};
    TRY(read_key(mine, &key[0]));
    TRY(read_key(other, &key[1]));
    if (json_array_size(both) != 2) return err_set(ERR_PARSE, "a pair has two numbers");
    TRY(alone(models, mine, &iso[0]));
    Err e = alone(models, other, &iso[1]);
    if (e != ERR_OK) return err_add(e, "'%.80s' alone", other);
    for (size_t i = 0; i < 2; i++) {
        TRY(number(json_array_get(both, i), &steps[i]));
        if (iso[i] > 0) speed[i] = steps[i] / iso[i];
    }
    if (key[0].gang != 1 || key[1].gang != 1) return ERR_OK;
    const char *const model[2] = {key[0].model, key[1].model};
    return profile_gavel_pair(r, g, model, speed);
}

static Err read_model(ProfileReader *r, ProfileGavel *g, const char *type, const json_t *models,
                      const char *name, json_t *with) {
    const char *wanted = r->o->gpu_type != NULL ? r->o->gpu_type : "v100", *other = NULL;
    json_t     *value = NULL;
    Key         key;
    double      steps = 0;
    TRY(read_key(name, &key));
    TRY(alone(models, name, &steps));
    TRY(profile_gavel_steps(r, g, type, key.model, key.gang, steps));
    json_object_foreach(with, other, value) {
        if (strcmp(other, "null") == 0 || !profile_same(type, wanted)) continue;
        Err e = read_pair(r, g, models, name, other, value);
        if (e != ERR_OK) return err_add(e, "%.80s", other);
    }
    return ERR_OK;
}

Err profile_read_gavel_json(ProfileReader *r, const json_t *doc) {
    const char   *type = NULL, *name = NULL;
    json_t       *models = NULL, *with = NULL, *all = (json_t *)(uintptr_t)doc;
    ProfileGavel *g = NULL;
    TRY(profile_gavel_begin(r, &g));
    json_object_foreach(all, type, models) {
        json_object_foreach(models, name, with) {
            Err e = read_model(r, g, type, models, name, with);
            if (e != ERR_OK) return err_add(e, "%s: %.40s: %.80s", r->name, type, name);
        }
    }
    profile_gavel_take(r, g);
    return ERR_OK;
}
