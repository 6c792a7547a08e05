// Names: strings numbered in the order they first appear, in an arena. Growing may fail.
#pragma once

#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/map.h"

typedef struct Names {
    Map          map;
    const char **at;  // [n], borrowed
    uint32_t     n, cap;
} Names;

void         names_init(Names *s, Arena *a);
MUST_USE Err names_add(Names *s, const char *name, uint32_t *index);  // name is kept, not copied
uint32_t     names_find(const Names *s, const char *name);            // MAP_NONE when absent
