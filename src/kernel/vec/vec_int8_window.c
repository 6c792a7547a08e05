#include "kernel/int8_window.h"

#include <math.h>

#include "kernel/blocking.h"
#include "kernel/vec/vec_int8.h"

int8_depthwise_fn VEC(int8_depthwise);
int8_pool_fn      VEC(int8_pool);

enum { BLOCK = INT8_DEPTHWISE_BLOCK };

#define UNROLL VEC_UNROLL(8)

#if VEC_LANES == 16 && defined __AVX512BW__
#define HAS_64 1  // vectors of 64 bytes
#else
#define HAS_64 0
#endif

#if HAS_64
// What follows the sums of 64 channels. Scales below 1 keep products within 32 bits, and packing
// saturates: as clipping before rounding does.
typedef struct Finish64 {
    bool    negative;  // bytes are signed
    bool    packs;     // all scales are below 1
    __m512i zero, lo, hi;
    __m512  lo_float, hi_float;
} Finish64;

VEC_INLINE __m512i bytes_64(float x) { return _mm512_set1_epi8((char)(uint8_t)(int32_t)x); }

static bool are_scales_small(const Int8Output *o, uint32_t n) {
    Vf most = {0};
    for (uint32_t i = 0; i + VEC_LANES <= n; i += VEC_LANES)
        most = vf_max(most, vf_abs(vf_load(o->scale + i) * o->factor));
    return vf_top(most) < 1;
}

static Finish64 finish_of(const Int8Output *o, uint32_t channels) {
    const bool packs = are_scales_small(o, channels);
    return (Finish64){
        .negative = o->lo + (float)o->zero < 0,
        .packs = packs,
        .zero = packs ? _mm512_set1_epi16((short)o->zero) : _mm512_set1_epi32(o->zero),
        .lo = bytes_64(o->lo + (float)o->zero),
        .hi = bytes_64(o->hi + (float)o->zero),
        .lo_float = _mm512_set1_ps(o->lo),
        .hi_float = _mm512_set1_ps(o->hi),
    };
}
#endif

// State of one part: the taps of a pixel. Those of its neighbours lie `shift` bytes beyond.
typedef struct Run {
    const Int8Depthwise *d;
    const uint8_t      **taps;  // [slots]
    size_t               shift;
    uint8_t             *padding;
    uint32_t             pairs, slots;
#if HAS_64
    Finish64 finish;
#endif
} Run;

// The taps of a kernel row in columns from `left` on; from is NULL above and below the input.
static void set_tap_row(const Run *r, const uint8_t *from, int64_t left, const uint8_t **taps) {
    const ConvShape *s = &r->d->shape.conv;
    const ptrdiff_t  pitch = r->d->shape.x_pitch, step = (ptrdiff_t)s->dw * pitch;
    const bool       inside = left >= 0 && left + (int64_t)(s->kw - 1) * s->dw < s->iw;
    if (from != NULL && inside) {
        from += left * pitch;
        for (uint32_t k = 0; k < s->kw; k++, from += step) taps[k] = from;
        return;
    }
    for (uint32_t k = 0; k < s->kw; k++) {
        const int64_t x = left + (int64_t)k * s->dw;
        taps[k] = from != NULL && x >= 0 && x < s->iw ? from + x * pitch : r->padding;
    }
}

static void set_taps(const Run *r, const uint8_t *image, uint32_t oy, uint32_t ox) {
    const ConvShape *s = &r->d->shape.conv;
    const size_t     line = (size_t)s->iw * r->d->shape.x_pitch;
    const int64_t    left = (int64_t)ox * s->sw - s->pl;
    uint32_t         t = 0;
    for (uint32_t k = 0; k < s->kh; k++, t += s->kw) {
        const int64_t y = (int64_t)oy * s->sh + (int64_t)k * s->dh - s->pt;
        set_tap_row(r, y >= 0 && y < s->ih ? image + (size_t)y * line : NULL, left, r->taps + t);
    }
    for (; t < r->slots; t++) r->taps[t] = r->taps[0];  // their weights are 0
}

#ifdef __AVX2__
typedef __m256i Eight;  // sums of eight channels

VEC_INLINE Eight sums_start(const int32_t *bias) {
    return _mm256_loadu_si256((const __m256i *)(const void *)bias);
}

// Adds a pair of taps of eight channels: their bytes lie interleaved in the low half of `mixed`.
VEC_INLINE Eight add_pair(Eight sum, __m128i mixed, const int16_t *w, bool flip) {
    __m256i x = flip ? _mm256_cvtepi8_epi16(mixed) : _mm256_cvtepu8_epi16(mixed);
    __m256i k = _mm256_loadu_si256((const __m256i *)(const void *)w);
    return _mm256_add_epi32(sum, _mm256_madd_epi16(x, k));
}

VEC_INLINE void finish(const Int8Output *o, Eight sum, const float *scale, uint8_t *y) {
    const __m256 f = _mm256_mul_ps(_mm256_loadu_ps(scale), _mm256_set1_ps(o->factor));
    __m256       x = _mm256_mul_ps(_mm256_cvtepi32_ps(sum), f);
    x = _mm256_min_ps(_mm256_set1_ps(o->hi), _mm256_max_ps(_mm256_set1_ps(o->lo), x));
    const __m256i q = _mm256_add_epi32(_mm256_cvtps_epi32(x), _mm256_set1_epi32(o->zero));
    const __m256i order = _mm256_broadcastsi128_si256(
        _mm_setr_epi8(0, 4, 8, 12, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1));
    const __m256i picked = _mm256_shuffle_epi8(q, order);
    _mm_storel_epi64((__m128i *)(void *)y, _mm_unpacklo_epi32(_mm256_castsi256_si128(picked),
                                                              _mm256_extracti128_si256(picked, 1)));
}

VEC_INLINE void channels_16(const Run *r, uint32_t c, const bool is_signed, uint8_t *y) {
    const Int8Depthwise *d = r->d;
    const size_t         block = (size_t)r->pairs * BLOCK * 2;
    const int16_t       *w = d->weights.pairs + c / BLOCK * block;
    Eight                low = sums_start(d->bias + c), high = sums_start(d->bias + c + BLOCK);
    for (uint32_t p = 0; p < r->pairs; p++, w += (size_t)BLOCK * 2) {
        const __m128i a =
            _mm_loadu_si128((const __m128i *)(const void *)(r->taps[2 * p] + r->shift + c));
        const __m128i b =
            _mm_loadu_si128((const __m128i *)(const void *)(r->taps[2 * p + 1] + r->shift + c));
        low = add_pair(low, _mm_unpacklo_epi8(a, b), w, is_signed);
        high = add_pair(high, _mm_unpackhi_epi8(a, b), w + block, is_signed);
    }
    finish(&d->out, low, d->out.scale + c, y + c);
    finish(&d->out, high, d->out.scale + c + BLOCK, y + c + BLOCK);
}

VEC_INLINE void channels_8(const Run *r, uint32_t c, const bool is_signed, uint8_t *y) {
    const Int8Depthwise *d = r->d;
    const int16_t       *w = d->weights.pairs + c / BLOCK * ((size_t)r->pairs * BLOCK * 2);
    Eight                sum = sums_start(d->bias + c);
    for (uint32_t p = 0; p < r->pairs; p++, w += (size_t)BLOCK * 2) {
        const __m128i a =
            _mm_loadl_epi64((const __m128i *)(const void *)(r->taps[2 * p] + r->shift + c));
        const __m128i b =
            _mm_loadl_epi64((const __m128i *)(const void *)(r->taps[2 * p + 1] + r->shift + c));
        sum = add_pair(sum, _mm_unpacklo_epi8(a, b), w, is_signed);
    }
    finish(&d->out, sum, d->out.scale + c, y + c);
}
#else
VEC_INLINE void channels_8(const Run *r, uint32_t c, const bool is_signed, uint8_t *y) {
    const Int8Depthwise *d = r->d;
    const int16_t       *w = d->weights.pairs + c / BLOCK * ((size_t)r->pairs * BLOCK * 2);
    const Int8Output    *o = &d->out;
    Vi                   sum = vi_load(d->bias + c);
    for (uint32_t t = 0; t < r->pairs * 2; t++)
        for (uint32_t i = 0; i < BLOCK; i++) {
            const uint8_t x = r->taps[t][r->shift + c + i];
            sum[i] += (is_signed ? (int8_t)x : x) * w[(size_t)(t / 2) * BLOCK * 2 + i * 2 + t % 2];
        }
    const Vf x = vi_to_float(sum) * (vf_load(o->scale + c) * o->factor);
    vi_store_bytes(y + c, vf_quantize(x, vf_set(o->lo), vf_set(o->hi), vi_set(o->zero)), BLOCK);
}

VEC_INLINE void channels_16(const Run *r, uint32_t c, const bool is_signed, uint8_t *y) {
    channels_8(r, c, is_signed, y);
    channels_8(r, c + BLOCK, is_signed, y);
}
#endif

VEC_INLINE void run_pixel(const Run *r, uint32_t c, const bool is_signed, uint8_t *y) {
    const uint32_t n = round_up(r->d->shape.conv.ic, BLOCK);
    for (; c + 2 * BLOCK <= n; c += 2 * BLOCK) channels_16(r, c, is_signed, y);
    if (c < n) channels_8(r, c, is_signed, y);
}

#if VEC_VNNI
#define HAS_DOT 1
#define dot     dot_quads
#elif HAS_64 && defined __AVX512VL__
#define HAS_DOT 1
// Runs only where weights are packed in quads: with AVX512_VNNI.
VEC_INLINE __m256i dot(__m256i sum, __m256i x, __m256i w) {
    __asm__("vpdpbusd %2, %1, %0" : "+v"(sum) : "v"(x), "v"(w));
    return sum;
}
#else
#define HAS_DOT 0
#endif

#if HAS_DOT
// Interleaves the bytes of four taps: out[i] has channels 4 i to 4 i + 3 of both halves.
VEC_INLINE void interleave(const uint8_t *const *taps, size_t c, __m256i out[4]) {
    const __m256i a = _mm256_loadu_si256((const __m256i *)(const void *)(taps[0] + c));
    const __m256i b = _mm256_loadu_si256((const __m256i *)(const void *)(taps[1] + c));
    const __m256i k = _mm256_loadu_si256((const __m256i *)(const void *)(taps[2] + c));
    const __m256i d = _mm256_loadu_si256((const __m256i *)(const void *)(taps[3] + c));
    const __m256i low = _mm256_unpacklo_epi8(a, b), high = _mm256_unpackhi_epi8(a, b);
    const __m256i rest = _mm256_unpacklo_epi8(k, d), rest_high = _mm256_unpackhi_epi8(k, d);
    out[0] = _mm256_unpacklo_epi16(low, rest);
    out[1] = _mm256_unpackhi_epi16(low, rest);
    out[2] = _mm256_unpacklo_epi16(high, rest_high);
    out[3] = _mm256_unpackhi_epi16(high, rest_high);
}

// Elements 4 i to 4 i + 3 of an array per channel, and the same of the upper 16.
VEC_INLINE __m256i both_halves(const void *x, uint32_t i) {
    const __m128i *at = x;
    return _mm256_inserti128_si256(_mm256_castsi128_si256(_mm_loadu_si128(at + i)),
                                   _mm_loadu_si128(at + i + 4), 1);
}

// Packing to bytes in halves restores the order of the channels.
VEC_INLINE void finish_32(const Int8Output *o, const bool negative, const __m256i sum[4],
                          const __m256 scale[4], uint8_t *y) {
    const __m256  lo = _mm256_set1_ps(o->lo), hi = _mm256_set1_ps(o->hi);
    const __m256i zero = _mm256_set1_epi32(o->zero);
    __m256i       q[4];
    for (uint32_t i = 0; i < 4; i++) {
        const __m256 x = _mm256_mul_ps(_mm256_cvtepi32_ps(sum[i]), scale[i]);
        q[i] = _mm256_cvtps_epi32(_mm256_min_ps(hi, _mm256_max_ps(lo, x)));
        q[i] = _mm256_add_epi32(q[i], zero);
    }
    const __m256i low = _mm256_packs_epi32(q[0], q[1]), high = _mm256_packs_epi32(q[2], q[3]);
    _mm256_storeu_si256((__m256i *)(void *)y,
                        negative ? _mm256_packs_epi16(low, high) : _mm256_packus_epi16(low, high));
}

// 32 channels of n neighbouring pixels.
VEC_INLINE void channels_32(const Run *r, const uint32_t n, const bool negative, uint32_t c,
                            uint8_t *y) {
    const Int8Depthwise *d = r->d;
    const int8_t        *w = d->weights.quads + (size_t)c * r->slots;
    const size_t         step = (size_t)d->shape.conv.sw * d->shape.x_pitch;
    __m256i              sum[INT8_DEPTHWISE_PIXELS][4], x[4];
    __m256               scale[4];
    UNROLL for (uint32_t p = 0; p < n; p++) {
        UNROLL for (uint32_t i = 0; i < 4; i++) sum[p][i] = both_halves(d->bias + c, i);
    }
    for (uint32_t t = 0; t < r->slots; t += INT8_QUAD, w += INT8_QUAD * INT8_DEPTHWISE_WIDE)
        UNROLL for (uint32_t p = 0; p < n; p++) {
            interleave(r->taps + t, c + p * step, x);
            UNROLL for (uint32_t i = 0; i < 4; i++) {
                const void *at = w + (size_t)i * 32;
                sum[p][i] = dot(sum[p][i], x[i], _mm256_loadu_si256(at));
            }
        }
    UNROLL for (uint32_t i = 0; i < 4; i++) {
        scale[i] = _mm256_mul_ps(_mm256_castsi256_ps(both_halves(d->out.scale + c, i)),
                                 _mm256_set1_ps(d->out.factor));
    }
    UNROLL for (uint32_t p = 0; p < n; p++) {
        finish_32(&d->out, negative, sum[p], scale, y + (size_t)p * d->shape.y_pitch + c);
    }
}

#if HAS_64
// Two neighbouring blocks of 32 channels at a time, as above. Weights: the same group of both.
VEC_INLINE __m512i two_blocks(const int8_t *w, size_t block) {
    return _mm512_inserti64x4(
        _mm512_castsi256_si512(_mm256_loadu_si256((const __m256i *)(const void *)w)),
        _mm256_loadu_si256((const __m256i *)(const void *)(w + block)), 1);
}

VEC_INLINE __m512i four_quarters(const void *x, uint32_t i) {
    const char *at = x;
    return _mm512_inserti64x4(_mm512_castsi256_si512(both_halves(at, i)),
                              both_halves(at + sizeof(int32_t) * INT8_DEPTHWISE_WIDE, i), 1);
}

VEC_INLINE __m512i dot_64(__m512i sum, __m512i x, __m512i w) {
    __asm__("vpdpbusd %2, %1, %0" : "+v"(sum) : "v"(x), "v"(w));
    return sum;
}

VEC_INLINE void interleave_64(const uint8_t *const *taps, size_t c, __m512i out[4]) {
    const __m512i a = _mm512_loadu_si512(taps[0] + c), b = _mm512_loadu_si512(taps[1] + c);
    const __m512i k = _mm512_loadu_si512(taps[2] + c), d = _mm512_loadu_si512(taps[3] + c);
    const __m512i low = _mm512_unpacklo_epi8(a, b), high = _mm512_unpackhi_epi8(a, b);
    const __m512i rest = _mm512_unpacklo_epi8(k, d), rest_high = _mm512_unpackhi_epi8(k, d);
    out[0] = _mm512_unpacklo_epi16(low, rest);
    out[1] = _mm512_unpackhi_epi16(low, rest);
    out[2] = _mm512_unpacklo_epi16(high, rest_high);
    out[3] = _mm512_unpackhi_epi16(high, rest_high);
}

VEC_INLINE __m512i clip_64(__m512i x, const Finish64 *f, const bool negative) {
    return negative ? _mm512_min_epi8(f->hi, _mm512_max_epi8(f->lo, x))
                    : _mm512_min_epu8(f->hi, _mm512_max_epu8(f->lo, x));
}

VEC_INLINE void finish_64(const Finish64 *f, const bool packs, const bool negative,
                          const __m512i sum[4], const __m512 scale[4], uint8_t *y) {
    __m512i q[4];
    for (uint32_t i = 0; i < 4; i++) {
        __m512 x = _mm512_mul_ps(_mm512_cvtepi32_ps(sum[i]), scale[i]);
        if (!packs) x = _mm512_min_ps(f->hi_float, _mm512_max_ps(f->lo_float, x));
        q[i] = _mm512_cvtps_epi32(x);
        if (!packs) q[i] = _mm512_add_epi32(q[i], f->zero);
    }
    __m512i low = _mm512_packs_epi32(q[0], q[1]), high = _mm512_packs_epi32(q[2], q[3]);
    if (packs) low = _mm512_adds_epi16(low, f->zero), high = _mm512_adds_epi16(high, f->zero);
    const __m512i all = negative ? _mm512_packs_epi16(low, high) : _mm512_packus_epi16(low, high);
    _mm512_storeu_si512(y, packs ? clip_64(all, f, negative) : all);
}

// 64 channels of n neighbouring pixels.
VEC_INLINE void channels_64(const Run *r, const uint32_t n, const Finish64 *f, uint32_t c,
                            uint8_t *y) {
    const Int8Depthwise *d = r->d;
    const size_t         block = (size_t)INT8_DEPTHWISE_WIDE * r->slots;
    const int8_t        *w = d->weights.quads + (size_t)c * r->slots;
    const size_t         step = (size_t)d->shape.conv.sw * d->shape.x_pitch;
    __m512i              sum[INT8_DEPTHWISE_PIXELS][4], x[4];
    __m512               scale[4];
    UNROLL for (uint32_t i = 0; i < 4; i++) sum[0][i] = four_quarters(d->bias + c, i);
    UNROLL for (uint32_t p = 1; p < n; p++) {
        UNROLL for (uint32_t i = 0; i < 4; i++) sum[p][i] = sum[0][i];
    }
    for (uint32_t t = 0; t < r->slots; t += INT8_QUAD, w += INT8_QUAD * INT8_DEPTHWISE_WIDE) {
        __m512i k[4];
        UNROLL for (uint32_t i = 0; i < 4; i++) k[i] = two_blocks(w + (size_t)i * 32, block);
        UNROLL for (uint32_t p = 0; p < n; p++) {
            interleave_64(r->taps + t, c + p * step, x);
            UNROLL for (uint32_t i = 0; i < 4; i++) sum[p][i] = dot_64(sum[p][i], x[i], k[i]);
        }
    }
    UNROLL for (uint32_t i = 0; i < 4; i++) {
        scale[i] = _mm512_mul_ps(_mm512_castsi512_ps(four_quarters(d->out.scale + c, i)),
                                 _mm512_set1_ps(d->out.factor));
    }
    UNROLL for (uint32_t p = 0; p < n; p++) {
        uint8_t *to = y + (size_t)p * d->shape.y_pitch + c;
        if (!f->packs)
            finish_64(f, false, f->negative, sum[p], scale, to);
        else if (f->negative)
            finish_64(f, true, true, sum[p], scale, to);
        else
            finish_64(f, true, false, sum[p], scale, to);
    }
}

// Whole pairs of blocks of one pixel or of INT8_DEPTHWISE_PIXELS; returns how many channels.
static uint32_t run_widest(const Run *r, uint32_t pixels, uint8_t *y) {
    uint32_t c = 0;
    for (; c + 2 * INT8_DEPTHWISE_WIDE <= r->d->shape.conv.ic; c += 2 * INT8_DEPTHWISE_WIDE) {
        if (pixels == 1)
            channels_64(r, 1, &r->finish, c, y);
        else
            channels_64(r, INT8_DEPTHWISE_PIXELS, &r->finish, c, y);
    }
    return c;
}
#else
static uint32_t run_widest(const Run *r, uint32_t pixels, uint8_t *y) {
    (void)r, (void)pixels, (void)y;
    return 0;
}
#endif

// Whole blocks of 32 channels of one pixel or of INT8_DEPTHWISE_PIXELS; returns how many channels.
static uint32_t run_wide(const Run *r, uint32_t pixels, uint8_t *y) {
    const bool negative = r->d->out.lo + (float)r->d->out.zero < 0;
    if (r->d->weights.quads == NULL) return 0;
    uint32_t c = run_widest(r, pixels, y);
    for (; c + INT8_DEPTHWISE_WIDE <= r->d->shape.conv.ic; c += INT8_DEPTHWISE_WIDE) {
        if (pixels == 1)
            channels_32(r, 1, negative, c, y);
        else
            channels_32(r, INT8_DEPTHWISE_PIXELS, negative, c, y);
    }
    return c;
}
#else
static uint32_t run_wide(const Run *r, uint32_t pixels, uint8_t *y) {
    (void)r, (void)pixels, (void)y;
    return 0;
}
#endif

// Whether the windows of the pixels from x on lie inside the input, so that their taps are equally
// spaced.
static bool are_inside(const ConvShape *s, uint32_t oy, uint32_t x, uint32_t pixels) {
    const int64_t top = (int64_t)oy * s->sh - s->pt, left = (int64_t)x * s->sw - s->pl;
    if (x + pixels > s->ow || top < 0 || left < 0) return false;
    return top + (int64_t)(s->kh - 1) * s->dh < s->ih &&
           left + (int64_t)(pixels - 1) * s->sw + (int64_t)(s->kw - 1) * s->dw < s->iw;
}

static void run_row(Run *r, const uint8_t *image, uint32_t oy, uint8_t *y) {
    const Int8Shape *s = &r->d->shape;
    for (uint32_t x = 0, n; x < s->conv.ow; x += n) {
        n = are_inside(&s->conv, oy, x, INT8_DEPTHWISE_PIXELS) ? INT8_DEPTHWISE_PIXELS : 1;
        r->shift = 0;
        set_taps(r, image, oy, x);
        const uint32_t done = run_wide(r, n, y);
        for (uint32_t p = 0; p < n; p++, y += s->y_pitch) {
            if (s->x_signed)
                run_pixel(r, done, true, y);
            else
                run_pixel(r, done, false, y);
            r->shift += (size_t)s->conv.sw * s->x_pitch;
        }
    }
}

void VEC(int8_depthwise)(const Int8Depthwise *d, Part part) {
    const ConvShape *s = &d->shape.conv;
    Run              r = {.d = d,
                          .taps = part.scratch,
                          .pairs = (s->kh * s->kw + 1) / 2,
                          .slots = int8_depthwise_slots(s)};
#if HAS_64
    r.finish = finish_of(&d->out, s->ic);
#endif
    r.padding = (uint8_t *)part.scratch + align_bytes((size_t)r.slots * sizeof(void *));
    memset(r.padding, (uint8_t)d->x_zero, (size_t)d->shape.x_pitch + INT8_DEPTHWISE_WIDE);
    uint32_t begin, end;
    part_range(part, int8_depthwise_tasks(&d->shape), &begin, &end);
    for (uint32_t i = begin; i < end; i++)
        run_row(&r, d->x + (size_t)(i / s->oh) * s->ih * s->iw * d->shape.x_pitch, i % s->oh,
                d->y + (size_t)i * s->ow * d->shape.y_pitch);
}

// Pooling.

// Positions k of [0, size) with begin + k * step inside [0, limit): from *first, *n of them.
static void taps_inside(int64_t begin, uint32_t size, uint32_t step, int64_t limit, uint32_t *first,
                        uint32_t *n) {
    uint32_t from = 0, to = size;
    while (from < to && begin + (int64_t)from * step < 0) from++;
    while (to > from && begin + (int64_t)(to - 1) * step >= limit) to--;
    *first = from;
    *n = to - from;
}

// Taps inside the input: rows x columns of them, from `at` on.
typedef struct Taps {
    const uint8_t *at;
    size_t         down, across;          // bytes between rows and columns of taps
    uint32_t       rows, columns, count;  // count: divisor of an average
} Taps;

VEC_INLINE Vi pool_taps(const Int8Pool *p, const Taps *t, uint32_t c, uint32_t n,
                        const bool largest) {
    const Vi zero = vi_set(p->from.zero);
    Vi       sum = largest ? vi_set(INT32_MIN) : (Vi){0};
    for (uint32_t i = 0; i < t->rows; i++)
        for (uint32_t j = 0; j < t->columns; j++) {
            Vi x = vi_load_bytes(t->at + i * t->down + j * t->across + c, n);
            if (p->from.is_signed) x = (x << 24) >> 24;
            x -= zero;
            sum = largest ? ((Vi)(x > sum) & x) | (~(Vi)(x > sum) & sum) : sum + x;
        }
    return sum;
}

#ifdef __AVX2__
// Whole blocks of 32 channels of a maximum that keeps its scale; returns how many channels.
static uint32_t largest_bytes(const Int8Pool *p, const Taps *t, uint8_t *y) {
    uint32_t c = 0;
    for (; c + 32 <= p->pool.shape.ic; c += 32) {
        __m256i most = _mm256_loadu_si256((const __m256i *)(const void *)(t->at + c));
        for (uint32_t i = 0; i < t->rows; i++)
            for (uint32_t j = 0; j < t->columns; j++) {
                const __m256i x = _mm256_loadu_si256(
                    (const __m256i *)(const void *)(t->at + i * t->down + j * t->across + c));
                most = p->from.is_signed ? _mm256_max_epi8(most, x) : _mm256_max_epu8(most, x);
            }
        _mm256_storeu_si256((__m256i *)(void *)(y + c), most);
    }
    return c;
}
#else
static uint32_t largest_bytes(const Int8Pool *p, const Taps *t, uint8_t *y) {
    (void)p, (void)t, (void)y;
    return 0;
}
#endif

static void pool_channels(const Int8Pool *p, const Taps *t, uint8_t *y) {
    const bool same = p->from.scale == p->to.scale && p->from.zero == p->to.zero &&
                      p->from.is_signed == p->to.is_signed;
    uint32_t c = 0;
    if (same && p->pool.kind == POOL_MAX && t->rows * t->columns > 0) c = largest_bytes(p, t, y);
    const Vf lo = vf_set(byte_lowest(&p->to)), hi = vf_set(byte_highest(&p->to));
    for (; c < p->pool.shape.ic; c += VEC_LANES) {
        const uint32_t n = min_u32(VEC_LANES, p->pool.shape.ic - c);
        Vf             v;
        if (p->pool.kind == POOL_MAX)
            v = vi_to_float(pool_taps(p, t, c, n, true)) * p->from.scale;
        else
            v = vi_to_float(pool_taps(p, t, c, n, false)) * p->from.scale / (float)t->count;
        vi_store_bytes(y + c, vf_quantize(v / p->to.scale, lo, hi, vi_set(p->to.zero)), n);
    }
}

static void pool_pixel(const Int8Pool *p, const uint8_t *image, uint32_t oy, uint32_t ox,
                       uint8_t *y) {
    const Pool      *w = &p->pool;
    const ConvShape *s = &w->shape;
    const int64_t    top = (int64_t)oy * s->sh - s->pt, left = (int64_t)ox * s->sw - s->pl;
    const size_t     line = (size_t)s->iw * p->pitch;
    uint32_t         ky, kx, k, rows, columns;
    Taps             t = {.down = s->dh * line, .across = (size_t)s->dw * p->pitch};
    taps_inside(top, s->kh, s->dh, s->ih, &ky, &t.rows);
    taps_inside(left, s->kw, s->dw, s->iw, &kx, &t.columns);
    taps_inside(top + s->pt, s->kh, s->dh, (int64_t)s->ih + s->pt + w->pb, &k, &rows);
    taps_inside(left + s->pl, s->kw, s->dw, (int64_t)s->iw + s->pl + w->pr, &k, &columns);
    t.count = w->count_pad ? rows * columns : t.rows * t.columns;
    t.at = image + (top + (int64_t)ky * s->dh) * (int64_t)line +
           (left + (int64_t)kx * s->dw) * (int64_t)p->pitch;
    pool_channels(p, &t, y);
}

void VEC(int8_pool)(const Int8Pool *p, Part part) {
    const ConvShape *s = &p->pool.shape;
    uint32_t         begin, end;
    part_range(part, int8_pool_tasks(p), &begin, &end);
    for (uint32_t i = begin; i < end; i++) {
        const uint8_t *image = p->x + (size_t)(i / s->oh) * s->ih * s->iw * p->pitch;
        uint8_t       *y = p->y + (size_t)i * s->ow * p->pitch;
        for (uint32_t x = 0; x < s->ow; x++, y += p->pitch) pool_pixel(p, image, i % s->oh, x, y);
    }
}
