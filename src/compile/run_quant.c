#include "compile/run.h"
#include "kernel/ref_quant.h"
#include "model/quant.h"

static Err quant_params(const OpCall *c, RefQuant *p) {
    QuantLayout l;
    TRY(quant_layout(c->node, c->in[0], c->in[1], infer_in(c, 2), &l));
    *p = (RefQuant){.outer = l.outer,
                    .axis = l.axis,
                    .inner = l.inner,
                    .block = l.block,
                    .scale = c->in[1],
                    .zero = infer_in(c, 2)};
    return ERR_OK;
}

Err run_quantize(const OpCall *c, Tensor *out) {
    RefQuant p;
    TRY(quant_params(c, &p));
    ref_quantize(&p, c->in[0], &out[0]);
    return ERR_OK;
}

Err run_dequantize(const OpCall *c, Tensor *out) {
    RefQuant p;
    TRY(quant_params(c, &p));
    ref_dequantize(&p, c->in[0], &out[0]);
    return ERR_OK;
}

Err run_quantize_dynamic(const OpCall *c, Tensor *out) {
    float   scale = 0;
    uint8_t zero = 0;
    ref_quantize_dynamic(c->in[0], &out[0], &scale, &zero);
    if (c->node->n_out > 1) *(float *)out[1].data = scale;
    if (c->node->n_out > 2) *(uint8_t *)out[2].data = zero;
    return ERR_OK;
}
