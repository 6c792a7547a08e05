#include "kernel/ref_einsum.h"

#include <string.h>

#include "base/number.h"
#include "kernel/wide.h"

// Loops [from, to) as an odometer; offsets of every operand move along.
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

// The innermost loop is written out: it is where the time goes.
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
        while (loops_next(p, &l));                                                                 \
        return sum;                                                                                \
    }
SUM_OF_PRODUCTS(sum_real, double)
SUM_OF_PRODUCTS(sum_integer, uint64_t)

static Err einsum_real(const RefEinsum *p, Tensor *y, Arena *scratch) {
    double *operand[REF_EINSUM_OPERANDS];
    for (uint32_t k = 0; k < p->operands; k++) {
        int64_t n = tensor_count(p->operand[k]);
        operand[k] = arena_try_new(scratch, double, (size_t)n);
        if (operand[k] == NULL) return err_set(ERR_LIMIT, "no room for an operand");
        wide_read(p->operand[k], 0, 1, n, operand[k]);
    }
    Loops   l = {.to = p->n_out};
    int64_t at = 0;
    do number_set(y, at++, sum_real(p, operand, &l));
    while (loops_next(p, &l));
    return ERR_OK;
}

// The low bits of a product and of a sum do not depend on the high ones.
static Err einsum_integer(const RefEinsum *p, Tensor *y, Arena *scratch) {
    uint64_t *operand[REF_EINSUM_OPERANDS];
    size_t    size = dtype_size(y->dtype);
    for (uint32_t k = 0; k < p->operands; k++) {
        int64_t n = tensor_count(p->operand[k]);
        operand[k] = arena_try_new(scratch, uint64_t, (size_t)n);
        if (operand[k] == NULL) return err_set(ERR_LIMIT, "no room for an operand");
        for (int64_t i = 0; i < n; i++)
            memcpy(&operand[k][i], (const char *)p->operand[k]->data + (size_t)i * size, size);
    }
    Loops   l = {.to = p->n_out};
    int64_t at = 0;
    do {
        uint64_t sum = sum_integer(p, operand, &l);
        memcpy((char *)y->data + (size_t)at++ * size, &sum, size);
    } while (loops_next(p, &l));
    return ERR_OK;
}

Err ref_einsum(const RefEinsum *p, Tensor *y, Arena *scratch) {
    if (any_empty(p)) return ERR_OK;
    return dtype_is_float(y->dtype) ? einsum_real(p, y, scratch) : einsum_integer(p, y, scratch);
}
