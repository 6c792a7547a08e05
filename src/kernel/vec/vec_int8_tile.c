#include "base/err.h"
#include "kernel/vec/vec_int8.h"

#if VEC_LANES == 16
#include <cpuid.h>
#endif

#define UNROLL VEC_UNROLL(32)

int8_traits_fn VEC(int8_traits);

#define OPAQUE(x) __asm__("" : "+r"(x))

typedef struct Sums {
    Vi at[INT8_TILE_ROWS][INT8_TILE_VECS];
} Sums;

VEC_INLINE Vi load_weights(const int8_t *w) { return *(const ViAny *)(const void *)w; }

VEC_INLINE Vi load_quad(const uint8_t *x) {
    int32_t four;
    memcpy(&four, x, sizeof four);
    return vi_set(four);
}

// sum += the four products of each lane: unsigned bytes of x, signed bytes of w. Packing keeps the
// sum of two products within 16 bits.
VEC_INLINE Vi                  add_products(Vi sum, Vi x, Vi w, const bool vnni) {
#if VEC_LANES == 16 && defined __AVX512BW__
    if (vnni) {
        __asm__("vpdpbusd %2, %1, %0" : "+v"(sum) : "v"(x), "v"(w));
        return sum;
    }
    const __m512i pairs = _mm512_maddubs_epi16((__m512i)x, (__m512i)w);
    return sum + (Vi)_mm512_madd_epi16(pairs, _mm512_set1_epi16(1));
#elif VEC_VNNI
    (void)vnni;
    return (Vi)dot_quads((__m256i)sum, (__m256i)x, (__m256i)w);
#elif VEC_LANES == 8 && defined __AVX2__
    (void)vnni;
    const __m256i pairs = _mm256_maddubs_epi16((__m256i)x, (__m256i)w);
    return sum + (Vi)_mm256_madd_epi16(pairs, _mm256_set1_epi16(1));
#else
    (void)vnni;
    for (int32_t i = 0; i < INT8_QUAD; i++)
        sum += ((w << (24 - 8 * i)) >> 24) * ((x >> (8 * i)) & 255);
    return sum;
#endif
}

VEC_INLINE void step(const uint32_t rows, const uint32_t vecs, const uint8_t *const *p,
                     ptrdiff_t at, const int8_t *const *w, ptrdiff_t wat, const bool vnni,
                     Sums *s) {
    Vi y[INT8_TILE_VECS];
    UNROLL for (uint32_t v = 0; v < vecs; v++) y[v] = load_weights(w[v] + wat);
    UNROLL for (uint32_t r = 0; r < rows; r++) {
        const Vi x = load_quad(p[r] + at);
        UNROLL for (uint32_t v = 0; v < vecs; v++) {
            s->at[r][v] = add_products(s->at[r][v], x, y[v], vnni);
        }
    }
}

enum { QUAD_BYTES = VEC_LANES * INT8_QUAD };

VEC_INLINE void add_terms(const Int8Tile *t, const uint32_t rows, const uint32_t vecs,
                          const bool vnni, const uint8_t *const *p, Sums *s) {
    const int8_t *w[INT8_TILE_VECS];
    ptrdiff_t     wat = 0;
    UNROLL for (uint32_t v = 0; v < vecs; v++) w[v] = t->weights + v * t->weight_stride;
    for (uint32_t i = 0; i < t->n_terms; i++) {
        ptrdiff_t at = t->terms[i], end = at + (ptrdiff_t)t->term_quads * INT8_QUAD;
        while (at < end) {
            step(rows, vecs, p, at, w, wat, vnni, s);
            at += INT8_QUAD;
            wat += QUAD_BYTES;
            OPAQUE(at);
            OPAQUE(wat);
        }
    }
}

VEC_INLINE void add_extra(const Int8Tile *t, const uint32_t rows, const uint32_t v, const bool vnni,
                          const uint8_t *const *p, Sums *s) {
    for (uint32_t e = t->extra_start[v]; e < t->extra_start[v + 1]; e++) {
        const Vi        y = load_weights(t->extra_quads + (size_t)e * QUAD_BYTES);
        const ptrdiff_t at = t->quad_at[t->extra_index[e]];
        UNROLL for (uint32_t r = 0; r < rows; r++) {
            s->at[r][v] = add_products(s->at[r][v], load_quad(p[r] + at), y, vnni);
        }
    }
}

VEC_INLINE void run(const Int8Tile *t, const uint32_t rows, const uint32_t vecs, const bool vnni) {
    Sums           s;
    const uint8_t *p[INT8_TILE_ROWS];
    UNROLL for (uint32_t r = 0; r < rows; r++) {
        p[r] = t->rows[r];
        UNROLL for (uint32_t v = 0; v < vecs; v++) s.at[r][v] = vi_load(t->start + v * VEC_LANES);
    }
    add_terms(t, rows, vecs, vnni, p, &s);
    UNROLL for (uint32_t v = 0; v < vecs; v++) add_extra(t, rows, v, vnni, p, &s);
    UNROLL for (uint32_t r = 0; r < rows; r++) {
        UNROLL for (uint32_t v = 0; v < vecs; v++) {
            vi_store(t->sums + (r * vecs + v) * VEC_LANES, s.at[r][v]);
        }
    }
}

#define TO_3(X, v)  X(1, v) X(2, v) X(3, v)
#define TO_4(X, v)  TO_3(X, v) X(4, v)
#define TO_6(X, v)  TO_4(X, v) X(5, v) X(6, v)
#define TO_8(X, v)  TO_6(X, v) X(7, v) X(8, v)
#define TO_12(X, v) TO_8(X, v) X(9, v) X(10, v) X(11, v) X(12, v)
#define TO_16(X, v) TO_12(X, v) X(13, v) X(14, v) X(15, v) X(16, v)
#if VEC_LANES == 16
#define EACH(X) TO_16(X, 1) TO_12(X, 2) TO_8(X, 3) TO_6(X, 4)
#else
#define EACH(X) TO_8(X, 1) TO_6(X, 2) TO_4(X, 3) TO_3(X, 4)
#endif

#define DEFINE(rows, vecs)                                                                         \
    static void tile_##rows##x##vecs(const Int8Tile *t) { run(t, rows, vecs, false); }
EACH(DEFINE)

#if VEC_LANES == 16
#define DEFINE_VNNI(rows, vecs)                                                                    \
    static void vnni_##rows##x##vecs(const Int8Tile *t) { run(t, rows, vecs, true); }
EACH(DEFINE_VNNI)

static bool has_avx512_vnni(void) {
    uint32_t a = 0, b = 0, c = 0, d = 0;
    return __get_cpuid_count(7, 0, &a, &b, &c, &d) != 0 && (c >> 11 & 1) != 0;
}
#endif

// Looked up once: the same for all threads.
static bool adds_quads(void) {
#if VEC_LANES == 16
    static int known;  // 0: not yet; 1: no; 2: yes
    int        now = __atomic_load_n(&known, __ATOMIC_RELAXED);
    if (now == 0) {
        now = has_avx512_vnni() ? 2 : 1;
        __atomic_store_n(&known, now, __ATOMIC_RELAXED);
    }
    return now == 2;
#elif defined __AVX2__
    return VEC_VNNI != 0;
#else
    return true;
#endif
}

void VEC(int8_traits)(Int8Traits *out) { out->adds_quads = adds_quads(); }

Int8TileFn *VEC(int8_tile_find)(uint32_t rows, uint32_t vecs) {
#define FIND(r, v) [v][r] = tile_##r##x##v,
    static Int8TileFn *const all[INT8_TILE_VECS + 1][INT8_TILE_ROWS + 1] = {EACH(FIND)};
    CHECK(vecs >= 1 && vecs <= INT8_TILE_VECS && rows >= 1 && rows <= INT8_TILE_ROWS);
    CHECK(all[vecs][rows] != NULL);
#if VEC_LANES == 16
#define FIND_VNNI(r, v) [v][r] = vnni_##r##x##v,
    static Int8TileFn *const fast[INT8_TILE_VECS + 1][INT8_TILE_ROWS + 1] = {EACH(FIND_VNNI)};
    if (adds_quads()) return fast[vecs][rows];
#endif
    return all[vecs][rows];
}
