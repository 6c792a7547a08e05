#include "model/infer.h"
#include "model/qlinear.h"

Err infer_qlinear(const OpCall *c, Tensor *out) {
    QLinear       q;
    Tensor        real[QLINEAR_OPERANDS];
    const Tensor *in[QLINEAR_OPERANDS];
    TRY(qlinear_read(c, &q));
    Node   node = qlinear_node(c->node, &q);
    OpCall inner = {.node = &node, .in = in, .scratch = c->scratch};
    for (uint32_t i = 0; i < q.operands; i++) {
        real[i] = *c->in[q.first + 3 * i];
        real[i].dtype = DT_F32;
        real[i].data = NULL;
        in[i] = &real[i];
    }
    TRY(op_info(q.inner)->infer(&inner, out));
    out->dtype = c->in[q.first]->dtype;
    return ERR_OK;
}
