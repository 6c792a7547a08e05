#include "kernel/relay.h"
#include "kernel/vec_transpose.h"

relay_block_fn VEC(relay_block);
relay_plain_fn VEC(relay_plain);

// One task: `pixels` pixels of the `channels` <= VEC_LANES channels of a block.
typedef struct Run {
    const float *from;
    float       *to;
    size_t       stride;  // between channels of the plain side
    uint32_t     channels, pixels;
} Run;

VEC_INLINE void block_square(const float *from, size_t stride, uint32_t channels, float *to) {
    Vf r[VEC_LANES];
#pragma GCC unroll 16
    for (uint32_t i = 0; i < VEC_LANES; i++)
        r[i] = i < channels ? vf_load(from + i * stride) : vf_set(0);
    vec_transpose(r);
#pragma GCC unroll 16
    for (uint32_t i = 0; i < VEC_LANES; i++) vf_store(to + i * VEC_LANES, r[i]);
}

VEC_INLINE void plain_square(const float *from, float *to, size_t stride, uint32_t channels) {
    Vf r[VEC_LANES];
#pragma GCC unroll 16
    for (uint32_t i = 0; i < VEC_LANES; i++) r[i] = vf_load(from + i * VEC_LANES);
    vec_transpose(r);
#pragma GCC unroll 16
    for (uint32_t i = 0; i < VEC_LANES; i++)
        if (i < channels) vf_store(to + i * stride, r[i]);
}

static void block_one(const Run *r, uint32_t p) {
    for (uint32_t c = 0; c < VEC_LANES; c++)
        r->to[(size_t)p * VEC_LANES + c] = c < r->channels ? r->from[c * r->stride + p] : 0;
}

static void plain_one(const Run *r, uint32_t p) {
    for (uint32_t c = 0; c < r->channels; c++)
        r->to[c * r->stride + p] = r->from[(size_t)p * VEC_LANES + c];
}

// The last square overlaps the one before it when pixels are not a multiple of lanes.
#define SQUARES(r, p, square)                                                                      \
    do {                                                                                           \
        uint32_t p = 0;                                                                            \
        for (; p + VEC_LANES <= (r)->pixels; p += VEC_LANES) square;                               \
        p = (r)->pixels - VEC_LANES;                                                               \
        if ((r)->pixels % VEC_LANES != 0) square;                                                  \
    } while (0)

static void block_run(const Run *r) {
    if (r->pixels < VEC_LANES)
        for (uint32_t p = 0; p < r->pixels; p++) block_one(r, p);
    else if (r->channels == VEC_LANES)
        SQUARES(r, p,
                block_square(r->from + p, r->stride, VEC_LANES, r->to + (size_t)p * VEC_LANES));
    else
        SQUARES(r, p,
                block_square(r->from + p, r->stride, r->channels, r->to + (size_t)p * VEC_LANES));
}

static void plain_run(const Run *r) {
    if (r->pixels < VEC_LANES)
        for (uint32_t p = 0; p < r->pixels; p++) plain_one(r, p);
    else if (r->channels == VEC_LANES)
        SQUARES(r, p,
                plain_square(r->from + (size_t)p * VEC_LANES, r->to + p, r->stride, VEC_LANES));
    else
        SQUARES(r, p,
                plain_square(r->from + (size_t)p * VEC_LANES, r->to + p, r->stride, r->channels));
}

// Where a task begins in the plain and in the blocked tensor.
typedef struct Place {
    size_t   plain, blocked;
    uint32_t channels, pixels;
} Place;

static Place place(const Relay *r, uint32_t task) {
    uint32_t blocks = (r->channels + VEC_LANES - 1) / VEC_LANES;
    uint32_t cuts = (uint32_t)((r->pixels + RELAY_PIXELS - 1) / RELAY_PIXELS);
    uint32_t image = task / cuts / blocks, block = task / cuts % blocks;
    uint32_t left = r->channels - block * VEC_LANES;
    size_t   begin = (size_t)(task % cuts) * RELAY_PIXELS, rest = r->pixels - begin;
    return (Place){
        .plain = ((size_t)image * r->channels + block * VEC_LANES) * r->pixels + begin,
        .blocked = (((size_t)image * blocks + block) * r->pixels + begin) * VEC_LANES,
        .channels = left < VEC_LANES ? left : VEC_LANES,
        .pixels = rest < RELAY_PIXELS ? (uint32_t)rest : RELAY_PIXELS,
    };
}

void VEC(relay_block)(const Relay *r, Part part) {
    uint32_t task, end;
    part_range(part, relay_tasks(r, VEC_LANES), &task, &end);
    for (; task < end; task++) {
        Place p = place(r, task);
        Run   run = {r->from + p.plain, r->to + p.blocked, r->pixels, p.channels, p.pixels};
        block_run(&run);
    }
}

void VEC(relay_plain)(const Relay *r, Part part) {
    uint32_t task, end;
    part_range(part, relay_tasks(r, VEC_LANES), &task, &end);
    for (; task < end; task++) {
        Place p = place(r, task);
        Run   run = {r->from + p.blocked, r->to + p.plain, r->pixels, p.channels, p.pixels};
        plain_run(&run);
    }
}
