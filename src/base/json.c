#include "base/json.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/file.h"

typedef struct Place {
    size_t line, column;
} Place;

// The first bracket nested too deep; found before the recursive parser sees it.
static bool too_deep(const char *text, size_t len, Place *at) {
    size_t depth = 0;
    bool   string = false;
    *at = (Place){1, 0};
    for (size_t i = 0; i < len; i++) {
        at->column++;
        if (text[i] == '\n') *at = (Place){at->line + 1, 0};
        if (string && text[i] == '\\' && i + 1 < len) {
            i++;
            at->column++;
        } else if (text[i] == '"') {
            string = !string;
        } else if (!string && (text[i] == '[' || text[i] == '{')) {
            if (++depth > JSON_DEPTH) return true;
        } else if (!string && (text[i] == ']' || text[i] == '}') && depth > 0) {
            depth--;
        }
    }
    return false;
}

Err json_parse(const char *name, const char *text, size_t len, json_t **out) {
    json_error_t why;
    Place        at;
    if (too_deep(text, len, &at))
        return err_set(ERR_LIMIT, "%s:%zu:%zu: nested deeper than %d", name, at.line, at.column,
                       JSON_DEPTH);
    json_t *doc = json_loadb(text, len, JSON_REJECT_DUPLICATES, &why);
    if (doc == NULL)
        return err_set(ERR_PARSE, "%s:%d:%d: %s", name, why.line, why.column, why.text);
    *out = doc;
    return ERR_OK;
}

Err json_parse_next(const char *name, const char *text, size_t len, size_t *at, json_t **out) {
    json_error_t why;
    Place        deep;
    size_t       from = *at, line = 0;
    if (len > INT32_MAX)
        return err_set(ERR_LIMIT, "%s: more than 2 GB of JSON; split the file", name);
    if (from == 0 && too_deep(text, len, &deep))
        return err_set(ERR_LIMIT, "%s:%zu:%zu: nested deeper than %d", name, deep.line, deep.column,
                       JSON_DEPTH);
    while (from < len && text[from] != '\0' && strchr(" \t\r\n", text[from]) != NULL) from++;
    *out = NULL;
    *at = from;
    if (from == len) return ERR_OK;
    *out =
        json_loadb(text + from, len - from, JSON_REJECT_DUPLICATES | JSON_DISABLE_EOF_CHECK, &why);
    if (*out != NULL) {
        *at = from + (size_t)why.position;
        return ERR_OK;
    }
    for (size_t i = 0; i < from; i++) line += text[i] == '\n';
    return err_set(ERR_PARSE, "%s:%zu:%d: %s", name, line + (size_t)why.line, why.column, why.text);
}

static Err parse_file(void *ctx, const char *path, char *text, size_t len) {
    return json_parse(path, text, len, ctx);
}

Err json_read(const char *path, size_t cap, json_t **out) {
    return file_visit(path, cap, parse_file, out);
}

Err json_write(FILE *f, const json_t *doc) {
    bool ok = json_dumpf(doc, f, JSON_COMPACT | JSON_ENCODE_ANY) == 0;
    if (ok && fputc('\n', f) != EOF && fflush(f) == 0) return ERR_OK;
    return err_set(ERR_IO, "writing JSON failed: %s", strerror(errno));
}

Err json_save(const char *path, const json_t *doc) {
    AtomicFile f;
    TRY(file_begin(&f, path));
    Err e = json_write(f.out, doc);
    if (e == ERR_OK) return file_commit(&f);
    file_drop(&f);
    return err_add(e, "%s", path);
}

void json_put_string(FILE *f, const char *text) {
    (void)fputc('"', f);
    for (; *text != '\0'; text++) {
        unsigned char c = (unsigned char)*text;
        if (c < 32 || c == '"' || c == '\\')
            (void)fprintf(f, "\\u%04x", c);
        else
            (void)fputc(c, f);
    }
    (void)fputc('"', f);
}

static const char *kind_of(const json_t *v) {
    static const char *const names[] = {
        [JSON_OBJECT] = "an object", [JSON_ARRAY] = "an array", [JSON_STRING] = "a string",
        [JSON_INTEGER] = "a number", [JSON_REAL] = "a number",  [JSON_TRUE] = "true",
        [JSON_FALSE] = "false",      [JSON_NULL] = "null"};
    return names[json_typeof(v)];
}

static Err member(const json_t *object, const char *key, const char *want,
                  bool (*is)(const json_t *), json_t **out) {
    json_t *v = json_object_get(object, key);
    if (v == NULL) return err_set(ERR_PARSE, "\"%s\" is missing; it must be %s", key, want);
    if (!is(v)) return err_set(ERR_PARSE, "\"%s\" is %s; it must be %s", key, kind_of(v), want);
    *out = v;
    return ERR_OK;
}

static bool is_integer(const json_t *v) { return json_is_integer(v); }
static bool is_boolean(const json_t *v) { return json_is_boolean(v); }
static bool is_string(const json_t *v) { return json_is_string(v); }
static bool is_array(const json_t *v) { return json_is_array(v); }
static bool is_object(const json_t *v) { return json_is_object(v); }

Err json_get_int(const json_t *object, const char *key, int64_t lo, int64_t hi, int64_t *out) {
    json_t *v;
    TRY(member(object, key, "a whole number", is_integer, &v));
    int64_t n = json_integer_value(v);
    if (n < lo || n > hi)
        return err_set(ERR_INVALID,
                       "\"%s\" is %" PRId64 "; it must be from %" PRId64 " to %" PRId64, key, n, lo,
                       hi);
    *out = n;
    return ERR_OK;
}

Err json_get_bool(const json_t *object, const char *key, bool *out) {
    json_t *v;
    TRY(member(object, key, "true or false", is_boolean, &v));
    *out = json_is_true(v);
    return ERR_OK;
}

Err json_get_text(const json_t *object, const char *key, const char **out) {
    json_t *v;
    TRY(member(object, key, "a string", is_string, &v));
    *out = json_string_value(v);
    return ERR_OK;
}

Err json_get_array(const json_t *object, const char *key, json_t **out) {
    return member(object, key, "an array", is_array, out);
}

Err json_get_object(const json_t *object, const char *key, json_t **out) {
    return member(object, key, "an object", is_object, out);
}
