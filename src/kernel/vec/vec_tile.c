#include "kernel/vec/vec_int.h"

#include "base/err.h"

#define UNROLL VEC_UNROLL(32)

enum { REGISTERS = VEC_LANES == 16 ? 32 : 16, DEPTH_STEP = 4 };

// Hides the value of an index from the compiler, which would otherwise keep one moving pointer per
// row: so one index serves all rows and another all vectors.
#define OPAQUE(x) __asm__("" : "+r"(x))

// sum += x * w in the accumulator form of the instruction: gcc's own choice overwrites x or w,
// which costs copies and spills.
#ifdef __FMA__
#define FMA(sum, x, w) __asm__("vfmadd231ps %2, %1, %0" : "+v"(sum) : "v"(x), "v"(w))
#else
#define FMA(sum, x, w) ((sum) += (x) * (w))
#endif

// Accumulators. rows and vecs are constants in every inlined copy.
typedef struct Sums {
    Vf at[TILE_MAX_ROWS][TILE_MAX_VECS];
} Sums;

VEC_INLINE void start(const Tile *t, const float *out, const uint32_t rows, const uint32_t vecs,
                      Sums *s) {
    UNROLL for (uint32_t v = 0; v < vecs; v++) {
        const Vf b = t->bias != NULL ? vf_load(t->bias + v * VEC_LANES) : (Vf){0};
        UNROLL for (uint32_t r = 0; r < rows; r++) s->at[r][v] = b;
    }
    if (!t->accumulate) return;
    UNROLL for (uint32_t r = 0; r < rows; r++) {
        UNROLL for (uint32_t v = 0; v < vecs; v++) {
            s->at[r][v] = vf_load(out + r * t->row_stride + v * t->vec_stride);
        }
    }
}

// One depth step. The operand with fewer vectors stays in registers.
VEC_INLINE void step(const uint32_t rows, const uint32_t vecs, const float *const *p, ptrdiff_t at,
                     const float *const *w, ptrdiff_t wat, Sums *s) {
    if (rows >= vecs) {
        Vf y[TILE_MAX_VECS];
        UNROLL for (uint32_t v = 0; v < vecs; v++) y[v] = vf_load(w[v] + wat);
        UNROLL for (uint32_t r = 0; r < rows; r++) {
            const Vf x = vf_set(p[r][at]);
            UNROLL for (uint32_t v = 0; v < vecs; v++) FMA(s->at[r][v], x, y[v]);
        }
    } else {
        Vf x[TILE_MAX_VECS];
        UNROLL for (uint32_t r = 0; r < rows; r++) x[r] = vf_set(p[r][at]);
        UNROLL for (uint32_t v = 0; v < vecs; v++) {
            const Vf y = vf_load(w[v] + wat);
            UNROLL for (uint32_t r = 0; r < rows; r++) FMA(s->at[r][v], x[r], y);
        }
    }
}

// Prefetches the next weights into L2, at half the rate of those in use. Integer addresses, since
// they may lie past the end of the array.
VEC_INLINE void prefetch(const uint32_t vecs, const float *const *w, size_t at) {
    enum { PACE = 2, LINE = 64 };
    UNROLL for (uint32_t v = 0; v < vecs; v++) {
        const uintptr_t line = (uintptr_t)w[v] + at * sizeof(float);
        UNROLL for (uint32_t k = 0; k < DEPTH_STEP * VEC_LANES * sizeof(float) / PACE; k += LINE) {
            __builtin_prefetch((const void *)(line + k), 0, 2);
        }
    }
}

// One term. wat is the offset into the weights; returns the offset after the term.
VEC_INLINE ptrdiff_t add_term(ptrdiff_t at, ptrdiff_t depth, const uint32_t rows,
                              const uint32_t vecs, const float *const *p, const float *const *w,
                              ptrdiff_t wat, size_t distance, Sums *s) {
    const ptrdiff_t end = at + depth;
    while (end - at >= DEPTH_STEP) {
        UNROLL for (ptrdiff_t k = 0; k < DEPTH_STEP; k++) {
            step(rows, vecs, p, at + k, w, wat + k * VEC_LANES, s);
        }
        prefetch(vecs, w, distance + (size_t)wat / 2);
        at += DEPTH_STEP;
        wat += DEPTH_STEP * VEC_LANES;
        OPAQUE(at);
        OPAQUE(wat);
    }
    while (at < end) {
        step(rows, vecs, p, at, w, wat, s);
        at += 1;
        wat += VEC_LANES;
        OPAQUE(at);
        OPAQUE(wat);
    }
    return wat;
}

VEC_INLINE void add_up(const Tile *t, const float *const *from, size_t distance,
                       const uint32_t rows, const uint32_t vecs, Sums *s) {
    static const int32_t here = 0;
    const int32_t       *terms = t->terms != NULL ? t->terms : &here;
    const float         *p[TILE_MAX_ROWS], *w[TILE_MAX_VECS];
    UNROLL for (uint32_t r = 0; r < rows; r++) p[r] = from[r];
    UNROLL for (uint32_t v = 0; v < vecs; v++) w[v] = t->weights + v * t->weight_stride;
    const int32_t *tails = terms + t->n_terms, *end = tails + t->n_tails;
    ptrdiff_t      depth = t->depth, wat = 0;
    for (;;) {
        for (; terms < tails; terms++)
            wat = add_term(*terms, depth, rows, vecs, p, w, wat, distance, s);
        if (terms == end) break;
        tails = end;
        depth = t->tail_depth;
    }
}

VEC_INLINE void finish(const Tile *t, size_t at, const uint32_t rows, const uint32_t vecs,
                       Sums *s) {
    if (t->last && t->add != NULL) {
        const float *add = t->add + at;
        UNROLL for (uint32_t r = 0; r < rows; r++) {
            UNROLL for (uint32_t v = 0; v < vecs; v++) {
                s->at[r][v] += vf_load(add + r * t->row_stride + v * t->vec_stride);
            }
        }
    }
    if (t->last) {
        const Vf lo = vf_set(t->lo), hi = vf_set(t->hi);
        UNROLL for (uint32_t r = 0; r < rows; r++) {
            UNROLL for (uint32_t v = 0; v < vecs; v++) {
                s->at[r][v] = vf_min(hi, vf_max(lo, s->at[r][v]));
            }
        }
    }
    float *out = t->out + at;
    UNROLL for (uint32_t r = 0; r < rows; r++) {
        UNROLL for (uint32_t v = 0; v < vecs; v++) {
            vf_store(out + r * t->row_stride + v * t->vec_stride, s->at[r][v]);
        }
    }
}

// The first tile prefetches the first half of the next weights, the second tile the other half.
VEC_INLINE size_t prefetch_distance(const Tile *t, uint32_t tile) {
    const size_t depth = (size_t)t->n_terms * t->depth + (size_t)t->n_tails * t->tail_depth;
    if (t->prefetch == 0 || tile > 1) return 0;
    return tile == 0 ? t->prefetch : t->prefetch + depth * VEC_LANES / 2;
}

VEC_INLINE void run(const Tile *t, const uint32_t rows, const uint32_t vecs) {
    size_t   at = 0;
    uint32_t i = 0;
    do {
        Sums s;
        start(t, t->out + at, rows, vecs, &s);
        add_up(t, t->rows + (size_t)i * rows, prefetch_distance(t, i), rows, vecs, &s);
        finish(t, at, rows, vecs, &s);
        at += rows * t->row_stride;
    } while (++i < t->n_tiles);
}

#define TO_3(X, v)  X(1, v) X(2, v) X(3, v)
#define TO_4(X, v)  TO_3(X, v) X(4, v)
#define TO_6(X, v)  TO_4(X, v) X(5, v) X(6, v)
#define TO_9(X, v)  TO_6(X, v) X(7, v) X(8, v) X(9, v)
#define TO_12(X, v) TO_9(X, v) X(10, v) X(11, v) X(12, v)
#define TO_14(X, v) TO_12(X, v) X(13, v) X(14, v)
#define TO_18(X, v) TO_14(X, v) X(15, v) X(16, v) X(17, v) X(18, v)
#define TO_24(X, v) TO_18(X, v) X(19, v) X(20, v) X(21, v) X(22, v) X(23, v) X(24, v)
#if VEC_LANES == 16
#define EACH(X) TO_24(X, 1) TO_14(X, 2) TO_9(X, 3) TO_6(X, 4)
#else
#define EACH(X) TO_12(X, 1) TO_6(X, 2) TO_4(X, 3) TO_3(X, 4)
#endif

#define DEFINE(rows, vecs)                                                                         \
    static void tile_##rows##x##vecs(const Tile *t) { run(t, rows, vecs); }
EACH(DEFINE)

uint32_t VEC(tile_rows)(uint32_t vecs) { return tile_most_rows(REGISTERS, vecs); }

TileFn *VEC(tile_find)(uint32_t rows, uint32_t vecs) {
#define FIND(r, v) [v][r] = tile_##r##x##v,
    static TileFn *const all[TILE_MAX_VECS + 1][TILE_MAX_ROWS + 1] = {EACH(FIND)};
    CHECK(vecs >= 1 && vecs <= TILE_MAX_VECS && rows >= 1 && rows <= TILE_MAX_ROWS);
    CHECK(all[vecs][rows] != NULL);
    return all[vecs][rows];
}

void VEC(tile)(const Tile *t, uint32_t rows, uint32_t vecs) { VEC(tile_find)(rows, vecs)(t); }
