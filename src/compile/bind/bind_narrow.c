// Weights of products that the file has as floats, kept in 16 or 8 bits (ProgramOptions.weights).
//
// What is rounded are the weights as the kernel applies them: with alpha, and with a scale per
// channel that was fused into them. Programs of a model for several shapes share the packed form
// and the largest weight, so that only the first one reads the weights.
#include <math.h>

#include "compile/bind/bind.h"
#include "compile/spec.h"
#include "kernel/narrow_rounding.h"
#include "model/op.h"

enum { LISTED_BYTES = 4096 };  // other constants below this are not worth a row

static const float HALF_MOST = 65504;

static const GemmWeights forms[] = {
#define X(id, name, form) form,
#include "compile/weight_width.def"
#undef X
};

static FloatWeights float_weights(Binder *b, const GemmSpec *spec) {
    size_t k = (size_t)spec->k;
    return (FloatWeights){.at = spec->transposed ? bind_scaled(b, &spec->channels, k, 1)
                                                 : bind_scaled(b, &spec->channels, 1, k),
                          .transposed = spec->transposed,
                          .alpha = spec->alpha};
}

static PackKey narrow_key(const Binder *b, const char *form, const GemmSpec *spec) {
    PackKey key = bind_pack_key(b, form, &spec->channels);
    key.sizes[2] = (uint32_t)spec->k;
    key.sizes[3] = spec->transposed;
    key.sizes[4] = (uint32_t)b->width;
    key.alpha = spec->alpha;
    return key;
}

// The largest weight is kept among the packed forms, for programs of other shapes.
static Err largest_weight(Binder *b, const GemmSpec *spec, float *out) {
    PackKey key = narrow_key(b, "largest", spec);
    float  *most = NULL;
    bool    made = false;
    TRY(bind_packed(b, &key, sizeof *most, &most, &made));
    if (!made) {
        size_t       mark = b->ir->arena->used;
        FloatWeights w = float_weights(b, spec);
        *most = narrow_largest(&w, (size_t)spec->n * (size_t)spec->k);
        arena_rewind(b->ir->arena, mark);
    }
    bind_packed_made(b);
    *out = *most;
    return ERR_OK;
}

// Bits of the weights if nothing is narrowed; a fused scale makes floats of halves.
static uint32_t bits_as_given(const GemmSpec *spec) {
    GemmShape s = {.weights = spec->weights};
    if (spec->half != NULL && spec->channels.scale != NULL) s.weights = GEMM_F32;
    return narrow_bits(&s);
}

Err bind_narrow_choose(Binder *b, const GemmSpec *spec, GemmShape *shape, const char **kept) {
    GemmShape narrow = {.weights = forms[b->width]};
    float     most = 0;
    *kept = "they are as narrow in the file";
    if (narrow_bits(&narrow) >= bits_as_given(spec)) return ERR_OK;
    *kept = "they are no floats in the file";
    if (ir_floats(b->ir, spec->channels.weight) == NULL) return ERR_OK;
    if (!b->ir->shape_only) TRY(largest_weight(b, spec, &most));
    *kept = "some are not finite";
    if (!isfinite(most)) return ERR_OK;
    *kept = "some are beyond the range of float16";
    if (narrow.weights == GEMM_F16 && most > HALF_MOST) return ERR_OK;
    *kept = NULL;
    shape->packed = false;
    shape->weights = narrow.weights;
    shape->zeros = false;
    shape->block = narrow.weights == GEMM_U8 ? narrow_block_size(shape->k) : 0;
    return ERR_OK;
}

static void set_error(LayerWeights *row, NarrowError e) {
    row->max_error = e.max;
    row->rms_error = e.rms;
}

Err bind_narrow_pack(Binder *b, const GemmSpec *spec, const GemmShape *shape, LayerWeights *row,
                     const void **out) {
    PackKey key = narrow_key(b, "narrow gemm", spec);
    float  *packed = NULL;
    bool    made = false;
    size_t  bytes = narrow_pack_bytes(shape, b->isa);
    TRY(bind_packed(b, &key, bytes, &packed, &made));
    if (!made || row != NULL) {
        FloatWeights   w = float_weights(b, spec);
        RoundedWeights r = narrow_round(shape, &w, b->ir->arena);
        if (!made) narrow_pack_rounded(shape, &w, &r, b->isa, packed);
        if (row != NULL) set_error(row, narrow_error(shape, &w, &r));
    }
    bind_packed_made(b);
    if (row != NULL) row->packed_bytes = bytes;
    *out = packed;
    return ERR_OK;
}

LayerWeights *bind_narrow_row(const Binder *b, const Step *s, size_t file_bytes, const char *kept) {
    LayerWeights row = {.name = s->name,
                        .op = s->node != NULL ? op_info(s->node->op)->name : "",
                        .kept = kept,
                        .file_bytes = file_bytes};
    return b->width != WEIGHTS_FP32 ? weight_report_add(b->report, &row) : NULL;
}

static size_t constant_bytes(const Binder *b, uint32_t value) {
    const Tensor *t = ir_type(b->ir, value);
    return (size_t)tensor_count(t) * dtype_size(t->dtype);
}

static size_t rnn_bytes(const GatedRnnShape *s) {
    size_t gates = s->kind == GATED_RNN_LSTM ? 4 : 3;
    return s->directions * gates * s->hidden * ((size_t)s->input + s->hidden) * sizeof(float);
}

// Products have rows of their own.
void bind_narrow_list(const Binder *b, const IrLayer *l, const Step *s) {
    if (b->report == NULL || l->kind == IR_GEMM) return;
    if (l->kind == IR_CONV || l->kind == IR_DEPTHWISE || l->kind == IR_DECONV)
        (void)bind_narrow_row(b, s, constant_bytes(b, s->weight),
                              "convolution kernels read 32-bit weights");
    else if (l->kind == IR_RNN)
        (void)bind_narrow_row(b, s, rnn_bytes(&((const RnnSpec *)l->spec)->shape),
                              "recurrent kernels read 32-bit weights");
    else if (l->kind == IR_MATMUL && s->const_bytes >= LISTED_BYTES)
        (void)bind_narrow_row(b, s, s->const_bytes, "a constant operand of several matrices");
    else if (l->kind == IR_GATHER && s->const_bytes >= LISTED_BYTES)
        (void)bind_narrow_row(b, s, s->const_bytes, "a table, of which a run reads few rows");
    else if (l->kind == IR_REF && s->const_bytes >= LISTED_BYTES)
        (void)bind_narrow_row(b, s, s->const_bytes, "computed by a reference kernel");
}
