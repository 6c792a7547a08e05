// YamlDoc: one strict YAML document into a struct by a libcyaml schema. Errors name file and line.
#pragma once

#include <cyaml/cyaml.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"

typedef struct YamlDocKey {  // a key of the outermost mapping and where it stands
    const char *key;
    size_t      line;
    bool        scalar;  // its value is one word or text, neither list nor mapping
} YamlDocKey;

// The outermost keys in file order. Refuses what is not one mapping: broken syntax, a second
// document, a list; also aliases, and repeated keys, which libcyaml would report at the wrong line.
MUST_USE Err yamldoc_keys(const char *name, const char *text, size_t len, Arena *a,
                          YamlDocKey **out, size_t *n);

// *out is from malloc; give it back with yamldoc_free. NULL when the file has nothing but comments.
MUST_USE Err yamldoc_load(const char *name, const char *text, size_t len,
                          const cyaml_schema_value_t *schema, void **out);
void         yamldoc_free(const cyaml_schema_value_t *schema, void *data);
