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

static uint32_t taps_of_phase(const DeconvAxis *a, uint32_t phase) {
    uint32_t n = 0;
    for (uint32_t tap = 0; tap < a->taps; tap++) n += deconv_phase(a, tap) == phase;
    return n;
}

// Blocks of input channels, from the first to the last that one vector of output channels reads.
static uint32_t widest_span(const ConvShape *s, const DeconvPlan *p) {
    uint32_t blocks = p->blocks + (p->rest > 0), most = 1;
    uint32_t in = s->ic / s->groups, out = s->oc / s->groups;
    if (s->groups == 1) return blocks;
    for (uint32_t vec = 0; vec < p->vecs; vec++) {
        uint32_t first = vec * p->lanes / out * in / p->lanes;
        uint32_t last = (min_u32((vec + 1) * p->lanes, s->oc) - 1) / out;
        most = max_u32(most, ceil_div((last + 1) * in, p->lanes) - first);
    }
    return most;
}

static void plan_reduction(const ConvShape *s, DeconvPlan *p) {
    p->span = widest_span(s, p);
    p->depth = s->groups == 1 ? s->ic : p->span * p->lanes;
    p->planes = 1;
    for (uint32_t i = 0; i < p->z.stride && i < p->z.taps; i++)
        p->planes = max_u32(p->planes, taps_of_phase(&p->z, deconv_phase(&p->z, i)));
}

// deconv_at decreases with the tap, so the first and last taps bound it (see axis).
DeconvPlan deconv_plan(const ConvShape *s, const Version *v, uint32_t lanes, uint32_t registers) {
    DeconvPlan p = {.z = s->kd > 0 ? axis(s->id, s->od, s->kd, s->sd, s->dd, s->pf)
                                   : axis(1, 1, 1, 1, 1, 0),
                    .y = axis(s->ih, s->oh, s->kh, s->sh, s->dh, s->pt),
                    .x = axis(s->iw, s->ow, s->kw, s->sw, s->dw, s->pl),
                    .lanes = lanes,
                    .blocks = s->ic / lanes,
                    .rest = s->ic % lanes,
                    .vecs = ceil_div(s->oc, lanes)};
    plan_reduction(s, &p);
    uint32_t most = s->groups > 1 ? 1 : min_u32(p.vecs, TILE_MAX_VECS);
    p.tile_vecs = clamp_u32(v->tile_vecs, 1, most);
    p.tile_rows = clamp_u32(v->tile_rows, 1, tile_most_rows(registers, p.tile_vecs));
    p.vec_groups = ceil_div(p.vecs, p.tile_vecs);
    uint32_t each = v->columns > 0 ? ceil_div(v->columns, p.tile_vecs) : p.vec_groups;
    p.col_groups = ceil_div(p.vec_groups, each < p.vec_groups ? each : p.vec_groups);
    uint32_t rows = v->rows > 0 && v->rows < p.y.count ? v->rows : p.y.count;
    p.row_blocks = ceil_div(p.y.count, rows);
    p.block_rows = ceil_div(p.y.count, p.row_blocks);
    p.tasks = checked_tasks((uint64_t)s->n * p.z.out * p.row_blocks * p.col_groups);
    p.height = p.block_rows + p.y.reach;
    p.width = p.x.count + p.x.reach;
    p.row_pitch = (size_t)p.width * lanes;
    p.plane_pitch = p.row_pitch * p.height;
    p.block_pitch = p.plane_pitch * p.planes;
    size_t blocks = p.blocks + (p.rest > 0);
    p.terms_bytes = align_bytes(blocks * p.planes * s->kh * s->kw * sizeof(int32_t));
    p.rows_bytes = align_bytes((size_t)p.block_rows * p.x.count * sizeof(float *));
    p.slab_bytes = align_bytes(blocks * p.block_pitch * sizeof(float));
    CHECK(blocks * p.block_pitch <= INT32_MAX);
    return p;
}

size_t deconv_pack_bytes(const ConvShape *s, const Isa *isa) {
    DeconvPlan p = deconv_plan(s, &(Version){0}, isa->lanes, isa->registers);
    size_t     columns = (size_t)p.vecs * p.lanes;
    return columns * p.depth * p.z.taps * s->kh * s->kw * sizeof(float);
}

typedef struct Packer {
    const ConvShape  *s;
    const DeconvPlan *p;
    const float      *w;
    float            *out;
} Packer;

// One tap of some input channels: a vector of output channels each; those beyond oc or of other
// groups are 0.
static void pack_tap(Packer *k, uint32_t first, uint32_t channel, size_t tap) {
    const ConvShape *s = k->s;
    uint32_t         in = s->ic / s->groups, each = s->oc / s->groups;
    size_t           taps = (size_t)k->p->z.taps * s->kh * s->kw;
    for (uint32_t c = channel; c < s->ic && c < channel + k->p->lanes; c++)
        for (uint32_t i = first; i < first + k->p->lanes; i++) {
            bool own = i < s->oc && i / each == c / in;
            *k->out++ = own ? k->w[((size_t)c * each + i % each) * taps + tap] : 0;
        }
}

static bool tap_is_in(const DeconvPlan *p, size_t tap, const uint32_t *phase) {
    uint32_t x = (uint32_t)(tap % p->x.taps), y = (uint32_t)(tap / p->x.taps % p->y.taps);
    uint32_t z = (uint32_t)(tap / p->x.taps / p->y.taps);
    return deconv_phase(&p->z, z) == phase[0] && deconv_phase(&p->y, y) == phase[1] &&
           deconv_phase(&p->x, x) == phase[2];
}

// Each phase has its own panels: per vector of output channels, blocks of channels, taps, channels.
static void pack_phase(Packer *k, const uint32_t *phase) {
    const DeconvPlan *p = k->p;
    size_t            taps = (size_t)p->z.taps * p->y.taps * p->x.taps, used = 0;
    for (size_t tap = 0; tap < taps; tap++) used += tap_is_in(p, tap, phase);
    for (uint32_t vec = 0; vec < p->vecs; vec++) {
        float   *end = k->out + used * p->depth * p->lanes;
        uint32_t first = deconv_first_block(k->s, p, vec);
        for (uint32_t b = first; b < first + p->span; b++)
            for (size_t tap = 0; tap < taps; tap++)
                if (tap_is_in(p, tap, phase)) pack_tap(k, vec * p->lanes, b * p->lanes, tap);
        while (k->out < end) *k->out++ = 0;
    }
}

void deconv_pack(const ConvShape *s, const Isa *isa, const float *w, float *out) {
    DeconvPlan p = deconv_plan(s, &(Version){0}, isa->lanes, isa->registers);
    Packer     k = {s, &p, w, out};
    for (uint32_t z = 0; z < p.z.stride; z++)
        for (uint32_t y = 0; y < s->sh; y++)
            for (uint32_t x = 0; x < s->sw; x++) pack_phase(&k, (uint32_t[]){z, y, x});
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
    size_t   row = p->row_pitch * p->planes * (p->blocks + (p->rest > 0)) * sizeof(float);
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
    size_t     weights = deconv_pack_bytes(s, isa), blocks = (size_t)s->n * p.z.out * p.row_blocks;
    size_t     lanes = isa->lanes, in = (size_t)ceil_div(s->ic, isa->lanes) * s->ih * s->iw;
    size_t     out = (size_t)p.vecs * s->oh * s->ow * p.z.out;
    size_t     rest = (in * p.z.in + out) * lanes * s->n * sizeof(float);
    size_t     reads = weights + p.slab_bytes > caches->l2 || blocks < parts ? blocks : parts;
    return (Traffic){reads > 1 ? weights : 0, weights * reads + rest};
}
