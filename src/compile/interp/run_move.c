// Operators that move, pad and create elements; views of tensors.
#include <string.h>

#include "base/tensor.h"
#include "base/work_stop.h"
#include "compile/interp/run_ops.h"
#include "kernel/nd_iter.h"
#include "kernel/ref/ref_copy.h"
#include "model/infer/infer_params.h"

Err run_reshape(const OpCall *c, Tensor *out) { return run_same(c, out); }
Err run_flatten(const OpCall *c, Tensor *out) { return run_same(c, out); }
Err run_squeeze(const OpCall *c, Tensor *out) { return run_same(c, out); }
Err run_unsqueeze(const OpCall *c, Tensor *out) { return run_same(c, out); }

static void copy_all(const Tensor *shape, RefStrided to, RefStrided from) {
    ref_copy(shape->rank, shape->dims, dtype_size(shape->dtype), to, from);
}

Err run_transpose(const OpCall *c, Tensor *out) {
    int32_t perm[TENSOR_MAX_RANK];
    Tensor  shape;
    TRY(infer_transpose_perm(c, &shape, perm));
    RefStrided whole = ref_strided(c->in[0]), from = whole;
    for (int32_t i = 0; i < shape.rank; i++) from.stride[i] = whole.stride[perm[i]];
    copy_all(out, ref_strided(out), from);
    return ERR_OK;
}

Err run_expand(const OpCall *c, Tensor *out) {
    const Tensor *x = c->in[0];
    RefStrided    whole = ref_strided(x), from = {.data = x->data};
    for (int32_t i = 0, lead = out->rank - x->rank; i < x->rank; i++)
        from.stride[lead + i] = x->dims[i] == 1 ? 0 : whole.stride[i];
    copy_all(out, ref_strided(out), from);
    return ERR_OK;
}

Err run_slice(const OpCall *c, Tensor *out) {
    SliceParams s;
    Tensor      shape;
    TRY(infer_slice_params(c, &shape, &s));
    RefStrided from = ref_strided(c->in[0]);
    for (int32_t i = 0; i < shape.rank; i++) {
        from.start += s.start[i] * from.stride[i];
        from.stride[i] *= s.step[i];
    }
    copy_all(out, ref_strided(out), from);
    return ERR_OK;
}

Err run_split(const OpCall *c, Tensor *out) {
    int32_t    axis = 0;
    RefStrided from = ref_strided(c->in[0]);
    TRY(infer_axis(attr_int(c->node, "axis", 0), c->in[0]->rank, &axis));
    for (uint32_t i = 0; i < c->node->n_out; i++) {
        copy_all(&out[i], ref_strided(&out[i]), from);
        from.start += out[i].dims[axis] * from.stride[axis];
    }
    return ERR_OK;
}

Err run_concat(const OpCall *c, Tensor *out) {
    int32_t    axis = 0;
    RefStrided to = ref_strided(out);
    TRY(infer_axis(attr_int(c->node, "axis", 1), out->rank, &axis));
    for (uint32_t i = 0; i < c->node->n_in; i++) {
        copy_all(c->in[i], to, ref_strided(c->in[i]));
        to.start += c->in[i]->dims[axis] * to.stride[axis];
    }
    return ERR_OK;
}

// Index tables, one per axis of y. An empty y may have long axes: its callers need none.
static Err index_tables_for(const OpCall *c, const Tensor *y, int64_t **index) {
    for (int32_t i = 0; i < y->rank; i++) {
        index[i] = arena_try_new(c->scratch, int64_t, (size_t)y->dims[i]);
        if (index[i] == NULL)
            return err_set(ERR_LIMIT, "no memory for the indexes of dimension %d", i);
    }
    return ERR_OK;
}

static Err pad_with(const OpCall *c, RefPad mode, const PadParams *p, const void *fill,
                    Tensor *out) {
    int64_t *index[TENSOR_MAX_RANK];
    if (tensor_count(out) == 0) return ERR_OK;
    TRY(index_tables_for(c, out, index));
    for (int32_t i = 0; i < out->rank; i++)
        ref_take_pad(mode, (RefPadAxis){p->begin[i], p->drop[i], p->kept[i]}, index[i],
                     out->dims[i]);
    TRY(work_stop_check());  // unfinished tables hold indexes that x may not have
    ref_take(c->in[0], index, fill, out);
    return ERR_OK;
}

static RefPad pad_mode(const Node *n) {
    if (attr_is(n, "mode", "edge", false)) return REF_PAD_EDGE;
    if (attr_is(n, "mode", "reflect", false)) return REF_PAD_REFLECT;
    return attr_is(n, "mode", "wrap", false) ? REF_PAD_WRAP : REF_PAD_CONSTANT;
}

// The padding element: of an input or attribute, else zero or the empty string.
typedef union PadValue {
    Str     text;
    int64_t bytes[2];
} PadValue;

static PadValue pad_value_of(DType type, float value) {
    PadValue f = {.bytes = {0}};
    if (type == DT_STR) f.text = (Str){"", 0};
    Tensor one = tensor_of(type, 0, NULL, &f);
    if (dtype_is_number(type)) tensor_set(&one, 0, (double)value);
    return f;
}

Err run_pad(const OpCall *c, Tensor *out) {
    PadParams     p;
    Tensor        shape;
    PadValue      none = pad_value_of(out->dtype, attr_float(c->node, "value", 0));
    const Tensor *value = infer_input(c, 2);
    TRY(infer_pad_params(c, &shape, &p));
    return pad_with(c, pad_mode(c->node), &p, value != NULL ? value->data : &none, out);
}

Err run_crop(const OpCall *c, Tensor *out) {
    PadParams p;
    Tensor    shape;
    PadValue  none = pad_value_of(out->dtype, 0);
    TRY(infer_crop_params(c, &shape, &p));
    return pad_with(c, REF_PAD_CONSTANT, &p, &none, out);
}

Err run_tile(const OpCall *c, Tensor *out) {
    int64_t *index[TENSOR_MAX_RANK];
    if (tensor_count(out) == 0) return ERR_OK;
    TRY(index_tables_for(c, out, index));
    for (int32_t i = 0; i < out->rank; i++)
        ref_take_tile(c->in[0]->dims[i], index[i], out->dims[i]);
    TRY(work_stop_check());
    ref_take(c->in[0], index, NULL, out);
    return ERR_OK;
}

// DepthToSpace and SpaceToDepth permute six dimensions. order[i]: which dimension of the image (N,
// C, h, bh, w, bw) is dimension i of the deep side.
static void permute_blocks(const OpCall *c, const int *order, const Tensor *image,
                           const Tensor *deep, bool to_deep, Tensor *out) {
    int64_t    b = attr_int(c->node, "blocksize", 1), dims[6], stride[6];
    int64_t    wide[6] = {image->dims[0], image->dims[1], deep->dims[2], b, deep->dims[3], b};
    RefStrided deep_side = {.data = deep->data}, image_side = {.data = image->data};
    nd_iter_contiguous(6, wide, stride);
    for (int i = 0; i < 6; i++) {
        dims[i] = wide[order[i]];
        image_side.stride[i] = stride[order[i]];
    }
    nd_iter_contiguous(6, dims, deep_side.stride);
    ref_copy(6, dims, dtype_size(out->dtype), to_deep ? deep_side : image_side,
             to_deep ? image_side : deep_side);
}

Err run_depth_to_space(const OpCall *c, Tensor *out) {
    static const int depth_first[6] = {0, 3, 5, 1, 2, 4}, column_first[6] = {0, 1, 3, 5, 2, 4};
    bool             crd = attr_is(c->node, "mode", "CRD", false);
    permute_blocks(c, crd ? column_first : depth_first, out, c->in[0], false, out);
    return ERR_OK;
}

Err run_space_to_depth(const OpCall *c, Tensor *out) {
    static const int order[6] = {0, 3, 5, 1, 2, 4};
    permute_blocks(c, order, c->in[0], out, true, out);
    return ERR_OK;
}

Err run_reverse_sequence(const OpCall *c, Tensor *out) {
    return ref_reverse(c->in[0], c->in[1], attr_int(c->node, "batch_axis", 1) == 0, out);
}

// Operators that create tensors.

Err run_shape(const OpCall *c, Tensor *out) {
    int32_t first = 0;
    Tensor  shape;
    TRY(infer_shape_start(c, &shape, &first));
    for (int64_t i = 0; i < shape.dims[0]; i++)
        ((int64_t *)out->data)[i] = c->in[0]->dims[first + i];
    return ERR_OK;
}

Err run_size(const OpCall *c, Tensor *out) {
    ((int64_t *)out->data)[0] = tensor_count(c->in[0]);
    return ERR_OK;
}

Err run_constant_of_shape(const OpCall *c, Tensor *out) {
    const Tensor *value = attr_tensor(c->node, "value");
    if (value != NULL) ref_fill(value->data, out);
    return ERR_OK;
}

Err run_eye_like(const OpCall *c, Tensor *out) {
    ref_eye(attr_int(c->node, "k", 0), out);
    return ERR_OK;
}

Err run_range(const OpCall *c, Tensor *out) {
    ref_range(c->in[0], c->in[2], out);
    return ERR_OK;
}

Err run_one_hot(const OpCall *c, Tensor *out) {
    OneHotParams h;
    Tensor       shape;
    TRY(infer_one_hot_params(c, &shape, &h));
    RefOneHot p = {h.outer, h.depth, h.inner, c->node->version >= 11};
    ref_one_hot(&p, c->in[0], c->in[2], out);
    return ERR_OK;
}

Err run_trilu(const OpCall *c, Tensor *out) {
    int64_t k = 0;
    bool    known = true;
    TRY(infer_int_input(c, 1, &k, &known));
    ref_triangle(c->in[0], attr_int(c->node, "upper", 1) != 0, k, out);
    return ERR_OK;
}

Tensor run_column(const Tensor *t, int32_t ones) {
    Tensor v = *t;
    if (tensor_count(t) == 1) {
        v.rank = 0;
    } else if (t->rank == 1) {
        v.rank = 1 + ones;
        for (int32_t i = 1; i < v.rank; i++) v.dims[i] = 1;
    }
    return v;
}

Tensor run_matrix(const Tensor *t, bool left) {
    Tensor v = *t;
    if (t->rank != 1) return v;
    v.rank = 2;
    v.dims[left ? 0 : 1] = 1;
    v.dims[left ? 1 : 0] = t->dims[0];
    return v;
}

Err run_alloc(const OpCall *c, const Tensor *t, DType type, Tensor *out) {
    *out = *t;
    out->dtype = type;
    return tensor_alloc(out, c->scratch);
}

Err run_alloc_f64(const OpCall *c, const Tensor *t, Tensor *out) {
    return run_alloc(c, t, DT_F64, out);
}
