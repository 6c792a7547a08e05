#include "compile/run.h"
#include "compile/run_view.h"
#include "kernel/ref_quant.h"
#include "model/qlinear.h"

static RefQuant one_scale(const OpCall *c, uint32_t scale, const Tensor *x) {
    return (RefQuant){.outer = 1,
                      .axis = 1,
                      .inner = tensor_count(x),
                      .scale = c->in[scale],
                      .zero = infer_in(c, scale + 1)};
}

Err run_qlinear(const OpCall *c, Tensor *out) {
    QLinear       q;
    Tensor        real[QLINEAR_OPERANDS], result;
    const Tensor *in[QLINEAR_OPERANDS];
    TRY(qlinear_read(c, &q));
    Node   node = qlinear_node(c->node, &q);
    OpCall inner = {.node = &node, .in = in, .scratch = c->scratch, .keep = c->keep};
    for (uint32_t i = 0; i < q.operands; i++) {
        const Tensor *x = c->in[q.first + 3 * i];
        RefQuant      p = one_scale(c, q.first + 3 * i + 1, x);
        TRY(run_room(c, x, DT_F32, &real[i]));
        ref_dequantize(&p, x, &real[i]);
        in[i] = &real[i];
    }
    TRY(run_room(c, &out[0], DT_F32, &result));
    TRY(run_find(q.inner)(&inner, &result));
    RefQuant p = one_scale(c, q.result, &result);
    ref_quantize(&p, &result, &out[0]);
    return ERR_OK;
}
