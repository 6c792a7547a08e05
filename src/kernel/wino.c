#include "kernel/wino.h"

#include <string.h>

#include "base/check.h"
#include "kernel/wino_plan.h"

enum { MOST_LANES = 16 };

bool wino_fits(const ConvShape *s) {
    return s->kh == 3 && s->kw == 3 && s->sh == 1 && s->sw == 1 && s->dh == 1 && s->dw == 1 &&
           s->groups == 1;
}

static uint32_t tile_side(Algo algo) { return algo == ALGO_WINOGRAD4 ? 6 : 4; }

size_t wino_pack_bytes(const ConvShape *s, const Isa *isa, Algo algo) {
    size_t side = tile_side(algo);
    return wino_groups(s->oc, isa->lanes) * side * side * s->ic * isa->lanes * sizeof(float);
}

// Row i evaluates a filter at point i, over what the product of distances to the other points gives
// the inputs too much; the last row is infinity.
static void evaluation(Algo algo, double (*g)[3]) {
    static const double four[] = {0, 0.625, -0.625, 1.5, -1.5}, two[] = {0, 1, -1};
    const double       *at = algo == ALGO_WINOGRAD4 ? four : two;
    uint32_t            n = tile_side(algo) - 1;
    for (uint32_t i = 0; i < n; i++) {
        double over = 1;
        for (uint32_t j = 0; j < n; j++)
            if (j != i) over *= at[i] - at[j];
        g[i][0] = 1 / over;
        g[i][1] = at[i] / over;
        g[i][2] = at[i] * at[i] / over;
    }
    g[n][0] = g[n][1] = 0;
    g[n][2] = 1;
}

// One input channel of one panel: taps[9][lanes] to out[point * stride + lane].
static void pack_one(uint32_t side, double (*g)[3], double (*taps)[MOST_LANES], uint32_t lanes,
                     size_t stride, float *out) {
    double half[6][3][MOST_LANES];
    for (uint32_t i = 0; i < side; i++)
        for (uint32_t k = 0; k < 3; k++)
            for (uint32_t l = 0; l < MOST_LANES; l++)
                half[i][k][l] =
                    g[i][0] * taps[k][l] + g[i][1] * taps[3 + k][l] + g[i][2] * taps[6 + k][l];
    for (uint32_t i = 0; i < side; i++)
        for (uint32_t k = 0; k < side; k++)
            for (uint32_t l = 0; l < lanes; l++)
                out[(i * side + k) * stride + l] =
                    (float)(g[k][0] * half[i][0][l] + g[k][1] * half[i][1][l] +
                            g[k][2] * half[i][2][l]);
}

void wino_pack(const ConvShape *s, const Isa *isa, Algo algo, const float *w, float *out) {
    uint32_t side = tile_side(algo), lanes = isa->lanes;
    size_t   stride = (size_t)s->ic * lanes;
    double   g[6][3];
    CHECK(lanes <= MOST_LANES);
    evaluation(algo, g);
    for (uint32_t first = 0; first < s->oc; first += lanes, out += side * side * stride) {
        double   taps[9][MOST_LANES] = {0};
        uint32_t n = s->oc - first < lanes ? s->oc - first : lanes;
        for (uint32_t c = 0; c < s->ic; c++) {
            for (uint32_t l = 0; l < n; l++)
                for (uint32_t k = 0; k < 9; k++)
                    taps[k][l] = (double)w[((size_t)(first + l) * s->ic + c) * 9 + k];
            pack_one(side, g, taps, lanes, stride, out + (size_t)c * lanes);
        }
    }
}

uint32_t wino_tasks(const ConvShape *s, const Isa *isa, const Version *v) {
    WinoPlan p = wino_plan(s, isa->lanes, v);
    if (v->split == SPLIT_ROWS) return p.blocks;
    return v->split == SPLIT_COLUMNS ? p.strips : p.blocks * p.strips;
}

size_t wino_scratch(const ConvShape *s, const Isa *isa, const Version *v) {
    WinoPlan p = wino_plan(s, isa->lanes, v);
    return (p.inputs + p.products) * sizeof(float) + p.most * sizeof(float *);
}
