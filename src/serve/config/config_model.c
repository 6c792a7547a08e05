// Settings of each model, layer by layer, and the versions of it to serve.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "serve/config/config_int.h"
#include "serve/models/pbtxt.h"

typedef struct Tenant {  // a model with settings being resolved
    ConfigBuilder *d;
    TenantSettings set;
    const char   **origins;
    bool           chosen;  // `versions` was set by a layer above config.pbtxt
    bool        declaring;  // reading config.pbtxt: its problems make only this model unavailable
    const char *broken;
    Settings    settings;
} Tenant;

typedef struct Row {
    ConfigModel model;
    uint64_t    number;
    const char *where;
} Row;

static Err tenant_init(Tenant *t, ConfigBuilder *d) {
    uint32_t n = 0;
    *t = (Tenant){.d = d};
    const Setting *rows = config_tenant_rows(&n);
    t->origins = arena_try_new(&d->c->arena, const char *, n);
    if (t->origins == NULL) return err_set(ERR_LIMIT, "out of memory for a model's settings");
    t->settings = (Settings){rows, n, &t->set, &d->c->arena};
    settings_default(&t->settings);
    for (uint32_t i = 0; i < n; i++) t->origins[i] = "built-in";
    return ERR_OK;
}

static void put(Tenant *t, const char *where, const char *key, const char *value) {
    if (!config_is_tenant(key)) return;
    Err e = config_set(&t->settings, t->origins, where, key, value, where);
    if (e != ERR_OK && t->declaring) {
        const char *why = config_format(&t->d->c->arena, "%s", err_why());
        t->broken = why != NULL ? why : "its config.pbtxt is invalid";
        return;
    }
    if (config_report(t->d->c, e) && strcmp(key, "versions") == 0) t->chosen = true;
}

static void put_layer(void *self, const char *where, const char *key, const char *value) {
    put(self, where, key, value);
}

static void put_lines(Tenant *t, uint32_t first, uint32_t n) {
    const ConfigFile *f = &t->d->file;
    for (uint32_t i = first; i < first + n; i++) {
        const char *where = config_format(&t->d->c->arena, "%s:%zu", f->path, f->lines[i].line);
        put(t, where != NULL ? where : f->path, f->lines[i].key, f->lines[i].text);
    }
}

static void put_defaults(Tenant *t) {
    for (uint32_t i = 0; i < t->d->file.n_lines; i++)
        if (t->d->file.lines[i].part == PART_DEFAULTS) put_lines(t, i, 1);
}

static void put_declared(Tenant *t, const RepositoryModel *m) {
    Arena *a = &t->d->c->arena;
    t->declaring = !t->d->c->serve.strict;
    for (uint32_t i = 0; m->declared != NULL && i < m->declared->n_sets; i++) {
        const PbtxtSet *s = &m->declared->sets[i];
        const char     *where = config_format(a, "config.pbtxt:%u of model %s", s->line, m->name);
        put(t, where != NULL ? where : m->pbtxt, s->key, s->value);
    }
    t->declaring = t->chosen = false;
}

static void put_items(Tenant *t, const ConfigFound *f) {
    for (uint32_t i = 0; i < t->d->file.n_items; i++) {
        const ConfigItem *it = &t->d->items[i];
        if (it->path == NULL && it->name != NULL && strcmp(it->name, f->model.name) == 0)
            put_lines(t, it->first, it->n);
    }
    if (f->item == CONFIG_NO_ITEM) return;
    put_lines(t, t->d->items[f->item].first, t->d->items[f->item].n);
}

static Err resolve(Tenant *t, ConfigBuilder *d, const ConfigFound *f) {
    TRY(tenant_init(t, d));
    put_defaults(t);
    put_declared(t, &f->model);
    put_items(t, f);
    config_builder_each_variable(d, put_layer, t);
    config_builder_each_flag(d, NULL, put_layer, t);
    config_builder_each_flag(d, f->model.name, put_layer, t);
    return ERR_OK;
}

static const char *wanted_version(const ConfigBuilder *d, const ConfigFound *f) {
    if (f->item != CONFIG_NO_ITEM) return d->items[f->item].version;
    for (uint32_t i = 0; i < d->file.n_items; i++) {
        const ConfigItem *it = &d->items[i];
        if (it->path == NULL && it->name != NULL && strcmp(it->name, f->model.name) == 0)
            return it->version;
    }
    return NULL;
}

static bool is_served(const Tenant *t, const RepositoryModel *m, uint32_t i) {
    const Pbtxt *p = m->declared;
    if (p != NULL && !t->chosen && p->policy == PBTXT_ALL_VERSIONS) return true;
    if (p != NULL && !t->chosen && p->policy == PBTXT_SPECIFIC_VERSIONS) {
        for (uint32_t k = 0; k < p->n_versions; k++)
            if (p->versions[k] == m->versions[i].number) return true;
        return false;
    }
    return m->n_versions - i <= (uint32_t)t->set.versions;
}

static Err add_row(ConfigBuilder *d, const Tenant *t, const ConfigFound *f,
                   const RepositoryVersion *v, Row *rows, uint32_t *n) {
    if (*n == CONFIG_MODELS)
        return err_set(ERR_CONFIG, "more than %d model versions; split them among servers",
                       CONFIG_MODELS);
    ConfigModel m = {.name = f->model.name,
                     .path = v->path,
                     .root = f->root,
                     .version = config_format(&d->c->arena, "%llu", (unsigned long long)v->number),
                     .set = t->set,
                     .origins = t->origins,
                     .pbtxt = f->model.pbtxt,
                     .from_disk = f->from_disk,
                     .broken = f->model.broken != NULL ? f->model.broken : t->broken,
                     .declared = f->model.declared,
                     .declared_policy = f->model.declared != NULL && !t->chosen};
    if (m.version == NULL) return err_set(ERR_LIMIT, "out of memory for a model's version");
    rows[(*n)++] = (Row){m, v->number, f->where};
    return ERR_OK;
}

// `version` of an entry names the version of a bare file, or selects the only one served of a
// folder.
static Err add_versions(ConfigBuilder *d, const Tenant *t, const ConfigFound *f, Row *rows,
                        uint32_t *n) {
    const RepositoryModel *m = &f->model;
    const char            *only = wanted_version(d, f);
    uint64_t               number = 0;
    uint32_t               before = *n;
    if (only != NULL && !repository_version(only, &number)) only = NULL;
    if (only != NULL && !f->from_disk) {
        RepositoryVersion v = {number, m->versions[0].path};
        return add_row(d, t, f, &v, rows, n);
    }
    for (uint32_t i = 0; i < m->n_versions; i++)
        if (only != NULL ? m->versions[i].number == number : is_served(t, m, i))
            TRY(add_row(d, t, f, &m->versions[i], rows, n));
    if (only != NULL && *n == before && m->broken == NULL)
        return err_set(ERR_CONFIG, "%s: model %s has no version %s", f->where, m->name, only);
    if (*n > before) return ERR_OK;
    RepositoryVersion none = {1, m->pbtxt != NULL ? m->pbtxt : m->name};
    TRY(add_row(d, t, f, &none, rows, n));
    if (m->broken == NULL)
        rows[*n - 1].model.broken = "its config.pbtxt selects versions that do not exist";
    return ERR_OK;
}

static int by_name(const void *x, const void *y) {
    const Row *a = x, *b = y;
    int        names = strcmp(a->model.name, b->model.name);
    return names != 0 ? names : (a->number > b->number) - (a->number < b->number);
}

static void take_rows(ConfigBuilder *d, Row *rows, uint32_t n) {
    Config *c = d->c;
    qsort(rows, n, sizeof *rows, by_name);
    for (uint32_t i = 0; i < n; i++) {
        if (i > 0 && by_name(&rows[i - 1], &rows[i]) == 0)
            (void)config_report(
                c,
                err_set(
                    ERR_CONFIG,
                    "%s: model %s is defined twice, by %s and by %s; rename one with NAME=PATH, or "
                    "give another version under models:",
                    rows[i].where, rows[i].model.name, rows[i - 1].model.path, rows[i].model.path));
        else
            c->models[c->n_models++] = rows[i].model;
    }
}

// Reported once, however many models there are.
static void unknown_key(ConfigBuilder *d, const char *where, const char *key, bool serve,
                        bool model) {
    const char *meant = config_nearest(key, serve, true, model);
    (void)config_report(d->c,
                        err_set(ERR_CONFIG, "%s: there is no setting %.100s; %s%s%s", where, key,
                                meant != NULL ? "did you mean " : "see docs/serve-config.md",
                                meant != NULL ? meant : "", meant != NULL ? "?" : ""));
}

static void check_lines(ConfigBuilder *d) {
    for (uint32_t i = 0; i < d->file.n_lines; i++) {
        const ConfigLine *l = &d->file.lines[i];
        bool              model = l->part == PART_MODELS;
        char              where[512];
        if ((l->part != PART_DEFAULTS && !model) || config_is_tenant(l->key)) continue;
        if (model && (strcmp(l->key, "name") == 0 || strcmp(l->key, "path") == 0 ||
                      strcmp(l->key, "version") == 0))
            continue;
        (void)snprintf(where, sizeof where, "%s:%zu", d->file.path, l->line);
        unknown_key(d, where, l->key, false, model);
    }
}

static void check_flag(void *self, const char *where, const char *key, const char *value) {
    (void)value;
    if (!config_is_tenant(key) && !config_is_serve(key)) unknown_key(self, where, key, true, false);
}

static void check_variable(void *self, const char *where, const char *key, const char *value) {
    static const char *const others[] = {"config", "isa",    "cluster_data", "long",
                                         "models", "cluster"};  // used elsewhere and in tests
    ConfigBuilder           *d = self;
    (void)value;
    for (uint32_t i = 0; i < 6; i++)
        if (strcmp(others[i], key) == 0) return;
    if (config_is_tenant(key) || config_is_serve(key)) return;
    const char *meant = config_nearest(key, true, true, false);
    config_warn(d->c, "environment variable %s is not a setting%s%s%s", where,
                meant != NULL ? "; did you mean the one for " : "", meant != NULL ? meant : "",
                meant != NULL ? "?" : "");
}

static void check_form(ConfigBuilder *d) {
    for (uint32_t i = 0; i < d->s->n_flags; i++) {
        const char *equals = strchr(d->s->flags[i], '=');
        if (equals == NULL || equals == d->s->flags[i] || equals - d->s->flags[i] >= 256)
            (void)config_report(d->c,
                                err_set(ERR_CONFIG,
                                        "command line: '%.100s' is not a setting; write KEY=VALUE "
                                        "or MODEL.KEY=VALUE",
                                        d->s->flags[i]));
    }
}

Err config_builder_models(ConfigBuilder *d) {
    Tenant   plain;
    uint32_t n = 0;
    Row     *rows = arena_try_new(&d->c->arena, Row, CONFIG_MODELS);
    if (rows == NULL) return err_set(ERR_LIMIT, "out of memory for models");
    check_form(d);
    check_lines(d);
    config_builder_each_flag(d, NULL, check_flag, d);
    config_builder_each_variable(d, check_variable, d);
    TRY(tenant_init(&plain, d));
    put_defaults(&plain);
    for (uint32_t i = 0; i < d->n_found; i++) {
        Tenant t;
        TRY(resolve(&t, d, &d->found[i]));
        config_builder_each_flag(d, d->found[i].model.name, check_flag, d);
        (void)config_report(d->c, add_versions(d, &t, &d->found[i], rows, &n));
    }
    take_rows(d, rows, n);
    return ERR_OK;
}
