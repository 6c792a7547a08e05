#include "kernel/vec/vec_int.h"

#include "kernel/vec/vec_math.h"
#include "kernel/vec/vec_transpose.h"

normalize_fn VEC(normalize);

enum {
    STEP = 4 * VEC_LANES,
    BLOCK = 128 * VEC_LANES,  // floats accumulated in float before the double accumulator
    SHORT_ROW = 4 * VEC_LANES,
};

// The last n < VEC_LANES floats of a row, padded with `fill`.
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

// Sum of e^(x - top) over at most BLOCK floats; y receives the terms unless it is NULL.
VEC_INLINE float row_exp(const float *x, size_t n, float top, float *y) {
    Vf     sum = vf_set(0);
    size_t i = 0;
    for (; i + VEC_LANES <= n; i += VEC_LANES) {
        const Vf e = vf_exp(vf_load(x + i) - top);
        if (y != NULL) vf_store(y + i, e);
        sum += e;
    }
    if (i == n) return vf_sum(sum);
    const Vf e = vf_exp(load_tail(x + i, n - i, -INFINITY) - top);
    if (y != NULL) vf_store_some(y + i, e, (uint32_t)(n - i));
    return vf_sum(sum + e);
}

static void row_scale(float *y, size_t n, float factor) {
    size_t i = 0;
    for (; i + VEC_LANES <= n; i += VEC_LANES) vf_store(y + i, vf_load(y + i) * factor);
    const uint32_t some = (uint32_t)(n - i);
    if (some > 0) vf_store_some(y + i, vf_load_some(y + i, some) * factor, some);
}

static void row_subtract(const float *x, float *y, size_t n, float top, float log_sum) {
    size_t i = 0;
    for (; i + VEC_LANES <= n; i += VEC_LANES) vf_store(y + i, vf_load(x + i) - top - log_sum);
    const uint32_t some = (uint32_t)(n - i);
    if (some > 0) vf_store_some(y + i, vf_load_some(x + i, some) - top - log_sum, some);
}

// Softmax or log-softmax of a row of any length.
static void row_softmax(const Normalize *r, const float *x, float *y) {
    const float top = row_top(x, r->n);
    double      sum = 0;
    for (size_t i = 0; i < r->n; i += BLOCK) {
        const size_t some = r->n - i < BLOCK ? r->n - i : BLOCK;
        if (r->op == NORMALIZE_SOFTMAX)
            sum += (double)row_exp(x + i, some, top, y + i);
        else
            sum += (double)row_exp(x + i, some, top, NULL);
    }
    if (r->op == NORMALIZE_SOFTMAX)
        row_scale(y, r->n, (float)(1 / sum));
    else
        row_subtract(x, y, r->n, top, logf((float)sum));
}

// Sums over v = x - centre; the compiler drops those that a caller does not read.
typedef struct Sums {
    double values, squares, abs_values;
} Sums;

VEC_INLINE void sums_add(Vf v, Vf *values, Vf *squares, Vf *abs_values) {
    *values += v, *squares += v * v, *abs_values += vf_abs(v);
}

VEC_INLINE Sums row_sums(const float *x, size_t n, float centre) {
    Sums   total = {0, 0, 0};
    size_t i = 0;
    while (i + VEC_LANES <= n) {
        const size_t end = n - i < BLOCK ? n : i + BLOCK;
        Vf           p[4], q[4], s[4];
        for (int k = 0; k < 4; k++) p[k] = q[k] = s[k] = vf_set(0);
        for (; i + STEP <= end; i += STEP)
            for (int k = 0; k < 4; k++)
                sums_add(vf_load(x + i + k * VEC_LANES) - centre, &p[k], &q[k], &s[k]);
        for (; i + VEC_LANES <= end; i += VEC_LANES)
            sums_add(vf_load(x + i) - centre, &p[0], &q[0], &s[0]);
        total.values += (double)vf_sum((p[0] + p[1]) + (p[2] + p[3]));
        total.squares += (double)vf_sum((q[0] + q[1]) + (q[2] + q[3]));
        total.abs_values += (double)vf_sum((s[0] + s[1]) + (s[2] + s[3]));
    }
    if (i == n) return total;
    const Vf v = load_tail(x + i, n - i, centre) - centre;
    total.values += (double)vf_sum(v);
    total.squares += (double)vf_sum(v * v);
    total.abs_values += (double)vf_sum(vf_abs(v));
    return total;
}

static double sum_values(const float *x, size_t n) { return row_sums(x, n, 0).values; }
static double sum_squares(const float *x, size_t n) { return row_sums(x, n, 0).squares; }
static double sum_abs(const float *x, size_t n) { return row_sums(x, n, 0).abs_values; }

// Sum of (x - centre)^2; *left is the sum of x - centre, the rounding error of the centre.
static double sum_centred(const float *x, size_t n, float centre, double *left) {
    const Sums s = row_sums(x, n, centre);
    *left = s.values;
    return s.squares;
}

// The factor of the result, from the sum of squares (L1: of absolute values).
static float factor_of(const Normalize *r, double sum) {
    const double mean = sum / (double)r->n, epsilon = (double)r->epsilon;
    switch (r->op) {
    case NORMALIZE_VARIANCE:
    case NORMALIZE_RMS: return (float)(1 / sqrt(mean + epsilon));
    case NORMALIZE_DEVIATION: return (float)(1 / (sqrt(mean) + epsilon));
    case NORMALIZE_L1: return sum == 0 ? 0 : (float)(1 / sum);
    default: return sum == 0 ? 0 : (float)(1 / sqrt(sum));
    }
}

// Scales along a row: consecutive vectors, or the same vector repeated (step 0).
typedef struct Scales {
    const float *at;
    size_t       step;
} Scales;

VEC_INLINE Vf scales_next(Scales *s, size_t n) {
    const float *at = s->at;
    s->at += s->step;
    return s->step == 0 ? vf_load(at) : vf_load_part(at, (uint32_t)n);
}

// A mean in two parts: `mean`, and its rounding error, which matters when values are far from 0.
typedef struct Centre {
    float mean, factor;
    float rest;  // the mean's rounding error times factor
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

// Scales of row `row`; `none` if from is NULL. *one holds a scale that is the same for all
// elements.
static Scales scales_of(const Normalize *r, const float *from, size_t row, float none, Vf *one) {
    const bool per_set = r->scale == NORMALIZE_SCALE_PER_SET;
    *one = vf_set(from != NULL && per_set ? from[row % r->groups] : none);
    if (from == NULL || per_set) return (Scales){(const float *)one, 0};
    return (Scales){from, VEC_LANES};
}

// y = x + add + bias.
static void row_add(const float *x, const float *add, const float *bias, float *y, size_t n) {
    for (size_t i = 0; i < n; i += VEC_LANES) {
        const uint32_t some = n - i < VEC_LANES ? (uint32_t)(n - i) : VEC_LANES;
        Vf             v = vf_load_part(x + i, some) + vf_load_part(add + i, some);
        if (bias != NULL) v += vf_load_part(bias + i, some);
        vf_store_part(y + i, v, some);
    }
}

static void row_norm(const Normalize *r, const NormalizeArgs *d, size_t row) {
    const size_t at = row * r->n, n = r->n;
    const bool   centred = r->op == NORMALIZE_VARIANCE || r->op == NORMALIZE_DEVIATION;
    const float *x = d->x + at;
    if (d->add != NULL) {
        float *sum = d->sum != NULL ? d->sum + at : d->y + at;
        row_add(x, d->add + at, d->add_bias, sum, n);
        x = sum;
    }
    Centre c = {.mean = centred ? (float)(sum_values(x, n) / (double)n) : 0};
    double left = 0;
    c.factor = factor_of(r, centred                 ? sum_centred(x, n, c.mean, &left)
                            : r->op == NORMALIZE_L1 ? sum_abs(x, n)
                                                    : sum_squares(x, n));
    c.rest = (float)(-left / (double)n) * c.factor;
    Vf one[2];
    row_apply(x, d->y + at, n, c, scales_of(r, d->scale, row, 1, &one[0]),
              scales_of(r, d->bias, row, 0, &one[1]));
    if (d->mean != NULL) d->mean[row] = c.mean;
    if (d->inverse != NULL) d->inverse[row] = c.factor;
}

// Software-pipelined rows: the max of the next row and the scaling of the previous one overlap the
// exponentials of this one.
static void rows_softmax(const Normalize *r, const NormalizeArgs *d, size_t row, size_t end) {
    const size_t n = r->n;
    float        top = row_top(d->x + row * n, n), factor = 0;
    const size_t begin = row;
    for (; row < end; row++) {
        const float next = row + 1 < end ? row_top(d->x + (row + 1) * n, n) : 0;
        const float sum = row_exp(d->x + row * n, n, top, d->y + row * n);
        if (row > begin) row_scale(d->y + (row - 1) * n, n, factor);
        factor = 1 / sum, top = next;
    }
    row_scale(d->y + (row - 1) * n, n, factor);
}

// VEC_LANES short rows at a time, each in a lane.
static void rows_transposed(const Normalize *r, const float *x, float *y) {
    Vf           transposed[SHORT_ROW];
    const size_t n = r->n;
    for (size_t i = 0; i < n; i += VEC_LANES) {
        const uint32_t some = n - i < VEC_LANES ? (uint32_t)(n - i) : VEC_LANES;
        Vf             t[VEC_LANES];
        for (size_t k = 0; k < VEC_LANES; k++) t[k] = vf_load_part(x + k * n + i, some);
        vec_transpose(t);
        for (size_t k = 0; k < VEC_LANES; k++) transposed[i + k] = t[k];
    }
    VEC(softmax_lanes)(r->op, transposed, n);
    for (size_t i = 0; i < n; i += VEC_LANES) {
        const uint32_t some = n - i < VEC_LANES ? (uint32_t)(n - i) : VEC_LANES;
        Vf             t[VEC_LANES];
        for (size_t k = 0; k < VEC_LANES; k++) t[k] = transposed[i + k];
        vec_transpose(t);
        for (size_t k = 0; k < VEC_LANES; k++) vf_store_part(y + k * n + i, t[k], some);
    }
}

// Short rows are computed in groups with the same limits in every division into parts: a row's last
// bits depend on whether it is in a whole group.
static void run_softmax(const Normalize *r, const NormalizeArgs *d, size_t row, size_t end) {
    const size_t n = r->n;
    if (n <= SHORT_ROW) {
        row -= row % VEC_LANES;
        if (end < r->rows) end -= end % VEC_LANES;
    }
    if (n <= SHORT_ROW)
        for (; row + VEC_LANES <= end; row += VEC_LANES)
            rows_transposed(r, d->x + row * n, d->y + row * n);
    if (r->op == NORMALIZE_SOFTMAX && n <= BLOCK && row < end) {
        rows_softmax(r, d, row, end);
        return;
    }
    for (; row < end; row++) row_softmax(r, d->x + row * n, d->y + row * n);
}

void VEC(normalize)(const Normalize *r, const NormalizeArgs *d, Part part) {
    const size_t   width = r->inner == 1 ? 1 : (size_t)VEC_LANES * NORMALIZE_VECS;
    const uint32_t columns = (uint32_t)((r->inner + width - 1) / width);
    uint32_t       task, end;
    part_range(part, r->n == 0 ? 0 : (uint32_t)r->rows * columns, &task, &end);
    if (r->inner == 1 && (r->op == NORMALIZE_SOFTMAX || r->op == NORMALIZE_LOG_SOFTMAX))
        run_softmax(r, d, task, end);
    else if (r->inner == 1)
        for (; task < end; task++) row_norm(r, d, task);
    else
        for (; task < end; task++)
            VEC(normalize_lanes)(r, d, task / columns, task % columns * width);
}
