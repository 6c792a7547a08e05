#include "compile/run_product.h"

#include "compile/run_view.h"

// The product's shape with the dimensions a lone vector lost put back.
static Tensor product_view(const Tensor *a, const Tensor *b, const Tensor *y) {
    Tensor v = *y;
    if (a->rank > 1 && b->rank > 1) return v;
    int32_t stack = y->rank - (a->rank > 1) - (b->rank > 1);
    v.rank = stack + 2;
    v.dims[stack] = a->rank > 1 ? y->dims[stack] : 1;
    v.dims[stack + 1] = b->rank > 1 ? y->dims[y->rank - 1] : 1;
    return v;
}

Err run_product(const OpCall *c, const RefMatMul *p, const Tensor *a, const Tensor *b,
                const Tensor *y) {
    Tensor left = run_matrix(a, true), right = run_matrix(b, false), to = product_view(a, b, y);
    return ref_matmul(p, &left, &right, &to, c->scratch);
}
