#include "bench/dnnl/peer.h"

#include <oneapi/dnnl/dnnl.h>
#include <stdlib.h>
#include <string.h>

enum { ARGS = 4 };

struct Peer {
    dnnl_engine_t         engine;
    dnnl_stream_t         stream;
    dnnl_primitive_desc_t desc;
    dnnl_primitive_t      primitive;
    dnnl_memory_t         memory[ARGS];
    dnnl_exec_arg_t       args[ARGS];
    int                   n_args;
    const char           *implementation;
};

static Err check(dnnl_status_t s, const char *doing) {
    if (s == dnnl_success) return ERR_OK;
    return err_set(s == dnnl_unimplemented ? ERR_UNSUPPORTED : ERR_LIMIT,
                   "oneDNN cannot %s: status %d", doing, (int)s);
}

// The pattern is a small positive number in every type: no denormal operands, no overflow.
static Err add_memory(Peer *p, int arg, dnnl_query_t what, int index) {
    const dnnl_memory_desc_t *md = dnnl_primitive_desc_query_md(p->desc, what, index);
    dnnl_memory_t             m = NULL;
    void                     *data = NULL;
    if (md == NULL || md->ndims == 0) return ERR_OK;
    TRY(check(dnnl_memory_create(&m, md, p->engine, DNNL_MEMORY_ALLOCATE), "allocate a tensor"));
    p->memory[p->n_args] = m;
    p->args[p->n_args++] = (dnnl_exec_arg_t){arg, m};
    TRY(check(dnnl_memory_get_data_handle(m, &data), "reach a tensor"));
    memset(data, 0x3c, dnnl_memory_desc_get_size(md));
    return ERR_OK;
}

static Err finish(Peer *p, const_dnnl_op_desc_t op, dnnl_primitive_attr_t attr) {
    TRY(check(dnnl_primitive_desc_create(&p->desc, op, attr, p->engine, NULL), "do this shape"));
    TRY(check(dnnl_primitive_create(&p->primitive, p->desc), "create a primitive"));
    TRY(add_memory(p, DNNL_ARG_SRC, dnnl_query_src_md, 0));
    TRY(add_memory(p, DNNL_ARG_WEIGHTS, dnnl_query_weights_md, 0));
    TRY(add_memory(p, DNNL_ARG_BIAS, dnnl_query_weights_md, 1));
    TRY(add_memory(p, DNNL_ARG_DST, dnnl_query_dst_md, 0));
    return check(
        dnnl_primitive_desc_query(p->desc, dnnl_query_impl_info_str, 0, (void *)&p->implementation),
        "name its implementation");
}

static Err start(Peer **out) {
    Peer *p = calloc(1, sizeof *p);
    if (p == NULL) return err_set(ERR_LIMIT, "no memory for a primitive");
    *out = p;
    TRY(check(dnnl_engine_create(&p->engine, dnnl_cpu, 0), "use this CPU"));
    return check(dnnl_stream_create(&p->stream, p->engine, dnnl_stream_default_flags),
                 "create a stream");
}

static Err tensor(dnnl_memory_desc_t *md, int n, const dnnl_dims_t dims, dnnl_data_type_t type) {
    return check(dnnl_memory_desc_init_by_tag(md, n, dims, type, dnnl_format_tag_any),
                 "describe a tensor");
}

static dnnl_data_type_t input(PeerType t) { return t == PEER_F32 ? dnnl_f32 : dnnl_u8; }
static dnnl_data_type_t weight(PeerType t) { return t == PEER_F32 ? dnnl_f32 : dnnl_s8; }

static Err attributes(PeerType type, bool relu, dnnl_primitive_attr_t *attr) {
    static const float scale = 0.01F;
    dnnl_post_ops_t    ops = NULL;
    TRY(check(dnnl_primitive_attr_create(attr), "create attributes"));
    if (type == PEER_INT8)
        TRY(check(dnnl_primitive_attr_set_output_scales(*attr, 1, 0, &scale), "set a scale"));
    if (!relu) return ERR_OK;
    TRY(check(dnnl_post_ops_create(&ops), "create an epilogue"));
    Err e = check(dnnl_post_ops_append_eltwise(ops, 1, dnnl_eltwise_relu, 0, 0), "append a ReLU");
    if (e == ERR_OK) e = check(dnnl_primitive_attr_set_post_ops(*attr, ops), "set an epilogue");
    (void)dnnl_post_ops_destroy(ops);
    return e;
}

static Err conv_op(const ConvShape *s, PeerType type, dnnl_convolution_desc_t *op) {
    const dnnl_dims_t  x = {s->n, s->ic, s->ih, s->iw}, w = {s->oc, s->ic, s->kh, s->kw};
    const dnnl_dims_t  b = {s->oc}, y = {s->n, s->oc, s->oh, s->ow};
    const dnnl_dims_t  strides = {s->sh, s->sw}, begin = {s->pt, s->pl};
    const dnnl_dims_t  end = {(dnnl_dim_t)(s->oh - 1) * s->sh + s->kh - s->ih - s->pt,
                              (dnnl_dim_t)(s->ow - 1) * s->sw + s->kw - s->iw - s->pl};
    dnnl_memory_desc_t xd, wd, bd, yd;
    TRY(tensor(&xd, 4, x, input(type)));
    TRY(tensor(&wd, 4, w, weight(type)));
    TRY(tensor(&bd, 1, b, type == PEER_F32 ? dnnl_f32 : dnnl_s32));
    TRY(tensor(&yd, 4, y, input(type)));
    return check(dnnl_convolution_forward_desc_init(op, dnnl_forward_inference,
                                                    dnnl_convolution_auto, &xd, &wd, &bd, &yd,
                                                    strides, begin, end),
                 "describe a convolution");
}

// A tensor of [batch][rows][columns], or without batch if it is 1.
static Err matrices(dnnl_memory_desc_t *md, uint32_t batch, uint32_t rows, uint32_t columns,
                    dnnl_data_type_t type) {
    const dnnl_dims_t one = {rows, columns}, several = {batch, rows, columns};
    return batch == 1 ? tensor(md, 2, one, type) : tensor(md, 3, several, type);
}

static Err gemm_op(const GemmShape *s, PeerType type, dnnl_matmul_desc_t *op) {
    const uint32_t     batch = gemm_batch_count(s);
    dnnl_memory_desc_t ad, bd, yd;
    TRY(matrices(&ad, batch, s->m, s->k, input(type)));
    TRY(matrices(&bd, batch, s->k, s->n, weight(type)));
    TRY(matrices(&yd, batch, s->m, s->n, input(type)));
    return check(dnnl_matmul_desc_init(op, &ad, &bd, NULL, &yd), "describe a product");
}

static Err create(const_dnnl_op_desc_t op, PeerType type, bool relu, Peer **out) {
    dnnl_primitive_attr_t attr = NULL;
    Err                   e = start(out);
    if (e == ERR_OK) e = attributes(type, relu, &attr);
    if (e == ERR_OK) e = finish(*out, op, attr);
    if (attr != NULL) (void)dnnl_primitive_attr_destroy(attr);
    if (e == ERR_OK) return e;
    peer_free(*out);
    *out = NULL;
    return e;
}

Err peer_conv(const ConvShape *s, PeerType type, Peer **out) {
    dnnl_convolution_desc_t op;
    *out = NULL;
    TRY(conv_op(s, type, &op));
    return create(&op, type, true, out);
}

Err peer_gemm(const GemmShape *s, PeerType type, Peer **out) {
    dnnl_matmul_desc_t op;
    *out = NULL;
    TRY(gemm_op(s, type, &op));
    return create(&op, type, false, out);
}

Err peer_run(Peer *p) {
    TRY(check(dnnl_primitive_execute(p->primitive, p->stream, p->n_args, p->args), "run"));
    return check(dnnl_stream_wait(p->stream), "end a run");
}

const char *peer_implementation(const Peer *p) { return p->implementation; }

void peer_free(Peer *p) {
    if (p == NULL) return;
    for (int i = 0; i < p->n_args; i++) (void)dnnl_memory_destroy(p->memory[i]);
    if (p->primitive != NULL) (void)dnnl_primitive_destroy(p->primitive);
    if (p->desc != NULL) (void)dnnl_primitive_desc_destroy(p->desc);
    if (p->stream != NULL) (void)dnnl_stream_destroy(p->stream);
    if (p->engine != NULL) (void)dnnl_engine_destroy(p->engine);
    free(p);
}
