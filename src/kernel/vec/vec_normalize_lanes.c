#include "kernel/vec/vec_int.h"

#include "kernel/vec/vec_math.h"

enum {
    ROWS = 256,   // that many numbers are summed in one float, then a next one begins
    ROOM = 4096,  // numbers that are worth a copy when what they are read from is
                  // far apart
};

// `vecs` vectors of neighbouring sets, the last with only `some` lanes; a set's
// numbers are `stride` apart. Where vecs is known at compile time the loops
// over it leave no trace.
typedef struct Places {
    size_t   n, stride;
    uint32_t vecs, some;
} Places;

VEC_INLINE uint32_t places_some(Places p, uint32_t v) {
    return v + 1 == p.vecs ? p.some : VEC_LANES;
}

VEC_INLINE Vf places_load(Places p, const float *x, size_t i, uint32_t v) {
    return vf_load_part(x + i * p.stride + v * VEC_LANES, places_some(p, v));
}

VEC_INLINE void places_store(Places p, float *y, size_t i, uint32_t v, Vf u) {
    vf_store_part(y + i * p.stride + v * VEC_LANES, u, places_some(p, v));
}

// The largest of each set; what was read also goes to copy.
VEC_INLINE void places_top(Places p, const float *x, Places q, float *copy, Vf *top) {
    for (uint32_t v = 0; v < p.vecs; v++) top[v] = vf_set(-INFINITY);
    for (size_t i = 0; i < p.n; i++)
        for (uint32_t v = 0; v < p.vecs; v++) {
            const Vf u = places_load(p, x, i, v);
            if (copy != x) places_store(q, copy, i, v, u);
            top[v] = vf_max(top[v], u);
        }
}

// From x, that lies as p, through the copy, that lies as q, to y, that lies as
// p.
VEC_INLINE void softmax(Places p, Places q, bool logs, const float *x, float *copy, float *y) {
    Vf top[NORMALIZE_VECS], sum[NORMALIZE_VECS];
    places_top(p, x, q, copy, top);
    for (uint32_t v = 0; v < p.vecs; v++) sum[v] = vf_set(0);
    for (size_t i = 0; i < p.n; i++)
        for (uint32_t v = 0; v < p.vecs; v++) {
            const Vf e = vf_exp(places_load(q, copy, i, v) - top[v]);
            if (!logs) places_store(q, copy, i, v, e);
            sum[v] += e;
        }
    for (uint32_t v = 0; v < p.vecs; v++) sum[v] = logs ? vf_log(sum[v]) : 1.0f / sum[v];
    for (size_t i = 0; i < p.n; i++)
        for (uint32_t v = 0; v < p.vecs; v++) {
            const Vf u = places_load(q, copy, i, v);
            places_store(p, y, i, v, logs ? u - top[v] - sum[v] : u * sum[v]);
        }
}

// Numbers far apart fall on the same few lines of the nearest cache, so they
// are read once only.
VEC_INLINE void run_softmax(Places p, bool logs, const float *x, float *y) {
    float        room[ROOM] __attribute__((aligned(64)));
    const Places q = {p.n, p.vecs * VEC_LANES, p.vecs, VEC_LANES};
    if (p.n * q.stride <= ROOM) {
        softmax(p, q, logs, x, room, y);
        return;
    }
    if (x != y)
        for (size_t i = 0; i < p.n; i++)
            for (uint32_t v = 0; v < p.vecs; v++) places_store(p, y, i, v, places_load(p, x, i, v));
    softmax(p, p, logs, y, y, y);
}

void VEC(places_softmax)(NormalizeOp op, Vf *x, size_t n) {
    const Places p = {n, VEC_LANES, 1, VEC_LANES};
    float       *y = (float *)x;
    if (op == NORMALIZE_SOFTMAX)
        softmax(p, p, false, y, y, y);
    else
        softmax(p, p, true, y, y, y);
}

typedef enum Term { TERM, TERM_SQUARE, TERM_ABS } Term;

VEC_INLINE Vf term(Term t, Vf x) { return t == TERM ? x : t == TERM_SQUARE ? x * x : vf_abs(x); }

// Sum of terms of x - centre, and beside it of x - centre itself unless left is
// NULL. Sums wait for each other, so that several are on their way at a time.
VEC_INLINE void places_sum(Places p, Term t, const float *x, const Vf *centre, Vf *total,
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
                const Vf u = places_load(p, x, k + w / p.vecs, w % p.vecs) - centre[w % p.vecs];
                sum[w] += term(t, u);
                if (left != NULL) rest[w] += u;
            }
        for (; k < end; k++)
            for (uint32_t v = 0; v < p.vecs; v++) {
                const Vf u = places_load(p, x, k, v) - centre[v];
                sum[v] += term(t, u);
                if (left != NULL) rest[v] += u;
            }
        for (uint32_t w = 0; w < WAYS; w++) total[w % p.vecs] += sum[w];
        for (uint32_t w = 0; w < WAYS && left != NULL; w++) left[w % p.vecs] += rest[w];
    }
}

VEC_INLINE Vf places_factor(const Normalize *r, Vf sum) {
    const Vf mean = sum / (float)r->n;
    switch (r->op) {
    case NORMALIZE_VARIANCE:
    case NORMALIZE_RMS: return 1.0f / vf_sqrt(mean + r->epsilon);
    case NORMALIZE_DEVIATION: return 1.0f / (vf_sqrt(mean) + r->epsilon);
    case NORMALIZE_L1: return vf_choose((Vi)(sum == 0.0f), sum, 1.0f / sum);
    default: return vf_choose((Vi)(sum == 0.0f), sum, 1.0f / vf_sqrt(sum));
    }
}

// What is subtracted, multiplied and added for each set.
typedef struct PlacesMap {
    Vf mean[NORMALIZE_VECS], mul[NORMALIZE_VECS], add[NORMALIZE_VECS];
} PlacesMap;

// What a float cannot hold of the mean is the mean of what is left; it goes to
// `add`.
VEC_INLINE void places_moments(Places p, const Normalize *r, const float *x, PlacesMap *m) {
    Vf zero[NORMALIZE_VECS];
    for (uint32_t v = 0; v < p.vecs; v++) m->mean[v] = m->add[v] = zero[v] = vf_set(0);
    if (r->op == NORMALIZE_VARIANCE || r->op == NORMALIZE_DEVIATION) {
        places_sum(p, TERM, x, zero, m->mean, NULL);
        for (uint32_t v = 0; v < p.vecs; v++) m->mean[v] /= (float)p.n;
        places_sum(p, TERM_SQUARE, x, m->mean, m->mul, m->add);
    } else if (r->op == NORMALIZE_L1) {
        places_sum(p, TERM_ABS, x, zero, m->mul, NULL);
    } else {
        places_sum(p, TERM_SQUARE, x, zero, m->mul, NULL);
    }
    for (uint32_t v = 0; v < p.vecs; v++) {
        m->mul[v] = places_factor(r, m->mul[v]);
        m->add[v] = m->add[v] * m->mul[v] / -(float)p.n;
    }
}

VEC_INLINE void places_scale(Places p, const NormalizeArgs *d, size_t at, PlacesMap *m) {
    for (uint32_t v = 0; v < p.vecs; v++) {
        const size_t   k = at + v * VEC_LANES;
        const uint32_t some = places_some(p, v);
        const Vf       s = d->scale != NULL ? vf_load_part(d->scale + k, some) : vf_set(1);
        const Vf       b = d->bias != NULL ? vf_load_part(d->bias + k, some) : vf_set(0);
        m->add[v] = m->add[v] * s + b;
        m->mul[v] *= s;
    }
}

// at: the first number of these sets in x; set: the number of the first set
// among all.
VEC_INLINE void run_norm(Places p, const Normalize *r, const NormalizeArgs *d, size_t at,
                         size_t set, size_t scale_at) {
    const float *x = d->x + at;
    float       *sum = (d->sum != NULL ? d->sum : d->y) + at;
    PlacesMap    m;
    for (size_t i = 0; i < p.n && d->add != NULL; i++)
        for (uint32_t v = 0; v < p.vecs; v++)
            places_store(p, sum, i, v, places_load(p, x, i, v) + places_load(p, d->add + at, i, v));
    if (d->add != NULL) x = sum;
    places_moments(p, r, x, &m);
    for (uint32_t v = 0; v < p.vecs; v++) {
        if (d->mean != NULL) places_store(p, d->mean + set, 0, v, m.mean[v]);
        if (d->inverse != NULL) places_store(p, d->inverse + set, 0, v, m.mul[v]);
    }
    places_scale(p, d, scale_at, &m);
    for (size_t i = 0; i < p.n; i++)
        for (uint32_t v = 0; v < p.vecs; v++) {
            const Vf u = places_load(p, x, i, v) - m.mean[v];
            places_store(p, d->y + at, i, v, u * m.mul[v] + m.add[v]);
        }
}

VEC_INLINE void run(const Normalize *r, const NormalizeArgs *d, size_t row, size_t place,
                    uint32_t vecs, uint32_t some) {
    const Places p = {r->n, r->inner, vecs, some};
    const size_t at = row * r->n * r->inner + place;
    if (r->op == NORMALIZE_SOFTMAX)
        run_softmax(p, false, d->x + at, d->y + at);
    else if (r->op == NORMALIZE_LOG_SOFTMAX)
        run_softmax(p, true, d->x + at, d->y + at);
    else
        run_norm(p, r, d, at, row * r->inner + place, row % r->groups * r->inner + place);
}

static void run_wide(const Normalize *r, const NormalizeArgs *d, size_t row, size_t place) {
    run(r, d, row, place, NORMALIZE_VECS, VEC_LANES);
}

static void run_one(const Normalize *r, const NormalizeArgs *d, size_t row, size_t place) {
    run(r, d, row, place, 1, VEC_LANES);
}

static void run_some(const Normalize *r, const NormalizeArgs *d, size_t row, size_t place,
                     uint32_t some) {
    run(r, d, row, place, 1, some);
}

void VEC(places)(const Normalize *r, const NormalizeArgs *d, size_t row, size_t place) {
    const size_t width = (size_t)VEC_LANES * NORMALIZE_VECS;
    const size_t end = r->inner - place < width ? r->inner : place + width;
    if (end - place == width) {
        run_wide(r, d, row, place);
        return;
    }
    for (; place + VEC_LANES <= end; place += VEC_LANES) run_one(r, d, row, place);
    if (place < end) run_some(r, d, row, place, (uint32_t)(end - place));
}
