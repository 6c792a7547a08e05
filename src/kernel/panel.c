#include "kernel/panel.h"

#include <inttypes.h>
#include <stdbool.h>

// Four rows a step: the sums are loaded and stored once for four products.
void panel_dot(const double *restrict panel, const double *restrict row, int64_t k,
               double acc[restrict PANEL]) {
    int64_t i = 0;
    for (; i + 4 <= k; i += 4, panel += (size_t)4 * PANEL) {
        double a = row[i], b = row[i + 1], c = row[i + 2], d = row[i + 3];
        for (int j = 0; j < PANEL; j++)
            acc[j] += a * panel[j] + b * panel[j + PANEL] + c * panel[j + 2 * PANEL] +
                      d * panel[j + 3 * PANEL];
    }
    for (; i < k; i++, panel += PANEL)
        for (int j = 0; j < PANEL; j++) acc[j] += row[i] * panel[j];
}

Err panel_room(Arena *a, int64_t k, int64_t width, double **out) {
    int64_t n = 0;
    bool    over = __builtin_mul_overflow(k, width, &n);
    *out = over ? NULL : arena_try(a, (size_t)n, sizeof(double), 64);
    if (*out == NULL)
        return err_set(ERR_LIMIT, "no room for %" PRId64 " rows of %" PRId64 " numbers", k, width);
    return ERR_OK;
}
