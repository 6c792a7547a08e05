#include "kernel/deconv.h"

#include <stdbool.h>

#include "base/err.h"
#include "kernel/blocking.h"
#include "kernel/tile.h"

static DeconvAxis axis(uint32_t in, uint32_t out, uint32_t taps, uint32_t stride, uint32_t dilation,
                       uint32_t pad) {
    DeconvAxis a = {in, out, taps, stride, dilation, pad, .count = ceil_div(out, stride)};
    a.low = deconv_at(&a, taps - 1);
    a.reach = (uint32_t)(deconv_at(&a, 0) - a.low);
    return a;
}

// deconv_at decreases with the tap, so the first and last taps bound it (see axis).
DeconvPlan deconv_plan(const ConvShape *s, const Version *v, uint32_t lanes, uint32_t registers) {
    DeconvPlan p = {.y = axis(s->ih, s->oh, s->kh, s->sh, s->dh, s->pt),
                    .x = axis(s->iw, s->ow, s->kw, s->sw, s->dw, s->pl),
                    .lanes = lanes,
                    .blocks = s->ic / lanes,
                    .rest = s->ic % lanes,
                    .vecs = ceil_div(s->oc, lanes)};
    CHECK(s->groups == 1);
    p.tile_vecs = clamp_u32(v->tile_vecs, 1, p.vecs < TILE_MAX_VECS ? p.vecs : TILE_MAX_VECS);
    p.tile_rows = clamp_u32(v->tile_rows, 1, tile_most_rows(registers, p.tile_vecs));
    p.vec_groups = ceil_div(p.vecs, p.tile_vecs);
    uint32_t each = v->columns > 0 ? ceil_div(v->columns, p.tile_vecs) : p.vec_groups;
    p.col_groups = ceil_div(p.vec_groups, each < p.vec_groups ? each : p.vec_groups);
    uint32_t rows = v->rows > 0 && v->rows < p.y.count ? v->rows : p.y.count;
    p.row_blocks = ceil_div(p.y.count, rows);
    p.block_rows = ceil_div(p.y.count, p.row_blocks);
    p.tasks = s->n * p.row_blocks * p.col_groups;
    p.height = p.block_rows + p.y.reach;
    p.width = p.x.count + p.x.reach;
    p.row_pitch = (size_t)p.width * lanes;
    p.block_pitch = p.row_pitch * p.height;
    size_t blocks = p.blocks + (p.rest > 0);
    p.terms_bytes = align_bytes(blocks * s->kh * s->kw * sizeof(int32_t));
    p.rows_bytes = align_bytes((size_t)p.block_rows * p.x.count * sizeof(float *));
    p.slab_bytes = align_bytes(blocks * p.block_pitch * sizeof(float));
    CHECK(blocks * p.block_pitch <= INT32_MAX);
    return p;
}

size_t deconv_pack_bytes(const ConvShape *s, const Isa *isa) {
    size_t columns = (size_t)ceil_div(s->oc, isa->lanes) * isa->lanes;
    return columns * s->ic * s->kh * s->kw * sizeof(float);
}

// One tap of some input channels: a vector of output channels each; those beyond oc are 0.
static float *pack_tap(const ConvShape *s, uint32_t lanes, const float *w, uint32_t first,
                       uint32_t channel, uint32_t channels, uint32_t tap, float *out) {
    for (uint32_t k = channel; k < channel + channels; k++)
        for (uint32_t i = first; i < first + lanes; i++)
            *out++ = i < s->oc ? w[((size_t)k * s->oc + i) * s->kh * s->kw + tap] : 0;
    return out;
}

// Each phase has its own panels: per vector of output channels, blocks of channels, taps, channels.
static float *pack_phase(const ConvShape *s, const DeconvPlan *p, uint32_t y, uint32_t x,
                         const float *w, float *out) {
    for (uint32_t first = 0; first < s->oc; first += p->lanes)
        for (uint32_t k = 0; k < s->ic; k += p->lanes)
            for (uint32_t tap = 0; tap < s->kh * s->kw; tap++) {
                if (deconv_phase(&p->y, tap / s->kw) != y) continue;
                if (deconv_phase(&p->x, tap % s->kw) != x) continue;
                uint32_t channels = s->ic - k < p->lanes ? s->ic - k : p->lanes;
                out = pack_tap(s, p->lanes, w, first, k, channels, tap, out);
            }
    return out;
}

void deconv_pack(const ConvShape *s, const Isa *isa, const float *w, float *out) {
    DeconvPlan p = deconv_plan(s, &(Version){0}, isa->lanes, isa->registers);
    for (uint32_t y = 0; y < s->sh; y++)
        for (uint32_t x = 0; x < s->sw; x++) out = pack_phase(s, &p, y, x, w, out);
}

uint32_t deconv_tasks(const ConvShape *s, const Isa *isa, const Version *v) {
    return deconv_plan(s, v, isa->lanes, isa->registers).tasks;
}

size_t deconv_scratch(const ConvShape *s, const Isa *isa, const Version *v) {
    DeconvPlan p = deconv_plan(s, v, isa->lanes, isa->registers);
    return p.terms_bytes + p.rows_bytes + p.slab_bytes;
}

// Rows per `bytes` of staged input.
static uint16_t rows_within(const DeconvPlan *p, size_t bytes) {
    size_t   row = p->row_pitch * (p->blocks + (p->rest > 0)) * sizeof(float);
    size_t   rows = bytes / row;
    uint32_t own = rows > p->y.reach ? (uint32_t)(rows - p->y.reach) : 1;
    return (uint16_t)(own < UINT16_MAX ? own : UINT16_MAX);
}

uint32_t deconv_versions(const ConvShape *s, const Isa *isa, const CacheSizes *caches, Version *out,
                         uint32_t max) {
    DeconvPlan p = deconv_plan(s, &(Version){.tile_vecs = 1}, isa->lanes, isa->registers);
    uint32_t   n = 0;
    // A tile does not cross the end of a row, so short rows use wider tiles.
    bool     short_rows = p.x.count <= tile_most_rows(isa->registers, 3);
    uint32_t first = short_rows || (p.vecs % 2 == 1 && p.vecs % 3 == 0) ? 3 : 2;
    for (uint32_t i = 0; i < 3; i++) {
        uint32_t vecs = clamp_u32(i == 0   ? first
                                  : i == 1 ? 5 - first
                                           : 4,
                                  1, p.vecs < 4 ? p.vecs : 4);
        for (uint32_t k = 0; k < 4; k++) {
            Version v = {.algo = ALGO_DIRECT,
                         .split = SPLIT_ROWS,
                         .tile_rows = (uint8_t)tile_most_rows(isa->registers, vecs),
                         .tile_vecs = (uint8_t)vecs,
                         .columns = k % 2 == 0 ? (uint16_t)vecs : 0,
                         .rows = rows_within(&p, k < 2 ? caches->l2 / 4 : caches->l2 / 16)};
            if (v.rows >= p.y.count) v.rows = 0;
            version_add(v, out, &n, max);
        }
    }
    return n;
}

Traffic deconv_traffic(const ConvShape *s, const Isa *isa, const Version *v,
                       const CacheSizes *caches, uint32_t parts) {
    DeconvPlan p = deconv_plan(s, v, isa->lanes, isa->registers);
    size_t     weights = deconv_pack_bytes(s, isa), blocks = (size_t)s->n * p.row_blocks;
    size_t     lanes = isa->lanes, in = (size_t)ceil_div(s->ic, isa->lanes) * s->ih * s->iw;
    size_t     rest = (in + (size_t)p.vecs * s->oh * s->ow) * lanes * s->n * sizeof(float);
    size_t     reads = weights + p.slab_bytes > caches->l2 || blocks < parts ? blocks : parts;
    return (Traffic){reads > 1 ? weights : 0, weights * reads + rest};
}
