// Gavel's own files: {type: {"('MODEL', gang)": {"null": steps/s, "('OTHER', gang)": [mine,
// its]}}}.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cluster/profile_int.h"

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
