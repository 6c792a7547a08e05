#include "kernel/ref/ref_matmul.h"

#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "base/tensor.h"
#include "base/work_stop.h"
#include "kernel/nd_iter.h"
#include "kernel/ref/ref_int.h"
#include "kernel/wide_type.h"

// Four rows per iteration: acc is loaded and stored once for four products.
void panel_dot(const double *restrict panel, const double *restrict row, int64_t k,
               double acc[restrict PANEL]) {
    int64_t i = 0;
    for (; i + 4 <= k; i += 4, panel += (size_t)4 * PANEL) {
        double a = row[i], b = row[i + 1], c = row[i + 2], d = row[i + 3];
        for (int j = 0; j < PANEL; j++)
            acc[j] += a * panel[j] + b * panel[j + PANEL] + c * panel[j + 2 * PANEL] +
                      d * panel[j + 3 * PANEL];
    }
    for (; i < k; i++, panel += PANEL)
        for (int j = 0; j < PANEL; j++) acc[j] += row[i] * panel[j];
}

Err ref_alloc_doubles(Arena *a, int64_t k, int64_t width, double **out) {
    int64_t n = 0;
    bool    over = __builtin_mul_overflow(k, width, &n);
    *out = over ? NULL : arena_try(a, (size_t)n, sizeof(double), 64);
    if (*out == NULL)
        return err_set(ERR_LIMIT, "no memory for %" PRId64 " x %" PRId64 " doubles of scratch", k,
                       width);
    return ERR_OK;
}

// One matrix of a batch: element (i, j) is at + i * row + j * col, minus its zero point.
typedef struct Matrix {
    const Tensor *t, *zero;
    int64_t       at, row, col;
    int64_t       zero_at, zero_step;
} Matrix;

typedef struct Product {
    Matrix  a, b;
    Tensor *y;
    int64_t m, k, n, y_at;
    double *panel, *row;
} Product;

static void panel_load(const Product *p, int64_t from, int64_t n) {
    const Matrix *b = &p->b;
    double        zero[PANEL] = {0};
    if (b->zero != NULL)
        wide_read(b->zero, b->zero_at + from * b->zero_step, b->zero_step, n, zero);
    for (int64_t k = 0; k < p->k && !work_stopped(); k++) {
        double *to = p->panel + k * PANEL;
        wide_read(b->t, b->at + k * b->row + from * b->col, b->col, n, to);
        if (b->zero != NULL)
            for (int64_t j = 0; j < n; j++) to[j] -= zero[j];
    }
}

static void row_times_panel(const Product *p, int64_t i, int64_t from, int64_t n) {
    const Matrix *a = &p->a;
    double        acc[PANEL] = {0};
    wide_read(a->t, a->at + i * a->row, a->col, p->k, p->row);
    if (a->zero != NULL) {
        double zero = tensor_get_f64(a->zero, a->zero_at + i * a->zero_step);
        WORK_EACH (k, p->k) p->row[k] -= zero;
    }
    panel_dot(p->panel, p->row, p->k, acc);
    wide_write(p->y, p->y_at + i * p->n + from, 1, n, acc);
}

static void product_real(const Product *p) {
    for (int64_t from = 0; from < p->n && !work_stopped(); from += PANEL) {
        int64_t n = p->n - from < PANEL ? p->n - from : PANEL;
        panel_load(p, from, n);
        for (int64_t i = 0; i < p->m && !work_stopped(); i++) row_times_panel(p, i, from, n);
    }
}

// Unsigned arithmetic gives the bits of wrapping two's complement.
#define WRAPPING(id, T)                                                                            \
    static void product_##id(const Product *p) {                                                   \
        const T *a = (const T *)p->a.t->data + p->a.at, *b = (const T *)p->b.t->data + p->b.at;    \
        T       *y = (T *)p->y->data + p->y_at;                                                    \
        for (int64_t i = 0; i < p->m; i++)                                                         \
            for (int64_t j = 0; j < p->n && !work_stopped(); j++) {                                \
                T sum = 0;                                                                         \
                for (int64_t k = 0; k < p->k; k++)                                                 \
                    sum += a[i * p->a.row + k * p->a.col] * b[k * p->b.row + j * p->b.col];        \
                y[i * p->n + j] = sum;                                                             \
            }                                                                                      \
    }
WRAPPING(32, uint32_t)
WRAPPING(64, uint64_t)

static void product(const Product *p) {
    switch (p->a.t->dtype == p->y->dtype ? p->y->dtype : DT_NONE) {
    case DT_I32:
    case DT_U32: product_32(p); return;
    case DT_I64:
    case DT_U64: product_64(p); return;
    default: product_real(p);
    }
}

static Matrix matrix_of(const Tensor *t, bool transposed) {
    int64_t cols = t->dims[t->rank - 1];
    return (Matrix){.t = t, .row = transposed ? 1 : cols, .col = transposed ? cols : 1};
}

// The batch dimensions of t as a tensor of matrices; a scalar if there are none.
static Tensor batch_of(const Tensor *t) {
    return tensor_of(t->dtype, t->rank > 2 ? t->rank - 2 : 0, t->dims, NULL);
}

static int64_t matrix_size(const Tensor *t) {
    return t->rank < 2 ? tensor_count(t) : t->dims[t->rank - 1] * t->dims[t->rank - 2];
}

Err ref_matmul(const RefMatMul *p, const Tensor *a, const Tensor *b, Tensor *y, Arena *scratch) {
    const Tensor *operand[4] = {a, b, p->a_zero, p->b_zero};
    Product       q = {.a = matrix_of(a, p->trans_a), .b = matrix_of(b, p->trans_b), .y = y};
    q.m = y->dims[y->rank - 2];
    q.n = y->dims[y->rank - 1];
    q.k = a->dims[a->rank - (p->trans_a ? 2 : 1)];
    q.a.zero = p->a_zero;
    q.b.zero = p->b_zero;
    if (p->a_zero != NULL) q.a.zero_step = matrix_size(p->a_zero) > 1;
    if (p->b_zero != NULL) q.b.zero_step = matrix_size(p->b_zero) > 1;
    TRY(ref_alloc_doubles(scratch, q.k, PANEL, &q.panel));
    TRY(ref_alloc_doubles(scratch, q.k, 1, &q.row));

    NdIter w = nd_iter_begin(y->rank - 2, y->dims);
    for (int i = 0; i < 4; i++) {
        Tensor batch = operand[i] != NULL ? batch_of(operand[i]) : (Tensor){0};
        nd_iter_broadcast(&w, &batch);
    }
    for (; nd_iter_more(&w); nd_iter_next(&w)) {
        q.a.at = w.off[0] * matrix_size(a);
        q.b.at = w.off[1] * matrix_size(b);
        if (p->a_zero != NULL) q.a.zero_at = w.off[2] * matrix_size(p->a_zero);
        if (p->b_zero != NULL) q.b.zero_at = w.off[3] * matrix_size(p->b_zero);
        q.y_at = w.at * q.m * q.n;
        product(&q);
    }
    return ERR_OK;
}

void ref_gemm_add(double alpha, const Tensor *ab, double beta, const Tensor *c, Tensor *y) {
    Tensor none = {0};
    NdIter w = nd_iter_begin(y->rank, y->dims);
    nd_iter_broadcast(&w, c != NULL ? c : &none);
    for (; nd_iter_more(&w); nd_iter_next(&w)) {
        double v = alpha * tensor_get_f64(ab, w.at);
        if (c != NULL) v += beta * tensor_get_f64(c, w.off[0]);
        tensor_set(y, w.at, v);
    }
}

// Nested loops [from, to) with the offset of every operand.
typedef struct Loops {
    int32_t from, to;
    int64_t index[REF_EINSUM_LOOPS], off[REF_EINSUM_OPERANDS];
} Loops;

static bool loops_next(const RefEinsum *p, Loops *l) {
    for (int32_t i = l->to - 1; i >= l->from; i--) {
        bool over = ++l->index[i] == p->dims[i];
        for (uint32_t k = 0; k < p->operands; k++)
            l->off[k] += over ? -p->stride[k][i] * (p->dims[i] - 1) : p->stride[k][i];
        if (!over) return true;
        l->index[i] = 0;
    }
    return false;
}

static bool any_empty(const RefEinsum *p) {
    for (int32_t i = 0; i < p->n; i++)
        if (p->dims[i] == 0) return true;
    return false;
}

// The innermost loop is explicit, for speed.
#define SUM_OF_PRODUCTS(name, T)                                                                   \
    static T name(const RefEinsum *p, T *const *operand, const Loops *out) {                       \
        Loops   l = *out;                                                                          \
        T       sum = 0;                                                                           \
        int32_t last = p->n > p->n_out ? p->n - 1 : p->n;                                          \
        int64_t count = last < p->n ? p->dims[last] : 1;                                           \
        l.from = p->n_out;                                                                         \
        l.to = last;                                                                               \
        do                                                                                         \
            for (int64_t i = 0; i < count; i++) {                                                  \
                T product = 1;                                                                     \
                for (uint32_t k = 0; k < p->operands; k++)                                         \
                    product *= operand[k][l.off[k] + (count > 1 ? i * p->stride[k][last] : 0)];    \
                sum += product;                                                                    \
            }                                                                                      \
        while (loops_next(p, &l) && !work_stopped());                                              \
        return sum;                                                                                \
    }
SUM_OF_PRODUCTS(sum_real, double)
SUM_OF_PRODUCTS(sum_integer, uint64_t)

static Err einsum_real(const RefEinsum *p, Tensor *y, Arena *scratch) {
    double *operand[REF_EINSUM_OPERANDS];
    for (uint32_t k = 0; k < p->operands; k++) {
        int64_t n = tensor_count(p->operand[k]);
        operand[k] = arena_try_new(scratch, double, (size_t)n);
        if (operand[k] == NULL) return err_set(ERR_LIMIT, "einsum: no memory for an operand");
        wide_read(p->operand[k], 0, 1, n, operand[k]);
    }
    Loops   l = {.to = p->n_out};
    int64_t at = 0;
    do tensor_set(y, at++, sum_real(p, operand, &l));
    while (loops_next(p, &l) && !work_stopped());
    return ERR_OK;
}

// Computes in uint64_t: the low bits of sums and products do not depend on the high ones.
static Err einsum_integer(const RefEinsum *p, Tensor *y, Arena *scratch) {
    uint64_t *operand[REF_EINSUM_OPERANDS];
    size_t    size = dtype_size(y->dtype);
    for (uint32_t k = 0; k < p->operands; k++) {
        int64_t n = tensor_count(p->operand[k]);
        operand[k] = arena_try_new(scratch, uint64_t, (size_t)n);
        if (operand[k] == NULL) return err_set(ERR_LIMIT, "einsum: no memory for an operand");
        WORK_EACH (i, n)
            memcpy(&operand[k][i], (const char *)p->operand[k]->data + (size_t)i * size, size);
    }
    Loops   l = {.to = p->n_out};
    int64_t at = 0;
    do {
        uint64_t sum = sum_integer(p, operand, &l);
        memcpy((char *)y->data + (size_t)at++ * size, &sum, size);
    } while (loops_next(p, &l) && !work_stopped());
    return ERR_OK;
}

Err ref_einsum(const RefEinsum *p, Tensor *y, Arena *scratch) {
    if (any_empty(p)) return ERR_OK;
    return dtype_is_float(y->dtype) ? einsum_real(p, y, scratch) : einsum_integer(p, y, scratch);
}

static void swap_rows(double *m, int64_t n, int64_t a, int64_t b) {
    WORK_EACH (i, n) {
        double keep = m[a * n + i];
        m[a * n + i] = m[b * n + i];
        m[b * n + i] = keep;
    }
}

// Gaussian elimination with partial pivoting.
static double determinant(double *m, int64_t n) {
    double det = 1;
    for (int64_t k = 0; k < n && !work_stopped(); k++) {
        int64_t pivot = k;
        for (int64_t i = k + 1; i < n && !work_stopped(); i++)
            if (fabs(m[i * n + k]) > fabs(m[pivot * n + k])) pivot = i;
        if (pivot != k) {
            swap_rows(m, n, pivot, k);
            det = -det;
        }
        det *= m[k * n + k];
        if (m[k * n + k] == 0) return det;
        for (int64_t i = k + 1; i < n && !work_stopped(); i++) {
            double factor = m[i * n + k] / m[k * n + k];
            for (int64_t j = k; j < n; j++) m[i * n + j] -= factor * m[k * n + j];
        }
    }
    return det;
}

void ref_det(const Tensor *x, Tensor *y, double *scratch) {
    const int64_t n = x->dims[x->rank - 1];
    for (int64_t k = 0; k < tensor_count(y) && !work_stopped(); k++) {
        WORK_EACH (i, n * n) scratch[i] = tensor_get_f64(x, k * n * n + i);
        tensor_set(y, k, determinant(scratch, n));
    }
}
