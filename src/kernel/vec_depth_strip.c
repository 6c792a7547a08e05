#include "base/check.h"
#include "kernel/vec_depth.h"

// Loops over pixels and taps are unrolled to the last one: only then do sums live in registers.
#define UNROLL _Pragma("GCC unroll 32")

// A pointer the compiler knows nothing of is one register with constant offsets from it.
#define OPAQUE(x) __asm__("" : "+r"(x))

VEC_INLINE void start(const Strip *s, const uint32_t tile, Vf *sum) {
    const Vf bias = s->bias != NULL ? vf_load(s->bias) : (Vf){0};
    UNROLL for (uint32_t p = 0; p < tile; p++) sum[p] = bias;
}

// Seen through a pointer of which the compiler knows nothing, the clip stays in memory until here:
// its two vectors would push weights out of the registers.
VEC_INLINE void finish(const Strip *s, const uint32_t tile, size_t at, Vf *sum) {
    OPAQUE(s);
    if (s->add != NULL) {
        UNROLL for (uint32_t p = 0; p < tile; p++) {
            sum[p] += vf_load(s->add + at + p * VEC_LANES);
        }
    }
    if (s->clips) {
        const Vf lo = vf_set(s->lo), hi = vf_set(s->hi);
        UNROLL for (uint32_t p = 0; p < tile; p++) sum[p] = vf_min(hi, vf_max(lo, sum[p]));
    }
    UNROLL for (uint32_t p = 0; p < tile; p++) vf_store(s->y + at + p * VEC_LANES, sum[p]);
}

// One kernel row: every input is loaded once and meets all its taps.
VEC_INLINE void meet(const Strip *s, const uint32_t taps, const uint32_t step, const uint32_t tile,
                     const bool edge, const float *x, const float *weights, Vf *sum) {
    const uint32_t columns = (tile - 1) * step + taps;
    Vf             w[5];
    UNROLL for (uint32_t k = 0; k < taps; k++) w[k] = vf_load(weights + k * VEC_LANES);
    UNROLL for (uint32_t c = 0; c < columns; c++) {
        if (edge && c + 1 < taps && c < s->from) continue;
        if (edge && c + taps > columns && c >= s->to) continue;
        const Vf v = vf_load(x + (ptrdiff_t)(c * VEC_LANES));
        UNROLL for (uint32_t p = 0; p < tile; p++) {
            if (c >= p * step && c - p * step < taps) sum[p] += v * w[c - p * step];
        }
    }
}

// The rows of the kernel that meet the input, and where the first of them meets it.
typedef struct Met {
    const float *x, *weights;
    uint32_t     rows;
} Met;

VEC_INLINE Met rows_met(const Strip *s, const uint32_t taps, const ptrdiff_t dh, uint32_t line) {
    const ptrdiff_t top = s->top + (ptrdiff_t)(line * s->sh), room = (ptrdiff_t)s->ih - top;
    ptrdiff_t       from = 0, to = s->kh;
    if (top < 0) from = (dh - 1 - top) / dh;
    if (room <= (to - 1) * dh) to = (room + dh - 1) / dh;
    if (from >= to) return (Met){s->x, s->weights, 0};
    return (Met){s->x + (size_t)(top + from * dh - s->first) * s->x_line,
                 s->weights + (size_t)from * taps * VEC_LANES, (uint32_t)(to - from)};
}

// Input rows that the next output row meets: asked for now, they are close when it comes to them.
VEC_INLINE void ask(const float *x, size_t x_line, uint32_t rows, const uint32_t columns) {
    for (; rows > 0; rows--, x += x_line) {
        UNROLL for (uint32_t c = 0; c < columns; c += 64 / (4 * VEC_LANES)) {
            __builtin_prefetch(x + c * VEC_LANES);
        }
    }
}

VEC_INLINE void strip(const Strip *all, const uint32_t taps, const uint32_t step,
                      const uint32_t tile, const bool edge) {
    const Strip s = *all;
    for (uint32_t line = 0; line < s.lines; line++) {
        const Met met = rows_met(&s, taps, 1, line);
        ptrdiff_t column = s.column * VEC_LANES;
        size_t    at = s.at + line * s.y_line;
        for (uint32_t n = edge ? 1 : s.count; n > 0; n--) {
            Vf           sum[STRIP_TILE];
            const float *x = met.x + column, *w = met.weights;
            start(&s, tile, sum);
            for (uint32_t r = met.rows; r > 0; r--) {
                OPAQUE(x);
                meet(&s, taps, step, tile, edge, x, w, sum);
                x += s.x_line;
                w += (size_t)taps * VEC_LANES;
            }
            if (!edge) ask(x, s.x_line, s.sh, tile * step);
            finish(all, tile, at, sum);
            column += (ptrdiff_t)(tile * step * VEC_LANES);
            at += (size_t)tile * VEC_LANES;
        }
    }
}

VEC_INLINE void loose_tile(const Strip *s, const uint32_t step, const uint32_t tile, Met met,
                           Vf *sum) {
    for (; met.rows > 0; met.rows--, met.x += s->dh * s->x_line) {
        const float *v = met.x;
        for (uint32_t k = s->taps; k > 0; k--, v += s->apart * VEC_LANES) {
            const Vf weight = vf_load(met.weights);
            UNROLL for (uint32_t p = 0; p < tile; p++) {
                sum[p] += weight * vf_load(v + (size_t)p * step * VEC_LANES);
            }
            met.weights += VEC_LANES;
        }
    }
}

VEC_INLINE void loose(const Strip *all, const uint32_t step, const uint32_t tile) {
    const Strip s = *all;
    for (uint32_t line = 0; line < s.lines; line++) {
        Met    met = rows_met(&s, s.taps, s.dh, line);
        size_t at = s.at + line * s.y_line;
        met.x += (size_t)s.column * VEC_LANES;
        for (uint32_t n = s.count; n > 0; n--, at += (size_t)tile * VEC_LANES) {
            Vf sum[STRIP_TILE];
            start(&s, tile, sum);
            loose_tile(&s, step, tile, met, sum);
            finish(all, tile, at, sum);
            met.x += (size_t)tile * step * VEC_LANES;
        }
    }
}

#define TILES(X, ...)                                                                              \
    X(1, __VA_ARGS__)                                                                              \
    X(2, __VA_ARGS__)                                                                              \
    X(3, __VA_ARGS__)                                                                              \
    X(4, __VA_ARGS__)                                                                              \
    X(5, __VA_ARGS__) X(6, __VA_ARGS__) X(7, __VA_ARGS__) X(8, __VA_ARGS__)

#define STRIP(tile, taps, step)                                                                    \
    static void inside_##taps##_##step##_##tile(const Strip *s) {                                  \
        strip(s, taps, step, tile, false);                                                         \
    }                                                                                              \
    static void edge_##taps##_##step##_##tile(const Strip *s) { strip(s, taps, step, tile, true); }
TILES(STRIP, 3, 1)
TILES(STRIP, 3, 2)
TILES(STRIP, 5, 1)
TILES(STRIP, 5, 2)

#define LOOSE(tile, name, step)                                                                    \
    static void loose_##name##_##tile(const Strip *s) { loose(s, step, tile); }
TILES(LOOSE, one, 1)
TILES(LOOSE, two, 2)
TILES(LOOSE, any, s->step)

StripFn *VEC(strip_taps)(uint32_t taps, uint32_t step, uint32_t tile, bool edge) {
#define ROW(tile, taps, step) {inside_##taps##_##step##_##tile, edge_##taps##_##step##_##tile},
    static StripFn *const all[2][2][STRIP_TILE][2] = {
        {{TILES(ROW, 3, 1)}, {TILES(ROW, 3, 2)}},
        {{TILES(ROW, 5, 1)}, {TILES(ROW, 5, 2)}},
    };
    CHECK((taps == 3 || taps == 5) && step - 1 < 2 && tile - 1 < STRIP_TILE);
    return all[taps == 5][step - 1][tile - 1][edge];
}

StripFn *VEC(strip_loose)(uint32_t step, uint32_t tile) {
#define COLUMN(tile, name) loose_##name##_##tile,
    static StripFn *const all[3][STRIP_TILE] = {
        {TILES(COLUMN, one)}, {TILES(COLUMN, two)}, {TILES(COLUMN, any)}};
    CHECK(tile - 1 < STRIP_TILE);
    return all[step == 1 ? 0 : step == 2 ? 1 : 2][tile - 1];
}
