#include "kernel/rowwise.h"

#include "kernel/vec_math.h"

rowwise_fn VEC(rowwise);

enum {
    STEP = 4 * VEC_LANES,
    BLOCK = 128 * VEC_LANES,  // that far sums are kept in floats, then in double
    ROWS = 256,               // likewise, where a vector is a row of sets
};

VEC_INLINE Vf load_part(const float *p, uint32_t n) {
    return n == VEC_LANES ? vf_load(p) : vf_load_some(p, n);
}

VEC_INLINE void store_part(float *p, Vf x, uint32_t n) {
    if (n == VEC_LANES)
        vf_store(p, x);
    else
        vf_store_some(p, x, n);
}

// The last n < VEC_LANES numbers of a row, followed by `fill`.
VEC_INLINE Vf load_tail(const float *p, size_t n, float fill) {
    return vf_choose(vi_before((uint32_t)n), vf_load_some(p, (uint32_t)n), vf_set(fill));
}

static float row_top(const float *x, size_t n) {
    Vf     top[4];
    size_t i = 0;
    for (int k = 0; k < 4; k++) top[k] = vf_set(-INFINITY);
    for (; i + STEP <= n; i += STEP)
        for (int k = 0; k < 4; k++) top[k] = vf_max(top[k], vf_load(x + i + k * VEC_LANES));
    for (; i + VEC_LANES <= n; i += VEC_LANES) top[0] = vf_max(top[0], vf_load(x + i));
    if (i < n) top[1] = vf_max(top[1], load_tail(x + i, n - i, -INFINITY));
    return vf_top(vf_max(vf_max(top[0], top[1]), vf_max(top[2], top[3])));
}

// Sum of e^(x - top); y receives the terms unless it is NULL.
VEC_INLINE double row_exp(const float *x, size_t n, float top, float *y) {
    double total = 0;
    size_t i = 0;
    for (size_t end; i + VEC_LANES <= n; i = end) {
        end = n - i < BLOCK ? n - n % VEC_LANES : i + BLOCK;
        Vf sum = vf_set(0);
        for (size_t k = i; k < end; k += VEC_LANES) {
            const Vf e = vf_exp(vf_load(x + k) - top);
            if (y != NULL) vf_store(y + k, e);
            sum += e;
        }
        total += (double)vf_sum(sum);
    }
    if (i == n) return total;
    const Vf e = vf_exp(load_tail(x + i, n - i, -INFINITY) - top);
    if (y != NULL) vf_store_some(y + i, e, (uint32_t)(n - i));
    return total + (double)vf_sum(e);
}

// y = (x - top - shift) * factor
static void row_move(const float *x, float *y, size_t n, float top, float shift, float factor) {
    size_t i = 0;
    for (; i + VEC_LANES <= n; i += VEC_LANES)
        vf_store(y + i, (vf_load(x + i) - top - shift) * factor);
    const uint32_t some = (uint32_t)(n - i);
    if (some > 0) vf_store_some(y + i, (vf_load_some(x + i, some) - top - shift) * factor, some);
}

static void row_softmax(const Rowwise *r, const float *x, float *y) {
    const float top = row_top(x, r->n);
    if (r->op == ROW_SOFTMAX) {
        const double sum = row_exp(x, r->n, top, y);
        row_move(y, y, r->n, 0, 0, (float)(1 / sum));
    } else {
        const double sum = row_exp(x, r->n, top, NULL);
        row_move(x, y, r->n, top, logf((float)sum), 1);
    }
}

typedef enum Term { TERM, TERM_SQUARE, TERM_ABS } Term;

VEC_INLINE Vf term(Term t, Vf x) { return t == TERM ? x : t == TERM_SQUARE ? x * x : vf_abs(x); }

// Sum of terms of x - centre.
VEC_INLINE double row_sum(Term t, const float *x, size_t n, float centre) {
    double total = 0;
    size_t i = 0;
    while (i + VEC_LANES <= n) {
        const size_t end = n - i < BLOCK ? n : i + BLOCK;
        Vf           sum[4];
        for (int k = 0; k < 4; k++) sum[k] = vf_set(0);
        for (; i + STEP <= end; i += STEP)
            for (int k = 0; k < 4; k++) sum[k] += term(t, vf_load(x + i + k * VEC_LANES) - centre);
        for (; i + VEC_LANES <= end; i += VEC_LANES) sum[0] += term(t, vf_load(x + i) - centre);
        total += (double)vf_sum((sum[0] + sum[1]) + (sum[2] + sum[3]));
    }
    return i < n ? total + (double)vf_sum(term(t, load_tail(x + i, n - i, centre) - centre))
                 : total;
}

static double sum_plain(const float *x, size_t n) { return row_sum(TERM, x, n, 0); }

static double sum_sizes(const float *x, size_t n) { return row_sum(TERM_ABS, x, n, 0); }

// Sum of (x - centre)^2. What is left of the sum of x - centre is how far the centre is off.
static double sum_squares(const float *x, size_t n, float centre, double *left) {
    double total = 0;
    size_t i = 0;
    *left = 0;
    while (i + VEC_LANES <= n) {
        const size_t end = n - i < BLOCK ? n : i + BLOCK;
        Vf           sum[2] = {vf_set(0), vf_set(0)}, rest[2] = {vf_set(0), vf_set(0)};
        for (int k = 0; i + VEC_LANES <= end; i += VEC_LANES, k ^= 1) {
            const Vf v = vf_load(x + i) - centre;
            sum[k] += v * v, rest[k] += v;
        }
        total += (double)vf_sum(sum[0] + sum[1]);
        *left += (double)vf_sum(rest[0] + rest[1]);
    }
    if (i == n) return total;
    const Vf v = load_tail(x + i, n - i, centre) - centre;
    *left += (double)vf_sum(v);
    return total + (double)vf_sum(v * v);
}

// What is multiplied, from the sum of squares (or of sizes).
static float factor_of(const Rowwise *r, double sum) {
    const double mean = sum / (double)r->n, epsilon = (double)r->epsilon;
    switch (r->op) {
    case ROW_VARIANCE:
    case ROW_RMS: return (float)(1 / sqrt(mean + epsilon));
    case ROW_DEVIATION: return (float)(1 / (sqrt(mean) + epsilon));
    case ROW_L1: return sum == 0 ? 0 : (float)(1 / sum);
    default: return sum == 0 ? 0 : (float)(1 / sqrt(sum));
    }
}

// Scales along a run of numbers: vector after vector, or the same vector again and again.
typedef struct Scales {
    const float *at;
    size_t       step;
} Scales;

VEC_INLINE Vf scales_next(Scales *s, size_t n) {
    const float *at = s->at;
    s->at += s->step;
    return s->step == 0 ? vf_load(at) : load_part(at, (uint32_t)n);
}

// A mean in two parts: what a float cannot hold of it matters where the numbers are far from 0.
typedef struct Centre {
    float mean, factor, rest;  // rest: what the second part of the mean comes to in the result
} Centre;

// y = (x - mean) * factor * scale + bias
static void row_apply(const float *x, float *y, size_t n, Centre c, Scales scale, Scales bias) {
    size_t i = 0;
    for (; i + VEC_LANES <= n; i += VEC_LANES) {
        const Vf v = (vf_load(x + i) - c.mean) * c.factor + c.rest, b = vf_load(bias.at);
        vf_store(y + i, v * vf_load(scale.at) + b);
        scale.at += scale.step, bias.at += bias.step;
    }
    if (i == n) return;
    const Vf v = (vf_load_some(x + i, (uint32_t)(n - i)) - c.mean) * c.factor + c.rest;
    const Vf s = scales_next(&scale, n - i), b = scales_next(&bias, n - i);
    vf_store_some(y + i, v * s + b, (uint32_t)(n - i));
}

// The scales of segment `segment` of row `row`, or `none` where there are none; room is a vector.
static Scales scales_of(const Rowwise *r, const float *from, size_t row, size_t segment, float none,
                        Vf *room) {
    const size_t at = row % r->groups * (r->n / r->segment) + segment;
    *room = vf_set(from != NULL && r->scale == ROW_SCALE_SEGMENTS ? from[at] : none);
    if (from == NULL || r->scale == ROW_SCALE_SEGMENTS) return (Scales){(const float *)room, 0};
    if (r->scale == ROW_SCALE_LANES) return (Scales){from + at * VEC_LANES, 0};
    return (Scales){from, VEC_LANES};
}

// x + add + bias, where the rest of the row's work finds it.
static void row_add(const float *x, const float *add, const float *bias, float *y, size_t n) {
    for (size_t i = 0; i < n; i += VEC_LANES) {
        const uint32_t some = n - i < VEC_LANES ? (uint32_t)(n - i) : VEC_LANES;
        Vf             v = load_part(x + i, some) + load_part(add + i, some);
        if (bias != NULL) v += load_part(bias + i, some);
        store_part(y + i, v, some);
    }
}

static void row_norm(const Rowwise *r, const RowwiseData *d, size_t row) {
    const size_t at = row * r->n, n = r->n;
    const bool   centred = r->op == ROW_VARIANCE || r->op == ROW_DEVIATION;
    const float *x = d->x + at;
    if (d->add != NULL) {
        float *sum = d->sum != NULL ? d->sum + at : d->y + at;
        row_add(x, d->add + at, d->add_bias, sum, n);
        x = sum;
    }
    Centre c = {.mean = centred ? (float)(sum_plain(x, n) / (double)n) : 0};
    double left = 0;
    c.factor = factor_of(r, r->op == ROW_L1 ? sum_sizes(x, n) : sum_squares(x, n, c.mean, &left));
    c.rest = centred ? (float)(-left / (double)n) * c.factor : 0;
    for (size_t s = 0; s < n / r->segment; s++) {
        Vf           room[2];
        const size_t from = s * r->segment;
        row_apply(x + from, d->y + at + from, r->segment, c,
                  scales_of(r, d->scale, row, s, 1, &room[0]),
                  scales_of(r, d->bias, row, s, 0, &room[1]));
    }
    if (d->mean != NULL) d->mean[row] = c.mean;
    if (d->inverse != NULL) d->inverse[row] = c.factor;
}

// Where inner > 1: `vecs` vectors of neighbouring places, the last with only `some` lanes. Each
// lane is a set of its own.
typedef struct Places {
    size_t   n, stride;
    uint32_t vecs, some;
} Places;

VEC_INLINE uint32_t places_some(Places p, uint32_t v) {
    return v + 1 == p.vecs ? p.some : VEC_LANES;
}

VEC_INLINE void places_softmax(Places p, bool logs, const float *x, float *y) {
    Vf top[ROWWISE_VECS], sum[ROWWISE_VECS];
    for (uint32_t v = 0; v < p.vecs; v++) top[v] = vf_set(-INFINITY), sum[v] = vf_set(0);
    for (size_t i = 0; i < p.n; i++)
        for (uint32_t v = 0; v < p.vecs; v++)
            top[v] = vf_max(top[v], load_part(x + i * p.stride + v * VEC_LANES, places_some(p, v)));
    for (size_t i = 0; i < p.n; i++)
        for (uint32_t v = 0; v < p.vecs; v++) {
            const size_t at = i * p.stride + v * VEC_LANES;
            const Vf     e = vf_exp(load_part(x + at, places_some(p, v)) - top[v]);
            sum[v] += e;
            if (!logs) store_part(y + at, e, places_some(p, v));
        }
    for (uint32_t v = 0; v < p.vecs; v++) sum[v] = logs ? vf_log(sum[v]) : 1.0f / sum[v];
    for (size_t i = 0; i < p.n; i++)
        for (uint32_t v = 0; v < p.vecs; v++) {
            const size_t at = i * p.stride + v * VEC_LANES;
            const Vf     u = load_part((logs ? x : y) + at, places_some(p, v));
            store_part(y + at, logs ? u - top[v] - sum[v] : u * sum[v], places_some(p, v));
        }
}

VEC_INLINE void places_sum(Places p, Term t, const float *x, const Vf *centre, Vf *total) {
    for (uint32_t v = 0; v < p.vecs; v++) total[v] = vf_set(0);
    for (size_t i = 0; i < p.n; i += ROWS) {
        const size_t end = p.n - i < ROWS ? p.n : i + ROWS;
        Vf           sum[ROWWISE_VECS];
        for (uint32_t v = 0; v < p.vecs; v++) sum[v] = vf_set(0);
        for (size_t k = i; k < end; k++)
            for (uint32_t v = 0; v < p.vecs; v++)
                sum[v] += term(t, load_part(x + k * p.stride + v * VEC_LANES, places_some(p, v)) -
                                      centre[v]);
        for (uint32_t v = 0; v < p.vecs; v++) total[v] += sum[v];
    }
}

VEC_INLINE Vf places_factor(const Rowwise *r, Vf sum) {
    const Vf mean = sum / (float)r->n;
    switch (r->op) {
    case ROW_VARIANCE:
    case ROW_RMS: return 1.0f / vf_sqrt(mean + r->epsilon);
    case ROW_DEVIATION: return 1.0f / (vf_sqrt(mean) + r->epsilon);
    case ROW_L1: return vf_choose((Vi)(sum == 0.0f), sum, 1.0f / sum);
    default: return vf_choose((Vi)(sum == 0.0f), sum, 1.0f / vf_sqrt(sum));
    }
}

// What is subtracted, multiplied and added for each set.
typedef struct PlacesMap {
    Vf mean[ROWWISE_VECS], mul[ROWWISE_VECS], add[ROWWISE_VECS];
} PlacesMap;

// The mean's second part (see Centre) is the mean of what is left; it goes to `add`.
VEC_INLINE void places_moments(Places p, const Rowwise *r, const float *x, PlacesMap *m) {
    const bool centred = r->op == ROW_VARIANCE || r->op == ROW_DEVIATION;
    Vf         zero[ROWWISE_VECS];
    for (uint32_t v = 0; v < p.vecs; v++) m->mean[v] = m->add[v] = zero[v] = vf_set(0);
    if (centred) places_sum(p, TERM, x, zero, m->mean);
    for (uint32_t v = 0; v < p.vecs; v++) m->mean[v] /= (float)p.n;
    if (centred) places_sum(p, TERM, x, m->mean, m->add);
    if (r->op == ROW_L1)
        places_sum(p, TERM_ABS, x, zero, m->mul);
    else
        places_sum(p, TERM_SQUARE, x, m->mean, m->mul);
    for (uint32_t v = 0; v < p.vecs; v++) {
        m->mul[v] = places_factor(r, m->mul[v]);
        m->add[v] = m->add[v] * m->mul[v] / -(float)p.n;
    }
}

VEC_INLINE void places_scale(Places p, const RowwiseData *d, size_t at, PlacesMap *m) {
    for (uint32_t v = 0; v < p.vecs; v++) {
        const size_t lane = at + v * VEC_LANES;
        const Vf     none = vf_set(0);
        const Vf     s = d->scale ? load_part(d->scale + lane, places_some(p, v)) : none + 1.0f;
        m->add[v] = m->add[v] * s + (d->bias ? load_part(d->bias + lane, places_some(p, v)) : none);
        m->mul[v] *= s;
    }
}

static void places_add(Places p, const float *x, const float *add, float *y) {
    for (size_t i = 0; i < p.n; i++)
        row_add(x + i * p.stride, add + i * p.stride, NULL, y + i * p.stride,
                (p.vecs - 1) * VEC_LANES + p.some);
}

// at: the first number of these sets in x; set: the number of the first set among all.
VEC_INLINE void places_norm(Places p, const Rowwise *r, const RowwiseData *d, size_t at, size_t set,
                            size_t scale_at) {
    const float *x = d->x + at;
    float       *sum = (d->sum != NULL ? d->sum : d->y) + at, *y = d->y + at;
    PlacesMap    m;
    if (d->add != NULL) places_add(p, x, d->add + at, sum), x = sum;
    places_moments(p, r, x, &m);
    for (uint32_t v = 0; v < p.vecs; v++) {
        const size_t k = set + v * VEC_LANES;
        if (d->mean != NULL) store_part(d->mean + k, m.mean[v], places_some(p, v));
        if (d->inverse != NULL) store_part(d->inverse + k, m.mul[v], places_some(p, v));
    }
    places_scale(p, d, scale_at, &m);
    for (size_t i = 0; i < p.n; i++)
        for (uint32_t v = 0; v < p.vecs; v++) {
            const size_t k = i * p.stride + v * VEC_LANES;
            const Vf     u = load_part(x + k, places_some(p, v)) - m.mean[v];
            store_part(y + k, u * m.mul[v] + m.add[v], places_some(p, v));
        }
}

VEC_INLINE void run_places(const Rowwise *r, const RowwiseData *d, Places p, size_t row,
                           size_t place) {
    const size_t at = row * r->n * r->inner + place;
    if (r->op == ROW_SOFTMAX)
        places_softmax(p, false, d->x + at, d->y + at);
    else if (r->op == ROW_LOG_SOFTMAX)
        places_softmax(p, true, d->x + at, d->y + at);
    else
        places_norm(p, r, d, at, row * r->inner + place, row % r->groups * r->inner + place);
}

static void run_wide(const Rowwise *r, const RowwiseData *d, size_t row, size_t place) {
    run_places(r, d, (Places){r->n, r->inner, ROWWISE_VECS, VEC_LANES}, row, place);
}

static void run_one(const Rowwise *r, const RowwiseData *d, size_t row, size_t place) {
    run_places(r, d, (Places){r->n, r->inner, 1, VEC_LANES}, row, place);
}

static void run_some(const Rowwise *r, const RowwiseData *d, size_t row, size_t place,
                     uint32_t some) {
    run_places(r, d, (Places){r->n, r->inner, 1, some}, row, place);
}

static void run_column(const Rowwise *r, const RowwiseData *d, size_t row, size_t place) {
    const size_t width = (size_t)VEC_LANES * ROWWISE_VECS;
    const size_t end = r->inner - place < width ? r->inner : place + width;
    if (end - place == width) {
        run_wide(r, d, row, place);
        return;
    }
    for (; place + VEC_LANES <= end; place += VEC_LANES) run_one(r, d, row, place);
    if (place < end) run_some(r, d, row, place, (uint32_t)(end - place));
}

void VEC(rowwise)(const Rowwise *r, const RowwiseData *d, Part part) {
    const size_t   width = r->inner == 1 ? 1 : (size_t)VEC_LANES * ROWWISE_VECS;
    const uint32_t columns = (uint32_t)((r->inner + width - 1) / width);
    uint32_t       begin, end;
    part_range(part, r->n == 0 ? 0 : (uint32_t)r->rows * columns, &begin, &end);
    for (uint32_t task = begin; task < end; task++) {
        const size_t row = task / columns;
        if (r->inner > 1)
            run_column(r, d, row, task % columns * width);
        else if (r->op == ROW_SOFTMAX || r->op == ROW_LOG_SOFTMAX)
            row_softmax(r, d->x + row * r->n, d->y + row * r->n);
        else
            row_norm(r, d, row);
    }
}
