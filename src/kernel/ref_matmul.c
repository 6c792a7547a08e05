#include "kernel/ref_matmul.h"

#include "base/number.h"
#include "kernel/panel.h"
#include "kernel/wide.h"
#include "kernel/walk.h"

// One matrix of a stack: element (i, j) is at + i * row + j * col; less its zero point.
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
    for (int64_t k = 0; k < p->k; k++) {
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
        double zero = number_f64(a->zero, a->zero_at + i * a->zero_step);
        for (int64_t k = 0; k < p->k; k++) p->row[k] -= zero;
    }
    panel_dot(p->panel, p->row, p->k, acc);
    wide_write(p->y, p->y_at + i * p->n + from, 1, n, acc);
}

static void product_real(const Product *p) {
    for (int64_t from = 0; from < p->n; from += PANEL) {
        int64_t n = p->n - from < PANEL ? p->n - from : PANEL;
        panel_load(p, from, n);
        for (int64_t i = 0; i < p->m; i++) row_times_panel(p, i, from, n);
    }
}

// Unsigned arithmetic wraps the same bits that two's complement does.
#define WRAPPING(id, T)                                                                            \
    static void product_##id(const Product *p) {                                                   \
        const T *a = (const T *)p->a.t->data + p->a.at, *b = (const T *)p->b.t->data + p->b.at;    \
        T       *y = (T *)p->y->data + p->y_at;                                                    \
        for (int64_t i = 0; i < p->m; i++)                                                         \
            for (int64_t j = 0; j < p->n; j++) {                                                   \
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

// The stack of matrices t holds, as a tensor of matrices; a scalar when it is one matrix or less.
static Tensor stack_of(const Tensor *t) {
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
    TRY(panel_room(scratch, q.k, PANEL, &q.panel));
    TRY(panel_room(scratch, q.k, 1, &q.row));

    Walk w = walk_begin(y->rank - 2, y->dims);
    for (int i = 0; i < 4; i++) {
        Tensor stack = operand[i] != NULL ? stack_of(operand[i]) : (Tensor){0};
        walk_broadcast(&w, &stack);
    }
    for (; walk_more(&w); walk_next(&w)) {
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
    Walk   w = walk_begin(y->rank, y->dims);
    walk_broadcast(&w, c != NULL ? c : &none);
    for (; walk_more(&w); walk_next(&w)) {
        double v = alpha * number_f64(ab, w.at);
        if (c != NULL) v += beta * number_f64(c, w.off[0]);
        number_set(y, w.at, v);
    }
}
