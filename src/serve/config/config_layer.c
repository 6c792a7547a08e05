// Layers of settings, each overriding the ones before: built-in, file, environment, flags.
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "base/text.h"
#include "serve/config/config_int.h"

typedef struct Words {
    const char *key;
    const char *words[5];
} Words;

static const Words words_of[] = {
    {"class", {"latency", "throughput", "best_effort"}},
    {"on_miss", {"reject", "serve_late", "degrade"}},
    {"weights", {"fp32", "fp16", "int8"}},
    {"tune", {"background", "load", "off"}},
    {"log_level", {"debug", "info", "warn", "error"}},
    {"log_format", {"logfmt", "json"}},
    {"metrics_compat", {"none", "triton"}},
    {NULL, {NULL}},
};

static Err check_word(const Words *w, const char *where, const char *value) {
    char   list[160] = "";
    size_t n = 0, used = 0;
    for (; w->words[n] != NULL; n++) {
        if (strcmp(w->words[n], value) == 0) return ERR_OK;
        used += (size_t)snprintf(list + used, sizeof list - used, "%s%s", n > 0 ? ", " : "",
                                 w->words[n]);
    }
    char        hint[TEXT_MEANT];
    const char *meant = text_meant(value, w->words, n, "", hint);
    return err_set(ERR_CONFIG, "%s: %s: '%.60s' is not one of %s%s%s", where, w->key, value, list,
                   meant[0] != '\0' ? "; " : "", meant);
}

uint32_t config_word(const char *key, const char *word) {
    const Words *w = words_of;
    while (w->key != NULL && strcmp(w->key, key) != 0) w++;
    for (uint32_t i = 0; w->words[i] != NULL; i++)
        if (strcmp(w->words[i], word) == 0) return i;
    return 0;
}

Err config_set(Settings *s, const char **origins, const char *where, const char *key,
               const char *value, const char *origin) {
    uint32_t row = 0;
    for (const Words *w = words_of; w->key != NULL; w++)
        if (strcmp(w->key, key) == 0) TRY(check_word(w, where, value));
    TRY(settings_put(s, where, key, value, &row));
    origins[row] = origin;
    return ERR_OK;
}

static Err read_file(ConfigBuilder *d, const char *path) {
    char  *text = NULL;
    size_t len = 0;
    Arena  a;
    TRY(arena_init(&a, CONFIG_FILE + 8192));
    Err e = file_read(path, CONFIG_FILE, &a, &text, &len);
    if (e != ERR_OK)
        e = err_add(ERR_CONFIG, "configuration");
    else
        e = config_parse_yaml(path, text, len, &d->c->arena, &d->file);
    arena_finish(&a);
    return e;
}

static const char *file_path(const ConfigBuilder *d) {
    static const char key[] = "COTENANT_CONFIG=";
    if (d->s->file != NULL) return d->s->file;
    for (char *const *e = d->s->environment; *e != NULL; e++)
        if (strncmp(*e, key, sizeof key - 1) == 0 && (*e)[sizeof key - 1] != '\0')
            return *e + sizeof key - 1;
    return NULL;
}

static Err set_twice(const ConfigBuilder *d, const ConfigLine *l, size_t before) {
    return err_set(ERR_CONFIG, "%s:%zu: %s is already set in line %zu; keep one of them",
                   d->file.path, l->line, l->key, before);
}

static void take_item_line(ConfigBuilder *d, ConfigItem *it, uint32_t i) {
    const ConfigLine *l = &d->file.lines[i];
    const char      **to = strcmp(l->key, "name") == 0      ? &it->name
                           : strcmp(l->key, "path") == 0    ? &it->path
                           : strcmp(l->key, "version") == 0 ? &it->version
                                                            : NULL;
    if (it->n++ == 0) {
        it->first = i;
        it->line = l->line;
    }
    if (to != NULL && *to != NULL)
        (void)config_report(d->c, set_twice(d, l, it->line));
    else if (to != NULL)
        *to = l->text;
}

Err config_builder_read_file(ConfigBuilder *d) {
    const char *path = file_path(d);
    if (path == NULL) return ERR_OK;
    TRY(read_file(d, path));
    d->items = arena_try_new(&d->c->arena, ConfigItem, (size_t)d->file.n_items + 1);
    if (d->items == NULL) return err_set(ERR_LIMIT, "%s: out of memory for its models", path);
    for (uint32_t i = 0; i < d->file.n_lines; i++)
        if (d->file.lines[i].part == PART_MODELS)
            take_item_line(d, &d->items[d->file.lines[i].item], i);
    return ERR_OK;
}

typedef struct Serve {
    ConfigBuilder *d;
    Settings       settings;
} Serve;

static Err unknown_top(const ConfigLine *l, const char *where) {
    const char *meant = config_nearest(l->key, true, false, false);
    if (meant != NULL)
        return err_set(ERR_CONFIG, "%s: there is no setting %.100s; did you mean %s?", where,
                       l->key, meant);
    if (config_is_tenant(l->key))
        return err_set(ERR_CONFIG,
                       "%s: %s is a setting of models; put it under defaults: or models:", where,
                       l->key);
    return err_set(ERR_CONFIG,
                   "%s: there is no setting %.100s; see docs/serve-config.md or config dump", where,
                   l->key);
}

static void serve_file(Serve *s) {
    const ConfigFile *f = &s->d->file;
    Config           *c = s->d->c;
    size_t            seen[CONFIG_ROWS] = {0};
    for (uint32_t i = 0; i < f->n_lines; i++) {
        const ConfigLine *l = &f->lines[i];
        if (l->part != PART_TOP) continue;
        const char *where = config_format(&c->arena, "%s:%zu", f->path, l->line);
        if (where == NULL) where = f->path;
        uint32_t row = 0;
        while (row < s->settings.n_rows && strcmp(s->settings.rows[row].key, l->key) != 0) row++;
        if (row == s->settings.n_rows) {
            (void)config_report(c, unknown_top(l, where));
        } else if (seen[row] > 0) {
            (void)config_report(c, set_twice(s->d, l, seen[row]));
        } else {
            seen[row] = l->line;
            (void)config_report(
                c, config_set(&s->settings, c->origins, where, l->key, l->text, where));
        }
    }
}

static void serve_layer(void *self, const char *where, const char *key, const char *value) {
    Serve *s = self;
    if (!config_is_serve(key)) return;
    (void)config_report(s->d->c,
                        config_set(&s->settings, s->d->c->origins, where, key, value, where));
}

Err config_builder_server(ConfigBuilder *d) {
    Serve s = {.d = d, .settings = {.values = &d->c->serve, .arena = &d->c->arena}};
    s.settings.rows = config_serve_rows(&s.settings.n_rows);
    serve_file(&s);
    config_builder_each_variable(d, serve_layer, &s);
    config_builder_each_flag(d, NULL, serve_layer, &s);
    return ERR_OK;
}

// COTENANT_HEADER_KB sets header_kb.
void config_builder_each_variable(const ConfigBuilder *d, LayerFn *fn, void *self) {
    for (char *const *e = d->s->environment; *e != NULL; e++) {
        const char *equals = strchr(*e, '=');
        char        key[64];
        size_t      n = equals != NULL ? (size_t)(equals - *e) : 0;
        if (n <= 9 || n - 9 >= sizeof key) continue;
        for (size_t i = 9; i <= n; i++) {
            char ch = (*e)[i];
            key[i - 9] = (char)(ch >= 'A' && ch <= 'Z' ? ch - 'A' + 'a' : ch);
        }
        key[n - 9] = '\0';
        const char *where = config_format(&d->c->arena, "%.*s", (int)n, *e);
        fn(self, where != NULL ? where : "environment", key, equals + 1);
    }
}

// The flag as typed: --header-kb for a server setting, --set KEY for a model setting.
static const char *flag_origin(const ConfigBuilder *d, const char *left) {
    char *s =
        config_format(&d->c->arena, config_is_serve(left) ? "flag --%s" : "flag --set %s", left);
    for (char *p = s; p != NULL && *p != '\0' && config_is_serve(left); p++)
        if (*p == '_') *p = '-';
    return s != NULL ? s : "flag";
}

void config_builder_each_flag(const ConfigBuilder *d, const char *model, LayerFn *fn, void *self) {
    for (uint32_t i = 0; i < d->s->n_flags; i++) {
        const char *flag = d->s->flags[i], *equals = strchr(flag, '=');
        char        left[256];
        size_t      n = equals != NULL ? (size_t)(equals - flag) : sizeof left;
        if (n >= sizeof left) continue;
        memcpy(left, flag, n);
        left[n] = '\0';
        char       *dot = strrchr(left, '.');
        const char *where = flag_origin(d, left);
        if (dot != NULL) *dot = '\0';
        bool mine = model == NULL ? dot == NULL : dot != NULL && strcmp(left, model) == 0;
        if (mine) fn(self, where, dot != NULL ? dot + 1 : left, equals + 1);
    }
}
