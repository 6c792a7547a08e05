// Attention written out in elementary operators becomes one layer: softmax(q k * scale + mask) v,
// with the transposes around it as strides.
#include <math.h>

#include "compile/lower/lower.h"
#include "compile/spec.h"
#include "kernel/fused_attention.h"
#include "kernel/normalize.h"
#include "model/infer/infer_params.h"

enum { MAX_RANK = 4 };

// The source if `value` = p * source (multiplies *scale by p), else IR_NONE.
static uint32_t scaled_source(const Ir *ir, uint32_t value, float *scale) {
    const IrLayer *l = fuse_one_step(ir, value, EWISE_AFFINE);
    if (l == NULL || l->expr.steps[0].q != 0 || !isfinite(l->expr.steps[0].p)) return IR_NONE;
    if (!tensor_same_shape(ir_type(ir, l->expr.args[0]), ir_type(ir, value))) return IR_NONE;
    *scale *= l->expr.steps[0].p;
    return l->expr.args[0];
}

static bool perm_of(const Ir *ir, const IrLayer *l, int32_t *perm) {
    if (l == NULL || l->node == NULL || l->node->op != OP_Transpose) return false;
    const Tensor *in[1] = {ir_type(ir, l->in[0])};
    OpCall        c = {.node = l->node, .in = in};
    Tensor        out;
    return infer_transpose_perm(&c, &out, perm) == ERR_OK;
}

// An operand of a product: its dimension i is dimension axis[i] of `value`, and it is scaled.
typedef struct Source {
    uint32_t value;
    int32_t  axis[MAX_RANK];
    float    scale;
} Source;

// Replaces the source by the input of the transpose or scaling that produced it.
static bool step_back(const Ir *ir, Source *s, bool scaled) {
    int32_t        rank = ir_type(ir, s->value)->rank, perm[TENSOR_MAX_RANK];
    const IrLayer *l = ir_producer(ir, s->value, IR_COPY);
    if (perm_of(ir, l, perm)) {
        for (int32_t i = 0; i < rank; i++) s->axis[i] = perm[s->axis[i]];
        s->value = l->in[0];
        return true;
    }
    uint32_t from = scaled ? scaled_source(ir, s->value, &s->scale) : IR_NONE;
    if (from != IR_NONE) s->value = from;
    return from != IR_NONE;
}

static size_t stride_of(const Tensor *t, int32_t axis) {
    size_t s = 1;
    for (int32_t i = axis + 1; i < t->rank; i++) s *= (size_t)t->dims[i];
    return s;
}

// Strides of batch, head and `step`, if dimension `inner` is contiguous.
static bool strides_of(const Ir *ir, const Source *s, int32_t step, int32_t inner,
                       AttentionStrides *out) {
    const Tensor *t = ir_type(ir, s->value);
    size_t        stride[MAX_RANK] = {0};
    for (int32_t i = 0; i < t->rank; i++) stride[i] = stride_of(t, s->axis[i]);
    if (stride[inner] != 1 && t->dims[s->axis[inner]] != 1) return false;
    for (int32_t i = 0; i < t->rank - 2; i++)
        if (t->dims[s->axis[i]] == 1) stride[i] = 0;
    *out = (AttentionStrides){stride[0], t->rank == 4 ? stride[1] : 0, stride[step]};
    return true;
}

// The earliest source that strides can express; the value itself always can. Only keys may be
// transposed: *transposed tells.
static Source find_source(const Ir *ir, uint32_t value, bool scaled, bool *transposed,
                          AttentionStrides *side) {
    Source  s = {value, {0, 1, 2, 3}, 1}, best = s;
    int32_t last = ir_type(ir, value)->rank - 1;
    do {
        if (strides_of(ir, &s, last - 1, last, side)) {
            best = s;
            if (transposed != NULL) *transposed = true;
        } else if (transposed != NULL && strides_of(ir, &s, last, last - 1, side)) {
            best = s;
            *transposed = false;
        }
    } while (step_back(ir, &s, scaled));
    return best;
}

typedef struct AttentionMatch {
    uint32_t scores, mask, v;
    float    scale, otherwise;
    bool     chosen;  // the mask chooses between the scores and `otherwise`
} AttentionMatch;

static const IrLayer *batched_matmul(const Ir *ir, uint32_t value) {
    const IrLayer *l = ir_producer(ir, value, IR_MATMUL);
    if (l == NULL || l->expr.n_steps != 0) return NULL;
    int32_t rank = ir_type(ir, value)->rank;
    if (rank < 3 || rank > MAX_RANK || tensor_count(ir_type(ir, value)) == 0) return NULL;
    return ir_type(ir, l->in[0])->rank == rank && ir_type(ir, l->in[1])->rank == rank ? l : NULL;
}

static bool find_scores(const Ir *ir, uint32_t value, AttentionMatch *f) {
    f->scale = 1;
    f->scores = value;
    for (uint32_t next = value; next != IR_NONE; next = scaled_source(ir, next, &f->scale)) {
        if (!ir_has_one_use(ir, next)) return false;
        f->scores = next;
    }
    return batched_matmul(ir, f->scores) != NULL;
}

// True if the mask has all keys and broadcasts to the scores.
static bool is_mask(const Tensor *mask, const Tensor *scores) {
    int32_t lead = scores->rank - mask->rank;
    if (mask->dtype != DT_F32 || lead < 0 || mask->rank < 1) return false;
    if (mask->dims[mask->rank - 1] != scores->dims[scores->rank - 1]) return false;
    for (int32_t i = 0; i < mask->rank; i++)
        if (mask->dims[i] != 1 && mask->dims[i] != scores->dims[i + lead]) return false;
    return true;
}

static bool find_chosen(const Ir *ir, const IrLayer *l, AttentionMatch *f) {
    if (!ir_has_one_use(ir, l->out[0]) || l->expr.n_args != 2) return false;
    f->mask = l->expr.args[1];
    f->chosen = true;
    f->otherwise = l->expr.steps[0].p;
    return find_scores(ir, l->expr.args[0], f) &&
           tensor_same_shape(ir_type(ir, f->scores), ir_type(ir, l->out[0])) &&
           is_mask(ir_type(ir, f->mask), ir_type(ir, l->out[0]));
}

static bool find_masked(const Ir *ir, uint32_t value, AttentionMatch *f) {
    const IrLayer *l = fuse_one_step(ir, value, EWISE_WHERE);
    f->mask = IR_NONE;
    f->chosen = false;
    if (l != NULL) return find_chosen(ir, l, f);
    l = fuse_one_step(ir, value, EWISE_ADD);
    if (l == NULL) return find_scores(ir, value, f);
    if (!ir_has_one_use(ir, value) || l->expr.n_args != 2) return false;
    for (uint32_t i = 0; i < 2; i++) {
        f->mask = l->expr.args[1 - i];
        if (find_scores(ir, l->expr.args[i], f) &&
            tensor_same_shape(ir_type(ir, f->scores), ir_type(ir, value)) &&
            is_mask(ir_type(ir, f->mask), ir_type(ir, value)))
            return true;
    }
    return false;
}

static bool find_attention(const Ir *ir, uint32_t value, AttentionMatch *f) {
    const IrLayer *y = batched_matmul(ir, value);
    if (y == NULL || !ir_has_one_use(ir, y->in[0]) || y->in[0] == y->in[1]) return false;
    const IrLayer *row = ir_producer(ir, y->in[0], IR_NORMALIZE);
    if (row == NULL) return false;
    const Normalize *r = row->spec;
    const Tensor    *shares = ir_type(ir, y->in[0]), *out = ir_type(ir, value);
    if (r->op != NORMALIZE_SOFTMAX || r->inner != 1 ||
        r->n != (size_t)shares->dims[shares->rank - 1])
        return false;
    for (int32_t i = 0; i < out->rank - 2; i++)
        if (out->dims[i] != shares->dims[i]) return false;
    f->v = y->in[1];
    return find_masked(ir, row->in[0], f);
}

static AttentionStrides mask_side(const Tensor *mask, int32_t rank) {
    size_t stride[MAX_RANK] = {0};
    for (int32_t i = 0; i < mask->rank; i++)
        if (mask->dims[i] != 1) stride[rank - mask->rank + i] = stride_of(mask, i);
    return (AttentionStrides){stride[0], rank == 4 ? stride[1] : 0, stride[rank - 2]};
}

static void fill_sizes(const Ir *ir, const AttentionMatch *f, FusedAttentionShape *s) {
    const Tensor  *scores = ir_type(ir, f->scores), *v = ir_type(ir, f->v);
    const IrLayer *l = batched_matmul(ir, f->scores);
    int32_t        rank = scores->rank;
    s->batch = (uint32_t)scores->dims[0];
    s->heads = s->kv_heads = rank == 4 ? (uint32_t)scores->dims[1] : 1;
    s->queries = (uint32_t)scores->dims[rank - 2];
    s->keys = (uint32_t)scores->dims[rank - 1];
    s->size = (uint32_t)ir_type(ir, l->in[0])->dims[rank - 1];
    s->v_size = (uint32_t)v->dims[rank - 1];
    if (f->mask != IR_NONE) s->mask = mask_side(ir_type(ir, f->mask), rank);
    s->chosen = f->chosen;
    s->otherwise = f->otherwise;
}

// If the only use of the result is a transpose, the layer writes the transposed result.
static void take_transpose(Ir *ir, uint32_t at, AttentionStrides *y) {
    IrLayer *l = &ir->layers[at];
    int32_t  perm[TENSOR_MAX_RANK], rank = ir_type(ir, l->out[0])->rank;
    if (!ir_has_one_use(ir, l->out[0])) return;
    for (uint32_t i = at + 1; i < ir->n_layers; i++) {
        IrLayer *move = &ir->layers[i];
        if (move->dead || move->kind != IR_COPY || move->in[0] != l->out[0]) continue;
        if (!perm_of(ir, move, perm)) return;
        Source s = {.value = move->out[0]};
        for (int32_t k = 0; k < rank; k++) s.axis[perm[k]] = k;
        if (!strides_of(ir, &s, rank - 2, rank - 1, y)) return;
        l->out[0] = s.value;
        ir->values[s.value].producer = at;
        move->dead = true;
        return;
    }
}

static void replace_by_attention(Ir *ir, uint32_t at, const AttentionMatch *f) {
    const IrLayer       *scores = batched_matmul(ir, f->scores);
    IrLayer             *l = &ir->layers[at];
    FusedAttentionShape *s = arena_new(ir->arena, FusedAttentionShape, 1);
    uint32_t            *in = arena_new(ir->arena, uint32_t, ATTENTION_OPERANDS);
    Source q = find_source(ir, scores->in[0], true, NULL, &s->q), y = {l->out[0], {0, 1, 2, 3}, 1};
    Source k = find_source(ir, scores->in[1], true, &s->k_transposed, &s->k);
    Source v = find_source(ir, f->v, false, NULL, &s->v);
    fill_sizes(ir, f, s);
    s->scale = f->scale * q.scale * k.scale;
    int32_t rank = ir_type(ir, y.value)->rank;
    strides_of(ir, &y, rank - 2, rank - 1, &s->y);
    in[ATTENTION_Q] = q.value, in[ATTENTION_K] = k.value, in[ATTENTION_V] = v.value;
    in[ATTENTION_MASK] = f->mask, in[ATTENTION_LENGTHS] = IR_NONE;
    *l = (IrLayer){.kind = IR_ATTENTION,
                   .node = l->node,
                   .n_in = ATTENTION_OPERANDS,
                   .n_out = 1,
                   .in = in,
                   .out = l->out,
                   .spec = s};
    take_transpose(ir, at, &s->y);
}

void fuse_attention(Ir *ir) {
    ir_count_uses(ir);
    for (uint32_t i = 0; i < ir->n_layers; i++) {
        const IrLayer *l = &ir->layers[i];
        AttentionMatch f;
        if (!l->dead && l->kind == IR_MATMUL && find_attention(ir, l->out[0], &f))
            replace_by_attention(ir, i, &f);
    }
    ir_remove_dead(ir);
}
