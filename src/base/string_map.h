// StringMap: a hash map from strings to integers, in an arena; keys are borrowed.
#pragma once

#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"

typedef struct StringMap {
    Arena       *arena;
    const char **keys;  // [cap], NULL: free slot
    uint32_t    *vals;
    uint32_t     cap, n;
} StringMap;

#define STRING_MAP_NONE UINT32_MAX

void     string_map_init(StringMap *m, Arena *a);
void     string_map_put(StringMap *m, const char *key, uint32_t val);  // replaces an existing value
uint32_t string_map_get(const StringMap *m, const char *key);          // STRING_MAP_NONE if absent

// Interner: numbers distinct strings in the order of first appearance; strings are borrowed.
typedef struct Interner {
    StringMap    map;
    const char **at;  // [n], borrowed
    uint32_t     n, cap;
} Interner;

void         interner_init(Interner *s, Arena *a);
MUST_USE Err interner_add(Interner *s, const char *name, uint32_t *index);
uint32_t     interner_find(const Interner *s, const char *name);  // STRING_MAP_NONE if absent
