// Finds the models: arguments, `sources:` and `models:` of the file.
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/text.h"
#include "model/zoo/zoo.h"
#include "serve/config/config_int.h"

static void add_warning(void *self, const char *text) { config_warn(self, "%s", text); }

static bool is_folder(const char *path) {
    struct stat st;
    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

// Paths in a file are relative to its folder.
static const char *resolve_path(const ConfigBuilder *d, const char *path) {
    const char *slash = d->file.path != NULL ? strrchr(d->file.path, '/') : NULL;
    if (path[0] == '/' || strncmp(path, "zoo:", 4) == 0 || slash == NULL) return path;
    return config_format(&d->c->arena, "%.*s/%s", (int)(slash - d->file.path), d->file.path, path);
}

static const char *stem(const ConfigBuilder *d, const char *path) {
    const char *slash = strrchr(path, '/'), *base = slash != NULL ? slash + 1 : path;
    if (strncmp(path, "zoo:", 4) == 0) return path + 4;
    size_t n = strlen(base);
    if (n > 5 && strcmp(base + n - 5, ".onnx") == 0) n -= 5;
    return config_format(&d->c->arena, "%.*s", (int)n, base);
}

static Err check_zoo(const char *name) {
    const char *known[128];
    size_t      n = 0;
    if (zoo_find(name) != NULL) return ERR_OK;
    for (; n < 128 && zoo_entry(n) != NULL; n++) known[n] = zoo_entry(n)->name;
    const char *meant = text_nearest(name, known, n);
    if (meant == NULL)
        return err_set(ERR_CONFIG, "no network %.60s in the zoo; see cotenant zoo list", name);
    return err_set(ERR_CONFIG, "no network %.60s in the zoo; did you mean zoo:%s?", name, meant);
}

static Err check_file(const char *path) {
    struct stat st;
    if (strncmp(path, "zoo:", 4) == 0) return check_zoo(path + 4);
    bool there = stat(path, &st) == 0;
    if (!there && errno != ENOENT && errno != ENOTDIR)
        return err_set(ERR_CONFIG, "cannot access %s: %s", path, strerror(errno));
    if (!there)
        return err_set(ERR_CONFIG, "%s does not exist; give a folder, a file FILE.onnx or zoo:NAME",
                       path);
    size_t n = strlen(path);
    if (n > 5 && strcmp(path + n - 5, ".yaml") == 0)
        return err_set(ERR_CONFIG, "%s is a second configuration file; give one", path);
    if (S_ISREG(st.st_mode)) return ERR_OK;
    return err_set(ERR_CONFIG, "%s is neither a folder nor a regular file", path);
}

static Err bad_name(const char *name) {
    return err_set(ERR_CONFIG,
                   "'%.130s' is not a valid model name; use letters, digits, '.', '_' and '-', at "
                   "most 128, a letter or digit first: NAME=FILE sets another name",
                   name);
}

// Splits "NAME=PATH"; *name stays NULL without a name.
static const char *take_name(const ConfigBuilder *d, const char *text, const char **name) {
    const char *equals = strchr(text, '=');
    struct stat st;
    if (equals == NULL || !config_valid_name(text, (size_t)(equals - text)) || stat(text, &st) == 0)
        return text;
    *name = config_format(&d->c->arena, "%.*s", (int)(equals - text), text);
    return equals + 1;
}

// name NULL: the source's own.
static Err find_models(const ConfigBuilder *d, Repository *r, const char *path, const char *name,
                       bool *folder) {
    if (path == NULL) return err_set(ERR_LIMIT, "out of memory for a source's path");
    *folder = is_folder(path);
    if (*folder) return name != NULL ? repository_model(r, path, name) : repository_scan(r, path);
    TRY(check_file(path));
    if (name == NULL) name = stem(d, path);
    if (name == NULL || !config_valid_name(name, strlen(name)))
        return bad_name(name != NULL ? name : path);
    return repository_file(r, path, name);
}

static Err add_source(ConfigBuilder *d, const char *where, const char *path, const char *name,
                      uint32_t item) {
    Config    *c = d->c;
    Repository r = {.arena = &c->arena, .strict = c->serve.strict, .warn = add_warning, .self = c};
    bool       folder = false;
    Err        e = find_models(d, &r, path, name, &folder);
    if (e != ERR_OK) return err_add(ERR_CONFIG, "%s", where);
    for (uint32_t i = 0; i < r.n; i++) {
        if (d->n_found == CONFIG_MODELS)
            return err_set(ERR_CONFIG, "%s: more than %d models; split them among servers", where,
                           CONFIG_MODELS);
        d->found[d->n_found++] = (ConfigFound){
            .model = r.models[i], .where = where, .root = path, .item = item, .from_disk = folder};
    }
    if (r.n == 0)
        config_warn(c, "%s: no model found; expected MODEL/1/model.onnx, or files *.onnx", path);
    return ERR_OK;
}

static void file_sources(ConfigBuilder *d, uint32_t *n) {
    for (uint32_t i = 0; i < d->file.n_lines; i++) {
        const ConfigLine *l = &d->file.lines[i];
        if (l->part != PART_SOURCES) continue;
        const char *where = config_format(&d->c->arena, "%s:%zu", d->file.path, l->line);
        (void)config_report(d->c, add_source(d, where != NULL ? where : d->file.path,
                                             resolve_path(d, l->text), NULL, CONFIG_NO_ITEM));
        (*n)++;
    }
}

static Err add_item(ConfigBuilder *d, uint32_t i) {
    ConfigItem *it = &d->items[i];
    const char *where = config_format(&d->c->arena, "%s:%zu", d->file.path, it->line);
    if (where == NULL) where = d->file.path;
    if (it->n == 0) return ERR_OK;
    uint64_t version = 0;
    if (it->version != NULL && !repository_version(it->version, &version))
        return err_set(ERR_CONFIG, "%s: version '%.40s' is not a whole number from 1 on", where,
                       it->version);
    if (it->name != NULL && !config_valid_name(it->name, strlen(it->name))) {
        (void)bad_name(it->name);
        return err_add(ERR_CONFIG, "%s", where);
    }
    if (it->path == NULL && it->name == NULL)
        return err_set(ERR_CONFIG, "%s: a model needs a name or a path; add one", where);
    if (it->path == NULL) return ERR_OK;
    it->used = true;
    return add_source(d, where, resolve_path(d, it->path), it->name, i);
}

static bool has_model(const ConfigBuilder *d, const char *name) {
    for (uint32_t i = 0; i < d->n_found; i++)
        if (strcmp(d->found[i].model.name, name) == 0) return true;
    return false;
}

static Err no_such_model(const ConfigBuilder *d, const char *where, const char *name) {
    const char *known[256];
    size_t      n = 0;
    for (; n < 256 && n < d->n_found; n++) known[n] = d->found[n].model.name;
    char hint[TEXT_MEANT];
    return err_set(ERR_CONFIG, "%s: no source has a model %.128s; %s", where, name,
                   text_meant(name, known, n, "give its path, or the folder that it is in", hint));
}

// Settings for models that no source has are errors.
static void check_used(ConfigBuilder *d) {
    for (uint32_t i = 0; i < d->file.n_items; i++) {
        const ConfigItem *it = &d->items[i];
        char              where[512];
        if (it->path != NULL || it->name == NULL || has_model(d, it->name)) continue;
        (void)snprintf(where, sizeof where, "%s:%zu", d->file.path, it->line);
        (void)config_report(d->c, no_such_model(d, where, it->name));
    }
    for (uint32_t i = 0; i < d->s->n_flags; i++) {
        const char *flag = d->s->flags[i], *equals = strchr(flag, '=');
        char        left[256];
        size_t      n = equals != NULL ? (size_t)(equals - flag) : 0;
        if (n == 0 || n >= sizeof left) continue;
        memcpy(left, flag, n);
        left[n] = '\0';
        char *dot = strrchr(left, '.');
        if (dot == NULL) continue;
        *dot = '\0';
        if (!has_model(d, left)) (void)config_report(d->c, no_such_model(d, "command line", left));
    }
}

// Default models: small networks that load fast, two for images and one for speech.
static void zoo_models(ConfigBuilder *d) {
    static const char *const names[] = {"squeezenet", "mobilenet", "keyword"};
    static const char *const paths[] = {"zoo:squeezenet1_1", "zoo:mobilenet_v2", "zoo:lstm_kws"};
    for (uint32_t i = 0; i < 3; i++)
        (void)config_report(d->c, add_source(d, "built-in", paths[i], names[i], CONFIG_NO_ITEM));
}

Err config_builder_sources(ConfigBuilder *d) {
    uint32_t n = 0;
    d->found = arena_try_new(&d->c->arena, ConfigFound, CONFIG_MODELS);
    if (d->found == NULL) return err_set(ERR_LIMIT, "out of memory for models");
    for (uint32_t i = 0; i < d->s->n_sources; i++, n++) {
        const char *name = NULL, *path = take_name(d, d->s->sources[i], &name);
        (void)config_report(d->c, add_source(d, "command line", path, name, CONFIG_NO_ITEM));
    }
    if (d->file.path != NULL) file_sources(d, &n);
    for (uint32_t i = 0; i < d->file.n_items; i++) {
        (void)config_report(d->c, add_item(d, i));
        n += d->items[i].path != NULL;
    }
    if (n == 0) zoo_models(d);
    check_used(d);
    return ERR_OK;
}
