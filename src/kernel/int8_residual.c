#include "kernel/int8_residual.h"

#include <math.h>

enum { BYTES = 256 };

typedef struct Widened {
    float own[BYTES], from[BYTES];
} Widened;

static float clipped(float x, float lo, float hi) { return x < lo ? lo : x > hi ? hi : x; }

// Floats of this size have no fraction bits; |x| is far below it.
static float rounded(float x) {
    const float shift = 0x1.8p23f;
    return (x + shift) - shift;
}

static void widen(const ByteScale *s, float *out) {
    const float lowest = byte_lowest(s);
    for (int32_t i = 0; i < BYTES; i++) out[i] = (lowest + (float)i) * s->scale;
}

// Products of a byte and a float, and sums of such products, are exact in double if the ratios are
// near 1: one rounding to float, as of a fused multiply-add.
static bool is_near_one(float ratio) { return ratio >= 0x1p-8f && ratio <= 0x1p8f; }

// Both forms for one byte of the convolution and all that are added to it.
static bool row_agrees(const Int8Residual *r, const Widened *w, int32_t i) {
    const float  lowest = byte_lowest(&r->to), highest = byte_highest(&r->to);
    const double own = (double)r->own_ratio * ((double)byte_lowest(&r->own) + i);
    const double from = (double)r->from_ratio, offset = (double)r->offset;
    int32_t      differ = 0;
    for (int32_t j = 0; j < BYTES; j++) {
        const float sum = clipped(w->own[i] + w->from[j], r->least, r->most);
        const float want = rounded(clipped(sum / r->to.scale, lowest, highest));
        const float at = (float)(from * j + offset);
        const float got = rounded(clipped((float)(own + (double)at), r->lo, r->hi));
        differ |= want != got;
    }
    return differ == 0;
}

static bool agrees(const Int8Residual *r, const Widened *w) {
    for (int32_t i = 0; i < BYTES; i++)
        if (!row_agrees(r, w, i)) return false;
    return true;
}

static float moved(float x, int32_t steps) {
    for (; steps > 0; steps--) x = nextafterf(x, INFINITY);
    for (; steps < 0; steps++) x = nextafterf(x, 0);
    return x;
}

// The two forms round differently, so few of the 65536 pairs may disagree: then ratios that are
// the next floats may agree.
static bool find_direct(Int8Residual *r, const Widened *w) {
    enum { STEPS = 9 };
    static const int8_t steps[STEPS] = {0, 1, -1, 2, -2, 3, -3, 4, -4};
    const float         own = r->own.scale / r->to.scale, from = r->from.scale / r->to.scale;
    if (!is_near_one(own) || !is_near_one(from)) return false;
    for (uint32_t i = 0; i < STEPS * STEPS; i++) {
        r->own_ratio = moved(own, steps[i / STEPS]);
        r->from_ratio = moved(from, steps[i % STEPS]);
        r->offset = r->from_ratio * (float)-(r->from.zero + r->flip);
        if (agrees(r, w)) return true;
    }
    return false;
}

Int8Residual int8_residual(const ByteScale *own, const ByteScale *from, const ByteScale *to,
                           float least, float most) {
    Int8Residual r = {.own = *own, .from = *from, .to = *to, .least = least, .most = most};
    const float  lowest = byte_lowest(to), highest = byte_highest(to);
    Widened      w;
    widen(own, w.own);
    widen(from, w.from);
    r.flip = from->is_signed ? 0x80 : 0;
    r.lo = rounded(clipped(least / to->scale, lowest, highest));
    r.hi = rounded(clipped(most / to->scale, lowest, highest));
    r.is_direct = find_direct(&r, &w);
    return r;
}
