#include "kernel/quantize.h"

#include <math.h>

#include "kernel/blocking.h"
#include "kernel/vec/vec_byte_scale.h"

quantize_fn         VEC(quantize);
dequantize_fn       VEC(dequantize);
byte_range_fn       VEC(byte_range);
byte_elementwise_fn VEC(byte_elementwise);

static void quantize_span(const ByteScale *s, const float *x, size_t n, uint8_t *y) {
    const ToBytes t = to_bytes(s);
    size_t        i = 0;
    for (; i + VEC_LANES <= n; i += VEC_LANES)
        vi_store_bytes(y + i, quantized(&t, vf_load(x + i)), VEC_LANES);
    if (i < n)
        vi_store_bytes(y + i, quantized(&t, vf_load_some(x + i, (uint32_t)(n - i))),
                       (uint32_t)(n - i));
}

// Up to four channels: a lane is a pixel.
static void quantize_four(const Quantize *q, const float *x, size_t from, size_t to, uint8_t *y) {
    const ToBytes t = to_bytes(&q->to);
    for (size_t p = from; p < to; p += VEC_LANES) {
        const uint32_t n = (uint32_t)(to - p < VEC_LANES ? to - p : VEC_LANES);
        int32_t        some[VEC_LANES];
        Vi             all = {0};
        for (uint32_t c = 0; c < q->channels; c++)
            all |= (quantized(&t, vf_load_part(x + c * q->pixels + p, n)) & 255) << (8 * (int)c);
        vi_store(some, all);
        memcpy(y + p * q->pitch, some, n * sizeof *some);
    }
}

static void quantize_pixels(const Quantize *q, const float *x, size_t from, size_t to, uint8_t *y) {
    const ToBytes t = to_bytes(&q->to);
    for (size_t p = from; p < to; p += VEC_LANES) {
        const uint32_t n = (uint32_t)(to - p < VEC_LANES ? to - p : VEC_LANES);
        for (uint32_t c = 0; c < q->channels; c++) {
            const Vi all = quantized(&t, vf_load_part(x + c * q->pixels + p, n));
            for (uint32_t i = 0; i < n; i++) y[(p + i) * q->pitch + c] = (uint8_t)all[i];
        }
    }
}

// x is blocked: a vector has neighbouring channels of a pixel.
static void quantize_blocks(const Quantize *q, const float *x, size_t from, size_t to, uint8_t *y) {
    const ToBytes t = to_bytes(&q->to);
    for (uint32_t c = 0; c < q->channels; c += VEC_LANES, x += q->pixels * VEC_LANES) {
        const uint32_t n = q->channels - c < VEC_LANES ? q->channels - c : VEC_LANES;
        for (size_t p = from; p < to; p++)
            vi_store_bytes(y + p * q->pitch + c, quantized(&t, vf_load(x + p * VEC_LANES)), n);
    }
}

void VEC(quantize)(const Quantize *q, Part part) {
    uint32_t tasks = quantize_tasks(q), begin, end;
    part_range(part, tasks, &begin, &end);
    if (q->pixels == 0) {
        const size_t from = (size_t)begin * QUANTIZE_PIECE, to = (size_t)end * QUANTIZE_PIECE;
        const size_t stop = to < q->count ? to : q->count;
        if (from < stop) quantize_span(&q->to, q->x + from, stop - from, q->y + from);
        return;
    }
    const uint32_t each = tasks / q->n;
    for (uint32_t i = begin; i < end; i++) {
        const size_t from = q->pixels * (i % each) / each, to = q->pixels * (i % each + 1) / each;
        const size_t channels = q->blocked ? round_up(q->channels, VEC_LANES) : q->channels;
        const float *x = q->x + (size_t)(i / each) * channels * q->pixels;
        uint8_t     *y = q->y + (size_t)(i / each) * q->pitch * q->pixels;
        if (q->blocked)
            quantize_blocks(q, x, from, to, y);
        else if (q->channels <= INT8_QUAD && q->pitch == INT8_QUAD)
            quantize_four(q, x, from, to, y);
        else
            quantize_pixels(q, x, from, to, y);
    }
}

static void dequantize_span(const ByteScale *s, const uint8_t *x, size_t n, float *y) {
    const Vf scale = vf_set(s->scale);
    const Vi zero = vi_set(s->zero);
    size_t   i = 0;
    for (; i + VEC_LANES <= n; i += VEC_LANES)
        vf_store(y + i, vi_to_float(centred(x + i, VEC_LANES, s->is_signed, zero)) * scale);
    if (i == n) return;
    const uint32_t some = (uint32_t)(n - i);
    vf_store_some(y + i, vi_to_float(centred(x + i, some, s->is_signed, zero)) * scale, some);
}

// From pixels to blocks: a vector has neighbouring channels of a pixel.
static void dequantize_blocks(const Dequantize *d, const uint8_t *x, size_t from, size_t to,
                              float *y) {
    const Vf scale = vf_set(d->from.scale);
    const Vi zero = vi_set(d->from.zero);
    for (uint32_t c = 0; c < d->pitch; c += VEC_LANES, y += d->pixels * VEC_LANES)
        for (size_t p = from; p < to; p++) {
            const Vi q = centred(x + p * d->pitch + c, VEC_LANES, d->from.is_signed, zero);
            vf_store(y + p * VEC_LANES, vi_to_float(q) * scale);
        }
}

void VEC(dequantize)(const Dequantize *d, Part part) {
    uint32_t tasks = dequantize_tasks(d), begin, end;
    part_range(part, tasks, &begin, &end);
    for (uint32_t i = begin; d->pixels > 0 && i < end; i++) {
        const uint32_t each = tasks / d->n;
        const size_t   image = (size_t)(i / each) * d->pitch * d->pixels;
        dequantize_blocks(d, d->x + image, d->pixels * (i % each) / each,
                          d->pixels * (i % each + 1) / each, d->y + image);
    }
    if (d->pixels > 0) return;
    const size_t from = (size_t)begin * QUANTIZE_PIECE, to = (size_t)end * QUANTIZE_PIECE;
    const size_t stop = to < d->count ? to : d->count;
    if (from < stop) dequantize_span(&d->from, d->x + from, stop - from, d->y + from);
}

// Comparisons with NaN are false, as in the reference kernel: NaN does not extend the range.
void VEC(byte_range)(const float *x, size_t n, ByteScale *out) {
    Vf     low = {0}, high = {0};
    size_t i = 0;
    for (; i < n; i += VEC_LANES) {
        const Vf v = vf_load_part(x + i, (uint32_t)(n - i < VEC_LANES ? n - i : VEC_LANES));
        low = vf_choose((Vi)(v < low), v, low);
        high = vf_choose((Vi)(v > high), v, high);
    }
    float least = 0, most = 0;
    for (int l = 0; l < VEC_LANES; l++) {
        if (low[l] < least) least = low[l];
        if (high[l] > most) most = high[l];
    }
    const float scale = most == least ? 1 : (most - least) / 255;
    const float at = nearbyintf(-least / scale);
    *out = (ByteScale){scale, !(at > 0) ? 0 : at > 255 ? 255 : (int32_t)at, false};
}

enum { CHUNK = 256 };

// Arguments become floats in L1, and so do the results.
static void elementwise_chunk(const ByteElementwise *e, size_t at, size_t n, float (*args)[CHUNK]) {
    ElementwiseInput in[EWISE_MAX_ARGS];
    float            own[CHUNK], *result = e->floats != NULL ? e->floats + at : own;
    for (uint32_t i = 0; i < e->program->n_args; i++) {
        in[i] = (ElementwiseInput){e->in[i].at, EWISE_SCALAR};
        if (e->in[i].kind == BYTE_ARG_SCALAR) continue;
        in[i].mode = EWISE_CONTIGUOUS;
        if (e->in[i].kind == BYTE_ARG_FLOATS) {
            in[i].at += at;
            continue;
        }
        dequantize_span(&e->in[i].from, (const uint8_t *)e->in[i].at + at, n, args[i]);
        in[i].at = args[i];
    }
    VEC(ewise_span)(e->program, in, result, n);
    quantize_span(&e->to, result, n, e->y + at);
}

// The sum of two byte arrays, clipped: the residual connections of convolutional networks.
static bool is_sum(const ByteElementwise *e) {
    const ElementwiseProgram *p = e->program;
    const ElementwiseStep    *s = p->steps;
    if (p->n_args != 2 || p->n_steps < 1 || p->n_steps > 2 || s[0].op != EWISE_ADD) return false;
    if (e->floats != NULL || s[0].a == s[0].b || s[0].a < EWISE_ARG || s[0].b < EWISE_ARG)
        return false;
    if (e->in[0].kind != BYTE_ARG_BYTES || e->in[1].kind != BYTE_ARG_BYTES) return false;
    return p->n_steps == 1 || (s[1].op == EWISE_CLIP && s[1].a == s[0].to);
}

static void add_bytes(const ByteElementwise *e, size_t from, size_t to) {
    const ElementwiseStep *s = e->program->steps;
    const bool             clips = e->program->n_steps == 2;
    const ByteSum          sum = {e->in[0].from, e->in[1].from, e->to, clips ? s[1].p : -INFINITY,
                         clips ? s[1].q : INFINITY};
    sum_span(&sum, (const uint8_t *)e->in[0].at + from, (const uint8_t *)e->in[1].at + from,
             to - from, e->y + from);
}

void VEC(byte_elementwise)(const ByteElementwise *e, Part part) {
    float    args[EWISE_MAX_ARGS][CHUNK];
    uint32_t begin, end;
    part_range(part, byte_elementwise_tasks(e), &begin, &end);
    const size_t to = (size_t)end * QUANTIZE_PIECE, stop = to < e->count ? to : e->count;
    if (is_sum(e)) {
        if ((size_t)begin * QUANTIZE_PIECE < stop)
            add_bytes(e, (size_t)begin * QUANTIZE_PIECE, stop);
        return;
    }
    for (size_t at = (size_t)begin * QUANTIZE_PIECE; at < stop; at += CHUNK)
        elementwise_chunk(e, at, stop - at < CHUNK ? stop - at : CHUNK, args);
}
