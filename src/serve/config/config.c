#include "serve/config/config.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/text.h"
#include "net/listener.h"
#include "node/host.h"
#include "serve/config/config_int.h"
#include "serve/observe/logger.h"

enum { ARENA_BYTES = 1 << 28 };

static const Setting serve_rows[] = {
#define X(...) SETTING_ROW(ServeSettings, __VA_ARGS__)
    SERVE_SETTINGS(X)
#undef X
};

static const Setting tenant_rows[] = {
#define X(...) SETTING_ROW(TenantSettings, __VA_ARGS__)
    TENANT_SETTINGS(X)
#undef X
};
enum {
    N_SERVE = sizeof serve_rows / sizeof *serve_rows,
    N_TENANT = sizeof tenant_rows / sizeof *tenant_rows
};
_Static_assert((int)N_SERVE <= (int)CONFIG_ROWS && (int)N_TENANT <= (int)CONFIG_ROWS,
               "room for rows");

const Setting *config_serve_rows(uint32_t *n) {
    *n = N_SERVE;
    return serve_rows;
}

const Setting *config_tenant_rows(uint32_t *n) {
    *n = N_TENANT;
    return tenant_rows;
}

static bool is_row(const Setting *rows, size_t n, const char *key) {
    for (size_t i = 0; i < n; i++)
        if (strcmp(rows[i].key, key) == 0) return true;
    return false;
}

bool config_is_serve(const char *key) { return is_row(serve_rows, N_SERVE, key); }

bool config_is_tenant(const char *key) { return is_row(tenant_rows, N_TENANT, key); }

const char *config_nearest(const char *word, bool serve, bool tenant, bool model) {
    const char *known[2 * CONFIG_ROWS + 6];
    size_t      n = 0;
    for (size_t i = 0; serve && i < N_SERVE; i++) known[n++] = serve_rows[i].key;
    for (size_t i = 0; tenant && i < N_TENANT; i++) known[n++] = tenant_rows[i].key;
    if (serve && !tenant) {
        known[n++] = "models";
        known[n++] = "defaults";
        known[n++] = "sources";
    }
    if (model) {
        known[n++] = "name";
        known[n++] = "path";
        known[n++] = "version";
    }
    return text_nearest(word, known, n);
}

bool config_valid_name(const char *name, size_t len) {
    if (len == 0 || len > 128 || name[0] == '.' || name[0] == '_' || name[0] == '-') return false;
    for (size_t i = 0; i < len; i++) {
        char ch = name[i];
        bool letter = (ch >= 'A' && ch <= 'Z') || (ch >= 'a' && ch <= 'z');
        if (!letter && !(ch >= '0' && ch <= '9') && ch != '.' && ch != '_' && ch != '-')
            return false;
    }
    return true;
}

char *config_format(Arena *a, const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    char *s = arena_try_vprintf(a, fmt, ap);
    va_end(ap);
    return s;
}

void config_warn(Config *c, const char *fmt, ...) {
    va_list ap;
    if (c->n_warnings == CONFIG_NOTES) return;
    va_start(ap, fmt);
    char *s = c->n_warnings + 1 < CONFIG_NOTES
                  ? arena_try_vprintf(&c->arena, fmt, ap)
                  : config_format(&c->arena, "further warnings omitted");
    va_end(ap);
    if (s != NULL) c->warnings[c->n_warnings++] = s;
}

bool config_report(Config *c, Err e) {
    if (e == ERR_OK) return true;
    for (uint32_t i = 0; i < c->n_problems; i++)  // a wrong default is found once per model
        if (strcmp(c->problems[i], err_why()) == 0) return false;
    if (c->n_problems == CONFIG_NOTES) return false;
    char *s = config_format(&c->arena, "%s", err_why()[0] != '\0' ? err_why() : err_text(e));
    c->problems[c->n_problems++] = s != NULL ? s : "out of memory for an error message";
    return false;
}

static Err copy_texts(Arena *a, const char *const *from, uint32_t n, const char *const **out) {
    const char **to = arena_try_new(a, const char *, (size_t)n + 1);
    for (uint32_t i = 0; to != NULL && i < n; i++) {
        to[i] = config_format(a, "%s", from[i]);
        if (to[i] == NULL) to = NULL;
    }
    if (to == NULL) return err_set(ERR_LIMIT, "out of memory for the configuration's sources");
    *out = to;
    return ERR_OK;
}

// Only variables that begin with COTENANT_.
static Err copy_environment(Arena *a, char *const *from, char *const **out) {
    uint32_t n = 0, all = 0;
    while (from != NULL && from[all] != NULL) all++;
    char **to = arena_try_new(a, char *, (size_t)all + 1);
    for (uint32_t i = 0; to != NULL && i < all; i++) {
        if (strncmp(from[i], "COTENANT_", 9) != 0) continue;
        to[n] = config_format(a, "%s", from[i]);
        if (to[n++] == NULL) to = NULL;
    }
    if (to == NULL) return err_set(ERR_LIMIT, "out of memory for the environment");
    *out = to;
    return ERR_OK;
}

static bool is_yaml(const char *path) {
    size_t n = strlen(path);
    return (n > 5 && strcmp(path + n - 5, ".yaml") == 0) ||
           (n > 4 && strcmp(path + n - 4, ".yml") == 0);
}

// A YAML file among the sources is the configuration file.
static void take_file(ConfigSources *k) {
    const char **to = (const char **)(uintptr_t)k->sources;
    uint32_t     n = 0;
    for (uint32_t i = 0; i < k->n_sources; i++)
        if (k->file == NULL && is_yaml(to[i]))
            k->file = to[i];
        else
            to[n++] = to[i];
    k->n_sources = n;
}

static Err keep_sources(Config *c, const ConfigSources *s) {
    Arena *a = &c->arena;
    c->loaded_from =
        (ConfigSources){.n_sources = s->n_sources, .n_flags = s->n_flags, .cores = s->cores};
    TRY(copy_texts(a, s->sources, s->n_sources, &c->loaded_from.sources));
    TRY(copy_texts(a, s->flags, s->n_flags, &c->loaded_from.flags));
    TRY(copy_environment(a, s->environment, &c->loaded_from.environment));
    if (s->file != NULL && (c->loaded_from.file = config_format(a, "%s", s->file)) == NULL)
        return err_set(ERR_LIMIT, "out of memory for the file's name");
    take_file(&c->loaded_from);
    return ERR_OK;
}

static Err begin(Config *c, const ConfigSources *s) {
    Settings all = {serve_rows, N_SERVE, &c->serve, &c->arena};
    c->origins = arena_try_new(&c->arena, const char *, N_SERVE);
    c->warnings = arena_try_new(&c->arena, const char *, CONFIG_NOTES);
    c->problems = arena_try_new(&c->arena, const char *, CONFIG_NOTES);
    c->models = arena_try_new(&c->arena, ConfigModel, CONFIG_MODELS);
    if (c->origins == NULL || c->warnings == NULL || c->problems == NULL || c->models == NULL)
        return err_set(ERR_LIMIT, "out of memory for the configuration");
    settings_default(&all);
    for (uint32_t i = 0; i < N_SERVE; i++) c->origins[i] = "built-in";
    return keep_sources(c, s);
}

// Contradictions between settings.

static const char *find_origin(const Setting *rows, uint32_t n, const char **origins,
                               const char *key) {
    for (uint32_t i = 0; i < n; i++)
        if (strcmp(rows[i].key, key) == 0) return origins[i];
    return "";
}

static const char *origin_of(const Config *c, const char *key) {
    return find_origin(serve_rows, N_SERVE, c->origins, key);
}

static const char *tenant_origin(const ConfigModel *m, const char *key) {
    return find_origin(tenant_rows, N_TENANT, m->origins, key);
}

static Err check_address(const Config *c, const char *key, const char *address) {
    const char *where = origin_of(c, key);
    bool        local = false;
    if (strcmp(address, "off") == 0) return ERR_OK;
    Err e = listener_is_local(address, &local);
    if (e != ERR_OK) return err_add(ERR_CONFIG, "%s: %s", where, key);
    if (local || c->serve.expose) return ERR_OK;
    return err_set(ERR_CONFIG,
                   "%s: %s: other machines can reach %s; use 127.0.0.1, or allow it with --expose "
                   "(expose: true in a file)",
                   where, key, address);
}

// Two listeners cannot share an address; port 0 is a different port each time.
static Err check_apart(const Config *c, const char *const *keys, const char *const *at,
                       uint32_t n) {
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t k = i + 1; k < n; k++) {
            size_t len = strlen(at[i]);
            bool   any = len > 2 && strcmp(at[i] + len - 2, ":0") == 0;
            if (!any && strcmp(at[i], "off") != 0 && strcmp(at[i], at[k]) == 0)
                return err_set(ERR_CONFIG, "%s: %s and %s are both %s; use different ports",
                               origin_of(c, keys[k]), keys[i], keys[k], at[i]);
        }
    return ERR_OK;
}

static Err check_limits(const Config *c) {
    const ServeSettings *s = &c->serve;
    if (s->buffered_mb < s->body_mb)
        return err_set(ERR_CONFIG,
                       "%s: buffered_mb: %d MiB for all bodies is less than body_mb = %d; raise "
                       "buffered_mb or lower body_mb",
                       origin_of(c, "buffered_mb"), s->buffered_mb, s->body_mb);
    return ERR_OK;
}

static int cores_of(const Config *c) {  // 0: unknown
    return c->serve.cores > 0 ? c->serve.cores : (int)c->loaded_from.cores;
}

static Err check_model(const Config *c, const ConfigModel *m) {
    const TenantSettings *t = &m->set;
    if (t->max_cores > 0 && t->min_cores > t->max_cores)
        return err_set(
            ERR_CONFIG,
            "%s: model %s: min_cores %d is more than max_cores %d; lower one or raise the "
            "other",
            tenant_origin(m, "min_cores"), m->name, t->min_cores, t->max_cores);
    if (cores_of(c) > 0 && t->min_cores > cores_of(c))
        return err_set(ERR_CONFIG, "%s: model %s: min_cores %d is more than all %d cores",
                       tenant_origin(m, "min_cores"), m->name, t->min_cores, cores_of(c));
    return ERR_OK;
}

static Err check_cores(const Config *c) {
    uint32_t allowed = c->loaded_from.cores;
    if (allowed == 0 || c->serve.cores <= (int)allowed) return ERR_OK;
    return err_set(ERR_CONFIG,
                   "%s: cores is %d, but CPU affinity and quota allow %u; lower it, or use 0 for "
                   "all of them",
                   origin_of(c, "cores"), c->serve.cores, allowed);
}

static Err check_reserved(const Config *c) {
    int sum = 0, most = 0, cores = cores_of(c);
    for (uint32_t i = 0; i < c->n_models; i++) {
        int own = c->models[i].set.min_cores;
        if (i == 0 || strcmp(c->models[i - 1].name, c->models[i].name) != 0) sum += own;
        if (own > most) most = own;
    }
    if (cores == 0 || sum <= cores || most > cores) return ERR_OK;  // check_model reports the last
    return err_set(ERR_CONFIG, "models reserve %d cores (min_cores), but there are %d; lower some",
                   sum, cores);
}

static void validate(ConfigBuilder *d) {
    Config                  *c = d->c;
    static const char *const keys[] = {"http", "grpc", "metrics", "admin"};
    bool own = strcmp(c->serve.admin, "http") != 0;  // otherwise on the addresses of inference
    const char *const at[] = {c->serve.http, c->serve.grpc, c->serve.metrics,
                              own ? c->serve.admin : "off"};
    for (uint32_t i = 0; i < 4; i++) (void)config_report(c, check_address(c, keys[i], at[i]));
    (void)config_report(c, check_apart(c, keys, at, 4));
    (void)config_report(c, check_limits(c));
    (void)config_report(c, check_cores(c));
    (void)config_report(c, check_reserved(c));
    for (uint32_t i = 0; i < c->n_models; i++)
        (void)config_report(c, check_model(c, &c->models[i]));
}

static Err read_layers(Config *c) {
    ConfigBuilder d = {.c = c, .s = &c->loaded_from};
    bool          whole = config_report(c, config_builder_read_file(&d));
    if (d.file.path != NULL)
        c->loaded_from.file = d.file.path;  // COTENANT_CONFIG may have named it
    TRY(config_builder_server(&d));
    if (!whole) return ERR_OK;  // it may name models, which would be reported missing
    TRY(config_builder_sources(&d));
    TRY(config_builder_models(&d));
    validate(&d);
    return ERR_OK;
}

Err config_read(Config *c, const ConfigSources *s) {
    *c = (Config){0};
    TRY(arena_init(&c->arena, ARENA_BYTES));
    Err e = begin(c, s);
    if (e == ERR_OK) e = read_layers(c);
    if (e != ERR_OK) config_finish(c);
    return e;
}

static Err check_store(const Config *c) {
    if (c->serve.store[0] == '\0') return ERR_OK;
    Err e = host_check_store(c->serve.store);
    return e == ERR_OK ? e : err_add(ERR_CONFIG, "%s", origin_of(c, "store"));
}

static bool is_same_file(const char *a, const char *b) {
    struct stat x, y;
    return a != NULL && b != NULL && stat(a, &x) == 0 && stat(b, &y) == 0 && x.st_dev == y.st_dev &&
           x.st_ino == y.st_ino;
}

static Err check_log(const Config *c) {
    const char *path = c->serve.log_file;
    if (path[0] == '\0') return ERR_OK;
    Err e = is_same_file(path, c->loaded_from.file)
                ? err_set(ERR_CONFIG, "log_file: %s is the configuration; name another file", path)
                : logger_check(path);
    return e == ERR_OK ? e : err_add(ERR_CONFIG, "%s", origin_of(c, "log_file"));
}

Err config_read_start(Config *c, const ConfigSources *s) {
    TRY(config_read(c, s));
    (void)config_report(c, check_store(c));
    (void)config_report(c, check_log(c));
    return ERR_OK;
}

static Err first_problem(Config *c) {
    if (c->n_problems == 0) return ERR_OK;
    Err e = c->n_problems == 1 ? err_set(ERR_CONFIG, "%s", c->problems[0])
                               : err_set(ERR_CONFIG, "%s (and %u more: see cotenant check)",
                                         c->problems[0], c->n_problems - 1);
    config_finish(c);
    return e;
}

Err config_load(Config *c, const ConfigSources *s) {
    TRY(config_read(c, s));
    return first_problem(c);
}

Err config_load_start(Config *c, const ConfigSources *s) {
    TRY(config_read_start(c, s));
    return first_problem(c);
}

Err config_reload(Config *c, const Config *old) { return config_load(c, &old->loaded_from); }

void config_finish(Config *c) {
    arena_finish(&c->arena);
    *c = (Config){0};
}
