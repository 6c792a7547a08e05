#include "kernel/depthwise.h"

#include <string.h>

#include "kernel/blocking.h"

enum { DEPTHWISE_TILE = 8, DEPTHWISE_COPY_BYTES = 96 << 10 };

size_t depthwise_weight_count(const ConvShape *s, const Isa *isa) {
    return (size_t)ceil_div(s->oc, isa->lanes) * isa->lanes * s->kh * s->kw;
}

void depthwise_pack(const ConvShape *s, const Isa *isa, const float *w, float *packed) {
    const uint32_t lanes = isa->lanes;
    const size_t   taps = (size_t)s->kh * s->kw;
    memset(packed, 0, depthwise_weight_count(s, isa) * sizeof *packed);
    for (uint32_t c = 0; c < s->oc; c++)
        for (size_t k = 0; k < taps; k++)
            packed[(c / lanes * taps + k) * lanes + c % lanes] = w[c * taps + k];
}

uint32_t depthwise_padded_width(const ConvShape *s) {
    return (s->ow - 1) * s->sw + (s->kw - 1) * s->dw + 1;
}

DepthwiseMethod depthwise_method(const ConvShape *s) {
    const uint32_t width = depthwise_padded_width(s);
    // Windows cross either side by less than the kernel's width.
    const bool little = s->pl < s->kw && width < s->iw + s->pl + s->kw;
    if ((s->kw == 3 || s->kw == 5) && s->sw <= 2 && s->dw == 1 && s->dh == 1 && little)
        return DEPTHWISE_TAPS;
    return s->pl == 0 && width <= s->iw ? DEPTHWISE_INSIDE : DEPTHWISE_PADDED;
}

// Input rows read by that many output rows.
static size_t rows_under(const ConvShape *s, uint32_t rows) {
    return (size_t)(rows - 1) * s->sh + (size_t)(s->kh - 1) * s->dh + 1;
}

static size_t copy_bytes(const ConvShape *s, uint32_t lanes, uint32_t rows) {
    return rows_under(s, rows) * depthwise_padded_width(s) * lanes * sizeof(float);
}

uint32_t depthwise_padded_rows(const ConvShape *s, uint32_t lanes, const Version *v) {
    uint32_t rows = v->rows;
    while (rows > 1 && copy_bytes(s, lanes, rows) > DEPTHWISE_COPY_BYTES) rows = (rows + 1) / 2;
    return rows;
}

size_t depthwise_scratch(const ConvShape *s, const Isa *isa, const Version *v) {
    if (depthwise_method(s) != DEPTHWISE_PADDED) return 0;
    return copy_bytes(s, isa->lanes, depthwise_padded_rows(s, isa->lanes, v));
}

uint32_t depthwise_tasks(const ConvShape *s, const Isa *isa, const Version *v) {
    return checked_tasks((uint64_t)s->n * ceil_div(s->oc, isa->lanes) * ceil_div(s->oh, v->rows));
}

// Whole planes first: each input row is read once. Fewer rows per task give more tasks; with parts
// split by rows, inputs are often still in the cache of the core that produced them.
uint32_t depthwise_versions(const ConvShape *s, const Isa *isa, const CacheSizes *caches,
                            Version *out, uint32_t max) {
    (void)isa;
    (void)caches;
    uint32_t n = 0;
    for (uint32_t cut = 1; cut <= 8 && cut <= s->oh; cut *= 2)
        for (int split = 0; split < 2; split++) {
            uint32_t rows = ceil_div(s->oh, cut);
            if (n == max || (cut == 1 && split == 1)) break;
            out[n++] = (Version){
                .algo = ALGO_DIRECT,
                .split = split == 0 ? SPLIT_COLUMNS : SPLIT_ROWS,
                .tile_rows = DEPTHWISE_TILE,
                .tile_vecs = 1,
                .rows = rows > UINT16_MAX ? UINT16_MAX : (uint16_t)rows,
            };
        }
    return n;
}

Traffic depthwise_traffic(const ConvShape *s, const Isa *isa, const Version *v,
                          const CacheSizes *caches, uint32_t parts) {
    const size_t planes = (size_t)s->n * ceil_div(s->oc, isa->lanes) * isa->lanes * sizeof(float);
    size_t       under = 0;
    for (uint32_t row = 0; row < s->oh; row += v->rows) {
        uint32_t rows = s->oh - row < v->rows ? s->oh - row : v->rows;
        size_t   in = rows_under(s, rows);
        under += in < s->ih ? in : s->ih;
    }
    // Rows shared by neighbouring tasks are reread unless one part's whole input stays in L2.
    const size_t in = planes * s->iw * s->ih, out = planes * s->ow * s->oh;
    const bool   stays = in / parts < caches->l2 / 2;
    const size_t read = stays || v->split == SPLIT_COLUMNS ? in : planes * s->iw * under;
    const size_t weights = depthwise_weight_count(s, isa) * sizeof(float);
    return (Traffic){.l3_bytes = in + out, .beyond_l2_bytes = read + out + weights};
}
