// YamlDoc: one strict YAML document. Errors name file and line.
//
// yamldoc_walk delivers a document's parser events, yamldoc_keys the keys of its outermost mapping,
// and yamldoc_load fills a struct by a libcyaml schema. All reject broken syntax, a second document
// and aliases.
#pragma once

#include <cyaml/cyaml.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <yaml.h>

#include "base/arena.h"
#include "base/err.h"

// Called for mappings and sequences (start and end) and scalars, in file order. e is valid during
// the call; line counts from 1. The first error ends the walk.
typedef Err YamlDocVisit(void *ctx, const yaml_event_t *e, size_t line);

MUST_USE Err yamldoc_walk(const char *name, const char *text, size_t len, YamlDocVisit *visit,
                          void *ctx);

typedef struct YamlDocKey {  // a key of the outermost mapping and its line
    const char *key;
    size_t      line;
    bool        scalar;  // its value is a scalar, not a list or mapping
} YamlDocKey;

// The outermost keys in file order. Rejects a document that is not a mapping, and repeated keys,
// which libcyaml would report at the wrong line.
MUST_USE Err yamldoc_keys(const char *name, const char *text, size_t len, Arena *a,
                          YamlDocKey **out, size_t *n);

// *out comes from malloc and is freed by yamldoc_free; NULL for a document without content.
MUST_USE Err yamldoc_load(const char *name, const char *text, size_t len,
                          const cyaml_schema_value_t *schema, void **out);
void         yamldoc_free(const cyaml_schema_value_t *schema, void *data);
