// Map: strings to small integers, for names. Lives in an arena; keys are borrowed.
#pragma once

#include <stdint.h>

typedef struct Arena Arena;

typedef struct Map {
    Arena       *arena;
    const char **keys;  // [cap], NULL where free
    uint32_t    *vals;
    uint32_t     cap, n;
} Map;

#define MAP_NONE UINT32_MAX

void     map_init(Map *m, Arena *a);
void     map_put(Map *m, const char *key, uint32_t val);  // replaces an earlier value
uint32_t map_get(const Map *m, const char *key);          // MAP_NONE when absent
