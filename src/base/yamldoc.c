#include "base/yamldoc.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <yaml.h>

enum { KEYS_MAX = 4096, DEPTH_MAX = 64 };

typedef struct Walk {
    const char *name;
    Arena      *arena;
    YamlDocKey *keys;
    size_t      n, depth;
    bool        value;  // the next node at depth 1 is a value, not a key
    int         documents;
} Walk;

static Err add_key(Walk *w, const yaml_event_t *e) {
    const char *key = (const char *)e->data.scalar.value;
    size_t      line = e->start_mark.line + 1, len = e->data.scalar.length;
    for (size_t i = 0; i < w->n; i++)
        if (strcmp(w->keys[i].key, key) == 0)
            return err_set(ERR_CONFIG, "%s:%zu: %s is already set in line %zu; keep one of them",
                           w->name, line, key, w->keys[i].line);
    if (w->n == KEYS_MAX) return err_set(ERR_LIMIT, "%s:%zu: too many keys", w->name, line);
    char *copy = arena_try_new(w->arena, char, len + 1);
    if (copy == NULL) return err_set(ERR_LIMIT, "%s:%zu: no memory for the key", w->name, line);
    memcpy(copy, key, len);
    w->keys[w->n++] = (YamlDocKey){copy, line, true};
    return ERR_OK;
}

static Err enter(Walk *w, const yaml_event_t *e) {
    size_t line = e->start_mark.line + 1;
    if (w->depth == 0 && e->type != YAML_MAPPING_START_EVENT)
        return err_set(ERR_CONFIG, "%s:%zu: write \"key: value\" lines here", w->name, line);
    if (w->depth == 1 && !w->value)
        return err_set(ERR_CONFIG, "%s:%zu: a key must be a plain word", w->name, line);
    if (w->depth == DEPTH_MAX)
        return err_set(ERR_LIMIT, "%s:%zu: nested deeper than %d", w->name, line, DEPTH_MAX);
    if (w->depth == 1) {
        w->value = false;
        w->keys[w->n - 1].scalar = false;
    }
    w->depth++;
    return ERR_OK;
}

static Err visit(Walk *w, const yaml_event_t *e) {
    size_t line = e->start_mark.line + 1;
    switch (e->type) {
    case YAML_DOCUMENT_START_EVENT:
        if (++w->documents > 1)
            return err_set(ERR_CONFIG, "%s:%zu: a second document starts here; remove the ---",
                           w->name, line);
        return ERR_OK;
    case YAML_ALIAS_EVENT:
        return err_set(ERR_CONFIG, "%s:%zu: aliases (*name) are not allowed; repeat the value",
                       w->name, line);
    case YAML_MAPPING_START_EVENT:
    case YAML_SEQUENCE_START_EVENT: return enter(w, e);
    case YAML_MAPPING_END_EVENT:
    case YAML_SEQUENCE_END_EVENT: w->depth--; return ERR_OK;
    case YAML_SCALAR_EVENT:
        if (w->depth == 0) return enter(w, e);
        if (w->depth > 1) return ERR_OK;
        w->value = !w->value;
        return w->value ? add_key(w, e) : ERR_OK;
    default: return ERR_OK;
    }
}

static Err walk(Walk *w, yaml_parser_t *p) {
    for (bool over = false; !over;) {
        yaml_event_t e;
        if (yaml_parser_parse(p, &e) != 1)
            return err_set(p->error == YAML_MEMORY_ERROR ? ERR_LIMIT : ERR_CONFIG, "%s:%zu:%zu: %s",
                           w->name, p->problem_mark.line + 1, p->problem_mark.column + 1,
                           p->problem != NULL ? p->problem : "this is not YAML");
        over = e.type == YAML_STREAM_END_EVENT;
        Err err = visit(w, &e);
        yaml_event_delete(&e);
        TRY(err);
    }
    return ERR_OK;
}

Err yamldoc_keys(const char *name, const char *text, size_t len, Arena *a, YamlDocKey **out,
                 size_t *n) {
    yaml_parser_t p;
    Walk          w = {.name = name, .arena = a, .keys = arena_try_new(a, YamlDocKey, KEYS_MAX)};
    if (w.keys == NULL || yaml_parser_initialize(&p) != 1)
        return err_set(ERR_LIMIT, "%s: no memory to read it", name);
    yaml_parser_set_encoding(&p, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(&p, (const unsigned char *)text, len);
    Err e = walk(&w, &p);
    yaml_parser_delete(&p);
    if (e != ERR_OK) return e;
    *out = w.keys;
    *n = w.n;
    return ERR_OK;
}

typedef struct Told {  // what libcyaml said: its first sentence and the innermost place
    char          why[256];
    unsigned long line, column;
} Told;

static void PRINTF(3, 0) hear(cyaml_log_t level, void *ctx, const char *fmt, va_list ap) {
    Told *t = ctx;
    char  text[256];
    int   n = level >= CYAML_LOG_ERROR ? vsnprintf(text, sizeof text, fmt, ap) : -1;
    if (n < 0) return;
    text[strcspn(text, "\n")] = '\0';
    const char *line = strstr(text, "(line: "), *column = strstr(text, "column: ");
    if (line != NULL && column != NULL && t->line == 0) {
        t->line = strtoul(line + strlen("(line: "), NULL, 10);
        t->column = strtoul(column + strlen("column: "), NULL, 10);
    }
    if (t->why[0] == '\0') memcpy(t->why, text, sizeof text);
}

static cyaml_config_t config_for(Told *t) {
    return (cyaml_config_t){.log_fn = hear,
                            .log_ctx = t,
                            .log_level = CYAML_LOG_ERROR,
                            .mem_fn = cyaml_mem,
                            .flags = CYAML_CFG_NO_ALIAS};
}

Err yamldoc_load(const char *name, const char *text, size_t len, const cyaml_schema_value_t *schema,
                 void **out) {
    Told           told = {0};
    cyaml_config_t config = config_for(&told);
    void          *data = NULL;
    cyaml_err_t    e = cyaml_load_data((const uint8_t *)text, len, &config, schema, &data, NULL);
    if (e != CYAML_OK) {
        const char *why = told.why[0] != '\0' ? told.why : cyaml_strerror(e);
        return err_set(e == CYAML_ERR_OOM ? ERR_LIMIT : ERR_CONFIG, "%s:%lu:%lu: %s", name,
                       told.line, told.column, strncmp(why, "Load: ", 6) == 0 ? why + 6 : why);
    }
    *out = data;
    return ERR_OK;
}

void yamldoc_free(const cyaml_schema_value_t *schema, void *data) {
    Told           told = {0};
    cyaml_config_t config = config_for(&told);
    (void)cyaml_free(&config, schema, data, 0);
}
