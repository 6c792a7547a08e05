#include "compile/run.h"
#include "compile/run_product.h"
#include "compile/run_view.h"
#include "kernel/ref_einsum.h"
#include "kernel/ref_matmul.h"
#include "kernel/ref_quant.h"
#include "model/einsum.h"

Err run_matmul(const OpCall *c, Tensor *out) {
    RefMatMul p = {0};
    return run_product(c, &p, c->in[0], c->in[1], &out[0]);
}

Err run_matmul_integer(const OpCall *c, Tensor *out) {
    RefMatMul p = {.b_zero = infer_in(c, 3)};
    Tensor    a_zero;
    if (infer_in(c, 2) != NULL) {
        a_zero = run_column(c->in[2], 1);
        p.a_zero = &a_zero;
    }
    return run_product(c, &p, c->in[0], c->in[1], &out[0]);
}

Err run_matmul_qlinear(const OpCall *c, Tensor *out) {
    Tensor    sum, a_zero = run_column(c->in[2], 1), a_scale = run_column(c->in[1], 1);
    Tensor    y_zero = run_column(c->in[7], 1), y_scale = run_column(c->in[6], 1);
    Tensor    b_scale = run_column(c->in[4], 0);
    RefMatMul p = {.a_zero = &a_zero, .b_zero = c->in[5]};
    TRY(run_wide(c, &out[0], &sum));
    TRY(run_product(c, &p, c->in[0], c->in[3], &sum));
    ref_requantize(&sum, &a_scale, &b_scale, &y_scale, &y_zero, &out[0]);
    return ERR_OK;
}

Err run_gemm(const OpCall *c, Tensor *out) {
    RefMatMul p = {.trans_a = attr_int(c->node, "transA", 0) != 0,
                   .trans_b = attr_int(c->node, "transB", 0) != 0};
    Tensor    product_ab;
    TRY(run_wide(c, &out[0], &product_ab));
    TRY(ref_matmul(&p, c->in[0], c->in[1], &product_ab, c->scratch));
    ref_gemm_add((double)attr_float(c->node, "alpha", 1), &product_ab,
                 (double)attr_float(c->node, "beta", 1), infer_in(c, 2), &out[0]);
    return ERR_OK;
}

Err run_einsum(const OpCall *c, Tensor *out) {
    Einsum e;
    TRY(einsum_read(c, &e));
    RefEinsum p = {.n = e.n, .n_out = e.n_out, .operands = e.operands};
    for (int32_t i = 0; i < e.n; i++) p.dims[i] = e.dims[i];
    for (uint32_t k = 0; k < e.operands; k++) {
        p.operand[k] = c->in[k];
        einsum_strides(&e, k, c->in[k], p.stride[k]);
    }
    return ref_einsum(&p, &out[0], c->scratch);
}
