// Json: strict JSON documents through jansson; errors name line, column and key.
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/err.h"

enum { JSON_DEPTH = 64 };  // of nesting, at most

// One object or array without repeated keys, and nothing after it. name is for errors; the caller
// owns *out.
MUST_USE Err json_parse(const char *name, const char *text, size_t len, json_t **out);
// The next object or array of several in text[len], from offset *at on, which moves past it; *out
// is NULL at the end.
MUST_USE Err json_parse_next(const char *name, const char *text, size_t len, size_t *at,
                             json_t **out);
MUST_USE Err json_read(const char *path, size_t cap, json_t **out);  // files of at most cap bytes

// Compact, on one line, members in insertion order.
MUST_USE Err json_write(FILE *f, const json_t *doc);
MUST_USE Err json_save(const char *path, const json_t *doc);  // replaces path atomically

// Writes text as a JSON string, quotes included.
void json_put_string(FILE *f, const char *text);

// A required member of the given type and range. Results live as long as object.
MUST_USE Err json_get_int(const json_t *object, const char *key, int64_t lo, int64_t hi,
                          int64_t *out);
MUST_USE Err json_get_bool(const json_t *object, const char *key, bool *out);
MUST_USE Err json_get_text(const json_t *object, const char *key, const char **out);
MUST_USE Err json_get_array(const json_t *object, const char *key, json_t **out);
MUST_USE Err json_get_object(const json_t *object, const char *key, json_t **out);
