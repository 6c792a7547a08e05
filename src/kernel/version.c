#include "kernel/version.h"

#include <stdio.h>

static const char *const algo_names[ALGO_COUNT] = {
#define X(id, name, about) [ALGO_##id] = name,
#include "kernel/algo.def"
#undef X
};

const char *algo_name(Algo a) { return a < ALGO_COUNT ? algo_names[a] : "unknown"; }

void version_text(const Version *v, char *out, size_t size) {
    static const char *const orders[] = {"weight", "input"};
    static const char *const splits[] = {"columns", "rows", "both"};
    (void)snprintf(out, size, "%s tile %ux%u, block %ux%ux%u, pack %u, %s-stationary, split %s",
                   algo_name(v->algo), v->tile_rows, v->tile_vecs, v->rows, v->columns, v->depth,
                   v->pack, v->order <= ORDER_INPUT_STATIONARY ? orders[v->order] : "?",
                   v->split <= SPLIT_BOTH ? splits[v->split] : "?");
}

void version_add(Version v, Version *out, uint32_t *n, uint32_t max) {
    for (uint32_t i = 0; i < *n; i++)
        if (version_same(&out[i], &v)) return;
    if (*n < max) out[(*n)++] = v;
}
