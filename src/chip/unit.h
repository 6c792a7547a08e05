// Unit: one accelerator: its array, its buffers, how fast they are and what an access costs.
#pragma once

#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"

typedef struct Unit {
    const char *name, *about;
} Unit;

MUST_USE Err unit_load(const char *what, Arena *a, Unit *out);
