// Panel: k rows of PANEL doubles, the right side of a product; one left row at a time meets it.
#pragma once

#include <stdint.h>

#include "base/arena.h"

enum { PANEL = 16 };

// acc[j] += sum over i in [0, k) of row[i] * panel[i][j].
void panel_dot(const double *restrict panel, const double *restrict row, int64_t k,
               double acc[restrict PANEL]);

// Room for k rows of width numbers each; reports an amount that does not fit.
MUST_USE Err panel_room(Arena *a, int64_t k, int64_t width, double **out);
