#include "base/yamldoc.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { KEYS_MAX = 4096, DEPTH_MAX = 64 };

static Err visit_event(const char *name, const yaml_event_t *e, int *documents, YamlDocVisit *visit,
                       void *ctx) {
    size_t line = e->start_mark.line + 1;
    switch (e->type) {
    case YAML_DOCUMENT_START_EVENT:
        if (++*documents > 1)
            return err_set(ERR_CONFIG, "%s:%zu: a second document starts here; remove the ---",
                           name, line);
        return ERR_OK;
    case YAML_ALIAS_EVENT:
        return err_set(ERR_CONFIG, "%s:%zu: aliases (*name) are not allowed; repeat the value",
                       name, line);
    case YAML_MAPPING_START_EVENT:
    case YAML_MAPPING_END_EVENT:
    case YAML_SEQUENCE_START_EVENT:
    case YAML_SEQUENCE_END_EVENT:
    case YAML_SCALAR_EVENT: return visit(ctx, e, line);
    default: return ERR_OK;
    }
}

static Err walk(yaml_parser_t *p, const char *name, YamlDocVisit *visit, void *ctx) {
    int documents = 0;
    for (bool end = false; !end;) {
        yaml_event_t e;
        if (yaml_parser_parse(p, &e) != 1)
            return err_set(p->error == YAML_MEMORY_ERROR ? ERR_LIMIT : ERR_CONFIG,
                           "%s:%zu:%zu: %s; check indentation and quotes here", name,
                           p->problem_mark.line + 1, p->problem_mark.column + 1,
                           p->problem != NULL ? p->problem : "this is not YAML");
        end = e.type == YAML_STREAM_END_EVENT;
        Err err = visit_event(name, &e, &documents, visit, ctx);
        yaml_event_delete(&e);
        TRY(err);
    }
    return ERR_OK;
}

Err yamldoc_walk(const char *name, const char *text, size_t len, YamlDocVisit *visit, void *ctx) {
    yaml_parser_t p;
    if (yaml_parser_initialize(&p) != 1) return err_set(ERR_LIMIT, "%s: out of memory", name);
    yaml_parser_set_encoding(&p, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(&p, (const unsigned char *)text, len);
    Err e = walk(&p, name, visit, ctx);
    yaml_parser_delete(&p);
    return e;
}

typedef struct KeyWalk {
    const char *name;
    Arena      *arena;
    YamlDocKey *keys;
    size_t      n, depth;
    bool        value;  // the next node at depth 1 is a value, not a key
} KeyWalk;

static Err add_key(KeyWalk *w, const yaml_event_t *e) {
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

static Err enter(KeyWalk *w, const yaml_event_t *e) {
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

static Err visit_keys(void *ctx, const yaml_event_t *e, size_t line) {
    KeyWalk *w = ctx;
    (void)line;
    switch (e->type) {
    case YAML_MAPPING_START_EVENT:
    case YAML_SEQUENCE_START_EVENT: return enter(w, e);
    case YAML_MAPPING_END_EVENT:
    case YAML_SEQUENCE_END_EVENT: w->depth--; return ERR_OK;
    default:
        if (w->depth == 0) return enter(w, e);
        if (w->depth > 1) return ERR_OK;
        w->value = !w->value;
        return w->value ? add_key(w, e) : ERR_OK;
    }
}

Err yamldoc_keys(const char *name, const char *text, size_t len, Arena *a, YamlDocKey **out,
                 size_t *n) {
    KeyWalk w = {.name = name, .arena = a, .keys = arena_try_new(a, YamlDocKey, KEYS_MAX)};
    if (w.keys == NULL) return err_set(ERR_LIMIT, "%s: out of memory", name);
    TRY(yamldoc_walk(name, text, len, visit_keys, &w));
    *out = w.keys;
    *n = w.n;
    return ERR_OK;
}

typedef struct CyamlError {  // libcyaml's first message and the innermost location
    char          why[256];
    unsigned long line, column;
} CyamlError;

static void PRINTF(3, 0) capture_error(cyaml_log_t level, void *ctx, const char *fmt, va_list ap) {
    CyamlError *t = ctx;
    char        text[256];
    int         n = level >= CYAML_LOG_ERROR ? vsnprintf(text, sizeof text, fmt, ap) : -1;
    if (n < 0) return;
    text[strcspn(text, "\n")] = '\0';
    const char *line = strstr(text, "(line: "), *column = strstr(text, "column: ");
    if (line != NULL && column != NULL && t->line == 0) {
        t->line = strtoul(line + strlen("(line: "), NULL, 10);
        t->column = strtoul(column + strlen("column: "), NULL, 10);
    }
    if (t->why[0] == '\0') memcpy(t->why, text, sizeof text);
}

static cyaml_config_t config_for(CyamlError *t) {
    return (cyaml_config_t){.log_fn = capture_error,
                            .log_ctx = t,
                            .log_level = CYAML_LOG_ERROR,
                            .mem_fn = cyaml_mem,
                            .flags = CYAML_CFG_NO_ALIAS};
}

Err yamldoc_load(const char *name, const char *text, size_t len, const cyaml_schema_value_t *schema,
                 void **out) {
    CyamlError     error = {0};
    cyaml_config_t config = config_for(&error);
    void          *data = NULL;
    cyaml_err_t    e = cyaml_load_data((const uint8_t *)text, len, &config, schema, &data, NULL);
    if (e != CYAML_OK) {
        const char *why = error.why[0] != '\0' ? error.why : cyaml_strerror(e);
        return err_set(e == CYAML_ERR_OOM ? ERR_LIMIT : ERR_CONFIG, "%s:%lu:%lu: %s", name,
                       error.line, error.column, strncmp(why, "Load: ", 6) == 0 ? why + 6 : why);
    }
    *out = data;
    return ERR_OK;
}

void yamldoc_free(const cyaml_schema_value_t *schema, void *data) {
    CyamlError     error = {0};
    cyaml_config_t config = config_for(&error);
    (void)cyaml_free(&config, schema, data, 0);
}
