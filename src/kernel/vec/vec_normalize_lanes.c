#include "kernel/vec/vec_int.h"

#include "kernel/vec/vec_math.h"

enum {
    ROWS = 256,          // elements accumulated in one float before the next accumulator
    COPY_FLOATS = 4096,  // sets up to this size are copied, as strided reads are slow
};

// `vecs` vectors of neighbouring sets, the last with only `some` lanes; the elements of a set are
// `stride` floats apart. With constant vecs, loops over vectors unroll completely.
typedef struct LaneSets {
    size_t   n, stride;
    uint32_t vecs, some;
} LaneSets;

VEC_INLINE uint32_t lanes_some(LaneSets p, uint32_t v) {
    return v + 1 == p.vecs ? p.some : VEC_LANES;
}

VEC_INLINE Vf lanes_load(LaneSets p, const float *x, size_t i, uint32_t v) {
    return vf_load_part(x + i * p.stride + v * VEC_LANES, lanes_some(p, v));
}

VEC_INLINE void lanes_store(LaneSets p, float *y, size_t i, uint32_t v, Vf u) {
    vf_store_part(y + i * p.stride + v * VEC_LANES, u, lanes_some(p, v));
}

// Maximum of each set; the elements are also written to copy.
VEC_INLINE void lanes_top(LaneSets p, const float *x, LaneSets q, float *copy, Vf *top) {
    for (uint32_t v = 0; v < p.vecs; v++) top[v] = vf_set(-INFINITY);
    for (size_t i = 0; i < p.n; i++)
        for (uint32_t v = 0; v < p.vecs; v++) {
            const Vf u = lanes_load(p, x, i, v);
            if (copy != x) lanes_store(q, copy, i, v, u);
            top[v] = vf_max(top[v], u);
        }
}

// Reads x with layout p, works in copy with layout q, writes y with layout p.
VEC_INLINE void softmax(LaneSets p, LaneSets q, bool logs, const float *x, float *copy, float *y) {
    Vf top[NORMALIZE_VECS], sum[NORMALIZE_VECS];
    lanes_top(p, x, q, copy, top);
    for (uint32_t v = 0; v < p.vecs; v++) sum[v] = vf_set(0);
    for (size_t i = 0; i < p.n; i++)
        for (uint32_t v = 0; v < p.vecs; v++) {
            const Vf e = vf_exp(lanes_load(q, copy, i, v) - top[v]);
            if (!logs) lanes_store(q, copy, i, v, e);
            sum[v] += e;
        }
    for (uint32_t v = 0; v < p.vecs; v++) sum[v] = logs ? vf_log(sum[v]) : 1.0f / sum[v];
    for (size_t i = 0; i < p.n; i++)
        for (uint32_t v = 0; v < p.vecs; v++) {
            const Vf u = lanes_load(q, copy, i, v);
            lanes_store(p, y, i, v, logs ? u - top[v] - sum[v] : u * sum[v]);
        }
}

// Elements far apart map to few cache sets, so small sets are read once, into a copy.
VEC_INLINE void run_softmax(LaneSets p, bool logs, const float *x, float *y) {
    float          copy[COPY_FLOATS] __attribute__((aligned(64)));
    const LaneSets q = {p.n, p.vecs * VEC_LANES, p.vecs, VEC_LANES};
    if (p.n * q.stride <= COPY_FLOATS) {
        softmax(p, q, logs, x, copy, y);
        return;
    }
    if (x != y)
        for (size_t i = 0; i < p.n; i++)
            for (uint32_t v = 0; v < p.vecs; v++) lanes_store(p, y, i, v, lanes_load(p, x, i, v));
    softmax(p, p, logs, y, y, y);
}

void VEC(softmax_lanes)(NormalizeOp op, Vf *x, size_t n) {
    const LaneSets p = {n, VEC_LANES, 1, VEC_LANES};
    float         *y = (float *)x;
    if (op == NORMALIZE_SOFTMAX)
        softmax(p, p, false, y, y, y);
    else
        softmax(p, p, true, y, y, y);
}

typedef enum Term { TERM, TERM_SQUARE, TERM_ABS } Term;

VEC_INLINE Vf term(Term t, Vf x) { return t == TERM ? x : t == TERM_SQUARE ? x * x : vf_abs(x); }

// Sum of terms of x - centre, and of x - centre itself unless left is NULL. Several independent
// accumulators hide the latency of an addition.
VEC_INLINE void lanes_sum(LaneSets p, Term t, const float *x, const Vf *centre, Vf *total,
                          Vf *left) {
    enum { WAYS = NORMALIZE_VECS };
    for (uint32_t v = 0; v < p.vecs; v++) total[v] = vf_set(0);
    for (uint32_t v = 0; v < p.vecs && left != NULL; v++) left[v] = vf_set(0);
    for (size_t i = 0; i < p.n; i += ROWS) {
        const size_t   end = p.n - i < ROWS ? p.n : i + ROWS;
        const uint32_t ways = WAYS / p.vecs;
        Vf             sum[WAYS], rest[WAYS];
        size_t         k = i;
        for (uint32_t w = 0; w < WAYS; w++) sum[w] = rest[w] = vf_set(0);
        for (; k + ways <= end; k += ways)
            for (uint32_t w = 0; w < WAYS; w++) {
                const Vf u = lanes_load(p, x, k + w / p.vecs, w % p.vecs) - centre[w % p.vecs];
                sum[w] += term(t, u);
                if (left != NULL) rest[w] += u;
            }
        for (; k < end; k++)
            for (uint32_t v = 0; v < p.vecs; v++) {
                const Vf u = lanes_load(p, x, k, v) - centre[v];
                sum[v] += term(t, u);
                if (left != NULL) rest[v] += u;
            }
        for (uint32_t w = 0; w < WAYS; w++) total[w % p.vecs] += sum[w];
        for (uint32_t w = 0; w < WAYS && left != NULL; w++) left[w % p.vecs] += rest[w];
    }
}

VEC_INLINE Vf lanes_factor(const Normalize *r, Vf sum) {
    const Vf mean = sum / (float)r->n;
    switch (r->op) {
    case NORMALIZE_VARIANCE:
    case NORMALIZE_RMS: return 1.0f / vf_sqrt(mean + r->epsilon);
    case NORMALIZE_DEVIATION: return 1.0f / (vf_sqrt(mean) + r->epsilon);
    case NORMALIZE_L1: return vf_choose((Vi)(sum == 0.0f), sum, 1.0f / sum);
    default: return vf_choose((Vi)(sum == 0.0f), sum, 1.0f / vf_sqrt(sum));
    }
}

// Result of each set: (x - mean) * mul + add.
typedef struct LaneAffine {
    Vf mean[NORMALIZE_VECS], mul[NORMALIZE_VECS], add[NORMALIZE_VECS];
} LaneAffine;

// The rounding error of the mean is corrected through `add`.
VEC_INLINE void lanes_moments(LaneSets p, const Normalize *r, const float *x, LaneAffine *m) {
    Vf zero[NORMALIZE_VECS];
    for (uint32_t v = 0; v < p.vecs; v++) m->mean[v] = m->add[v] = zero[v] = vf_set(0);
    if (r->op == NORMALIZE_VARIANCE || r->op == NORMALIZE_DEVIATION) {
        lanes_sum(p, TERM, x, zero, m->mean, NULL);
        for (uint32_t v = 0; v < p.vecs; v++) m->mean[v] /= (float)p.n;
        lanes_sum(p, TERM_SQUARE, x, m->mean, m->mul, m->add);
    } else if (r->op == NORMALIZE_L1) {
        lanes_sum(p, TERM_ABS, x, zero, m->mul, NULL);
    } else {
        lanes_sum(p, TERM_SQUARE, x, zero, m->mul, NULL);
    }
    for (uint32_t v = 0; v < p.vecs; v++) {
        m->mul[v] = lanes_factor(r, m->mul[v]);
        m->add[v] = m->add[v] * m->mul[v] / -(float)p.n;
    }
}

VEC_INLINE void lanes_scale(LaneSets p, const NormalizeArgs *d, size_t at, LaneAffine *m) {
    for (uint32_t v = 0; v < p.vecs; v++) {
        const size_t   k = at + v * VEC_LANES;
        const uint32_t some = lanes_some(p, v);
        const Vf       s = d->scale != NULL ? vf_load_part(d->scale + k, some) : vf_set(1);
        const Vf       b = d->bias != NULL ? vf_load_part(d->bias + k, some) : vf_set(0);
        m->add[v] = m->add[v] * s + b;
        m->mul[v] *= s;
    }
}

// at: first element of these sets in x; set: index of the first set; scale_at: its first scale.
VEC_INLINE void run_norm(LaneSets p, const Normalize *r, const NormalizeArgs *d, size_t at,
                         size_t set, size_t scale_at) {
    const float *x = d->x + at;
    float       *sum = (d->sum != NULL ? d->sum : d->y) + at;
    LaneAffine   m;
    for (size_t i = 0; i < p.n && d->add != NULL; i++)
        for (uint32_t v = 0; v < p.vecs; v++)
            lanes_store(p, sum, i, v, lanes_load(p, x, i, v) + lanes_load(p, d->add + at, i, v));
    if (d->add != NULL) x = sum;
    lanes_moments(p, r, x, &m);
    for (uint32_t v = 0; v < p.vecs; v++) {
        if (d->mean != NULL) lanes_store(p, d->mean + set, 0, v, m.mean[v]);
        if (d->inverse != NULL) lanes_store(p, d->inverse + set, 0, v, m.mul[v]);
    }
    lanes_scale(p, d, scale_at, &m);
    for (size_t i = 0; i < p.n; i++)
        for (uint32_t v = 0; v < p.vecs; v++) {
            const Vf u = lanes_load(p, x, i, v) - m.mean[v];
            lanes_store(p, d->y + at, i, v, u * m.mul[v] + m.add[v]);
        }
}

VEC_INLINE void run(const Normalize *r, const NormalizeArgs *d, size_t row, size_t inner,
                    uint32_t vecs, uint32_t some) {
    const LaneSets p = {r->n, r->inner, vecs, some};
    const size_t   at = row * r->n * r->inner + inner;
    if (r->op == NORMALIZE_SOFTMAX)
        run_softmax(p, false, d->x + at, d->y + at);
    else if (r->op == NORMALIZE_LOG_SOFTMAX)
        run_softmax(p, true, d->x + at, d->y + at);
    else
        run_norm(p, r, d, at, row * r->inner + inner, row % r->groups * r->inner + inner);
}

static void run_wide(const Normalize *r, const NormalizeArgs *d, size_t row, size_t inner) {
    run(r, d, row, inner, NORMALIZE_VECS, VEC_LANES);
}

static void run_one(const Normalize *r, const NormalizeArgs *d, size_t row, size_t inner) {
    run(r, d, row, inner, 1, VEC_LANES);
}

static void run_some(const Normalize *r, const NormalizeArgs *d, size_t row, size_t inner,
                     uint32_t some) {
    run(r, d, row, inner, 1, some);
}

void VEC(normalize_lanes)(const Normalize *r, const NormalizeArgs *d, size_t row, size_t inner) {
    const size_t width = (size_t)VEC_LANES * NORMALIZE_VECS;
    const size_t end = r->inner - inner < width ? r->inner : inner + width;
    if (end - inner == width) {
        run_wide(r, d, row, inner);
        return;
    }
    for (; inner + VEC_LANES <= end; inner += VEC_LANES) run_one(r, d, row, inner);
    if (inner < end) run_some(r, d, row, inner, (uint32_t)(end - inner));
}
