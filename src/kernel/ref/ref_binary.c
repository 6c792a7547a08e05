#include <math.h>
#include <string.h>

#include "base/err.h"
#include "base/work_stop.h"
#include "kernel/nd_iter.h"
#include "kernel/ref/ref_elementwise.h"
#include "kernel/wide_type.h"

#define WRAP(x, op, y) (int64_t)((uint64_t)(x)op(uint64_t)(y))

static int64_t div_i64(int64_t u, int64_t v) {
    return v == 0 ? 0 : v == -1 ? WRAP(0, -, u) : u / v;
}

static int64_t rem_i64(int64_t u, int64_t v) { return v == 0 || v == -1 ? 0 : u % v; }

// The remainder with the sign of the divisor, as in Python.
static int64_t mod_i64(int64_t u, int64_t v) {
    int64_t r = rem_i64(u, v);
    return r != 0 && (r < 0) != (v < 0) ? r + v : r;
}

static float mod_f32(float u, float v) {
    float r = fmodf(u, v);
    return r != 0 && (r < 0) != (v < 0) ? r + v : r;
}

static double mod_f64(double u, double v) {
    double r = fmod(u, v);
    return r != 0 && (r < 0) != (v < 0) ? r + v : r;
}

static uint64_t pow_u64(uint64_t u, uint64_t v) {
    uint64_t power = 1;
    for (; v > 0; v >>= 1, u *= u)
        if (v & 1) power *= u;
    return power;
}

// A negative exponent gives a fraction, which truncates to 0 unless u is 1 or -1.
static int64_t pow_i64(int64_t u, int64_t v) {
    if (v >= 0) return (int64_t)pow_u64((uint64_t)u, (uint64_t)v);
    return u == 1 || (u == -1 && v % 2 == 0) ? 1 : u == -1 ? -1 : 0;
}

typedef void Row(const void *a, const void *b, void *y, int64_t n);

#define ROW(id, suffix, T, R, expr)                                                                \
    static void id##suffix(const void *a, const void *b, void *y, int64_t n) {                     \
        for (int64_t i = 0; i < n; i++) {                                                          \
            const T u = ((const T *)a)[i], v = ((const T *)b)[i];                                  \
            ((R *)y)[i] = (R)(expr);                                                               \
        }                                                                                          \
    }

#define F(name)                 name##f
#define G(name)                 name##_f32
#define N(id, real, sint, uint) ROW(id, _f32, float, float, real)
#define B(id, expr)
#define C(id, expr) ROW(id, _f32, float, uint8_t, expr)
#include "kernel/ref/ref_binary.def"
#undef F
#undef G
#undef N
#undef C

#define F(name)                 name
#define G(name)                 name##_f64
#define N(id, real, sint, uint) ROW(id, _f64, double, double, real)
#define C(id, expr)             ROW(id, _f64, double, uint8_t, expr)
#include "kernel/ref/ref_binary.def"
#undef N
#undef B
#undef C

#define N(id, real, sint, uint)                                                                    \
    ROW(id, _i64, int64_t, int64_t, sint) ROW(id, _u64, uint64_t, uint64_t, uint)
#define B(id, expr) ROW(id, _u64, uint64_t, uint64_t, expr)
#define C(id, expr) ROW(id, _i64, int64_t, uint8_t, expr) ROW(id, _u64, uint64_t, uint8_t, expr)
#include "kernel/ref/ref_binary.def"
#undef N
#undef B
#undef C

static Row *const rows[REF_BINARY_COUNT][4] = {
#define N(id, real, sint, uint) [REF_##id] = {id##_f32, id##_f64, id##_i64, id##_u64},
#define B(id, expr)             [REF_##id] = {NULL, NULL, id##_u64, id##_u64},
#define C(id, expr)             [REF_##id] = {id##_f32, id##_f64, id##_i64, id##_u64},
#include "kernel/ref/ref_binary.def"
#undef N
#undef B
#undef C
};

typedef struct Call {
    const Tensor *a, *b;
    WideType      wide;
    Row          *row;
    bool          direct;  // rows are computed directly in y
} Call;

static void run_row(const Call *c, const BroadcastIter *r, const NdIter *w, Tensor *y) {
    WideBlock     left, right, out;
    const int64_t su = r->step[0], sv = r->step[1], size = (int64_t)dtype_size(y->dtype);
    for (int64_t i = 0, n; i < r->n && !work_stopped(); i += n) {
        n = r->n - i < WIDE_BLOCK ? r->n - i : WIDE_BLOCK;
        const void *u = wide_view(c->wide, c->a, w->off[0] + i * su, su, n, &left);
        const void *v = wide_view(c->wide, c->b, w->off[1] + i * sv, sv, n, &right);
        int64_t     at = w->at * r->n + i;
        c->row(u, v, c->direct ? (char *)y->data + at * size : (void *)&out, n);
        if (!c->direct) wide_store(c->wide, &out, y, at, 1, n);
    }
}

// Only POW mixes types: integer to integer power is exact, everything else computes in double.
static WideType wide_for(const Tensor *a, const Tensor *b) {
    if (a->dtype == b->dtype) return wide_type_of(a->dtype);
    return dtype_is_int(a->dtype) && dtype_is_int(b->dtype) ? wide_type_of(a->dtype) : WIDE_F64;
}

void ref_binary(RefBinary f, const Tensor *a, const Tensor *b, Tensor *y) {
    const WideType wide = wide_for(a, b);
    const Call     c = {.a = a,
                        .b = b,
                        .wide = wide,
                        .row = rows[f][wide],
                        .direct = f >= REF_EQUAL || wide_is_native(wide, y->dtype)};
    CHECK(c.row != NULL);
    const Tensor *const in[] = {a, b};
    const BroadcastIter r = broadcast_iter_of(y, in, 2);
    for (NdIter w = r.rows; nd_iter_more(&w); nd_iter_next(&w)) run_row(&c, &r, &w, y);
}

void ref_equal_str(const Tensor *a, const Tensor *b, Tensor *y) {
    const Str *p = a->data, *q = b->data;
    uint8_t   *to = y->data;
    NdIter     w = nd_iter_begin(y->rank, y->dims);
    nd_iter_broadcast(&w, a);
    nd_iter_broadcast(&w, b);
    for (; nd_iter_more(&w); nd_iter_next(&w)) {
        const Str u = p[w.off[0]], v = q[w.off[1]];
        to[w.at] = u.len == v.len && (u.len == 0 || memcmp(u.at, v.at, u.len) == 0);
    }
}

void ref_where(const Tensor *condition, const Tensor *a, const Tensor *b, Tensor *y) {
    const uint8_t *choice = condition->data;
    const size_t   size = dtype_size(y->dtype);
    NdIter         w = nd_iter_begin(y->rank, y->dims);
    nd_iter_broadcast(&w, condition);
    nd_iter_broadcast(&w, a);
    nd_iter_broadcast(&w, b);
    for (; nd_iter_more(&w); nd_iter_next(&w)) {
        const bool  first = choice[w.off[0]] != 0;
        const char *from = first ? a->data : b->data;
        memcpy((char *)y->data + (size_t)w.at * size,
               from + (size_t)(first ? w.off[1] : w.off[2]) * size, size);
    }
}
