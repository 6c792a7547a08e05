// Slice, Split, Concat, Pad, CenterCropPad, Tile, DepthToSpace, SpaceToDepth, ReverseSequence.
#include <inttypes.h>
#include <string.h>

#include "base/tensor.h"
#include "model/infer/infer_params.h"

static int64_t clamp_to(int64_t v, int64_t low, int64_t high) {
    return v < low ? low : v > high ? high : v;
}

// The number of indices from start to end, both clamped; step is any value.
static int64_t slice_count(int64_t start, int64_t end, int64_t step) {
    int64_t  span = step > 0 ? end - start : start - end;
    uint64_t size = step > 0 ? (uint64_t)step : 0 - (uint64_t)step;
    if (span <= 0 || size == 0) return 0;
    return (int64_t)(((uint64_t)span - 1) / size) + 1;
}

static void slice_axis(int64_t start, int64_t end, int64_t step, int32_t axis, Tensor *out,
                       SliceParams *s) {
    int64_t dim = out->dims[axis], back = step < 0 ? 1 : 0;
    start = clamp_to(start < 0 ? start + dim : start, 0, dim - back);
    end = clamp_to(end < 0 ? end + dim : end, -back, dim - back);
    out->dims[axis] = dim == 0 ? 0 : slice_count(start, end, step);
    s->start[axis] = out->dims[axis] > 0 ? start : 0;
    s->step[axis] = out->dims[axis] > 1 ? step : 1;
}

Err infer_slice_params(const OpCall *c, Tensor *out, SliceParams *s) {
    IntList  starts, ends, list, steps;
    int32_t  axes[TENSOR_MAX_RANK];
    uint32_t n = 0;
    TRY(infer_check_type(c->in[0], TYPES_TENSOR, "data"));
    TRY(infer_int_list(c, 1, "starts", &starts));
    TRY(infer_int_list(c, 2, "ends", &ends));
    TRY(infer_int_list(c, 3, "axes", &list));
    TRY(infer_int_list(c, 4, "steps", &steps));
    if (!starts.given || !ends.given) return err_set(ERR_INVALID, "starts or ends is missing");
    *out = infer_like(c->in[0]);
    if (!starts.known || !ends.known || !list.known || !steps.known)
        return infer_unknown_shape(out);
    TRY(infer_axes(&list, out->rank, axes, &n));
    if (!list.given && starts.n < n) n = starts.n;
    if (starts.n != n || ends.n != n || (steps.given && steps.n != n))
        return err_set(ERR_INVALID, "starts, ends, axes and steps differ in length");
    for (int32_t i = 0; i < out->rank; i++) s->start[i] = 0, s->step[i] = 1;
    for (uint32_t i = 0; i < n; i++) {
        int64_t step = steps.given ? steps.v[i] : 1;
        if (step == 0) return err_set(ERR_INVALID, "a step is 0");
        slice_axis(starts.v[i], ends.v[i], step, axes[i], out, s);
    }
    return ERR_OK;
}

Err infer_slice(const OpCall *c, Tensor *out) {
    SliceParams s;
    return infer_slice_params(c, out, &s);
}

Err infer_concat_dim(const Tensor *t, int32_t axis, Tensor *out) {
    if (t->dtype != out->dtype)
        return err_set(ERR_INVALID, "concatenates types %s and %s", dtype_name(out->dtype),
                       dtype_name(t->dtype));
    if (t->rank != out->rank)
        return err_set(ERR_INVALID, "concatenates ranks %d and %d", out->rank, t->rank);
    for (int32_t i = 0; i < t->rank; i++)
        if (i != axis && t->dims[i] != out->dims[i])
            return err_set(ERR_INVALID,
                           "concatenates sizes %" PRId64 " and %" PRId64 " in dimension %d",
                           out->dims[i], t->dims[i], i);
    if (__builtin_add_overflow(out->dims[axis], t->dims[axis], &out->dims[axis]))
        return err_set(ERR_LIMIT, "the concatenated dimension exceeds 64 bits");
    return ERR_OK;
}

Err infer_concat(const OpCall *c, Tensor *out) {
    int32_t axis = 0;
    TRY(infer_check_type(c->in[0], TYPES_TENSOR, "data"));
    if (c->node->version >= 4 && !attr_has(c->node, "axis"))
        return err_set(ERR_INVALID, "axis is missing");
    TRY(infer_axis(attr_int(c->node, "axis", 1), c->in[0]->rank, &axis));
    *out = infer_like(c->in[0]);
    for (uint32_t i = 1; i < c->node->n_in; i++) {
        TRY(infer_present(c, i));
        TRY(infer_concat_dim(c->in[i], axis, out));
    }
    return ERR_OK;
}

static Err split_given(const OpCall *c, const Tensor *sizes, int32_t axis, Tensor *out) {
    uint32_t       n = 0;
    const int64_t *attr = attr_ints(c->node, "split", &n);
    int64_t        total = 0, count = sizes != NULL ? tensor_count(sizes) : (int64_t)n;
    if (count < (int64_t)c->node->n_out)
        return err_set(ERR_INVALID, "split has %" PRId64 " sizes for %u outputs", count,
                       c->node->n_out);
    for (int64_t i = 0; i < count; i++) {
        int64_t v = sizes == NULL            ? attr[i]
                    : sizes->dtype == DT_I32 ? ((const int32_t *)sizes->data)[i]
                                             : ((const int64_t *)sizes->data)[i];
        if (v < 0 || v > c->in[0]->dims[axis] - total)
            return err_set(ERR_INVALID, "size %" PRId64 " of part %" PRId64 " exceeds the input", v,
                           i);
        total += v;
        if (i < (int64_t)c->node->n_out) out[i].dims[axis] = v;
    }
    if (total == c->in[0]->dims[axis]) return ERR_OK;
    return err_set(ERR_INVALID, "the parts cover %" PRId64 " of %" PRId64 " elements", total,
                   c->in[0]->dims[axis]);
}

// From operator set 18 on the last part may be smaller.
static Err split_evenly(const OpCall *c, int32_t axis, Tensor *out) {
    int64_t parts = attr_int(c->node, "num_outputs", (int64_t)c->node->n_out);
    int64_t dim = c->in[0]->dims[axis];
    if (parts < (int64_t)c->node->n_out)
        return err_set(ERR_INVALID, "num_outputs is %" PRId64 " but there are %u outputs", parts,
                       c->node->n_out);
    if (dim % parts != 0 && c->node->version < 18)
        return err_set(ERR_INVALID, "%" PRId64 " elements do not split into %" PRId64, dim, parts);
    int64_t each = dim / parts + (dim % parts != 0), left = dim;
    for (uint32_t i = 0; i < c->node->n_out; i++) {
        out[i].dims[axis] = left < each ? left : each;
        left -= out[i].dims[axis];
    }
    return ERR_OK;
}

Err infer_split_axis(const OpCall *c, Tensor *out, int32_t *axis) {
    const Tensor *sizes = infer_input(c, 1);
    TRY(infer_check_type(c->in[0], TYPES_TENSOR, "data"));
    TRY(infer_axis(attr_int(c->node, "axis", 0), c->in[0]->rank, axis));
    if (sizes != NULL) TRY(infer_check_type(sizes, TYPES_INDEX, "split"));
    bool wait = sizes != NULL && !infer_has_data(sizes);
    for (uint32_t i = 0; i < c->node->n_out; i++) {
        out[i] = infer_like(c->in[0]);
        if (wait) out[i].rank = RANK_UNKNOWN;
    }
    if (wait) return ERR_OK;
    bool given = sizes != NULL || attr_has(c->node, "split");
    return given ? split_given(c, sizes, *axis, out) : split_evenly(c, *axis, out);
}

Err infer_split(const OpCall *c, Tensor *out) {
    int32_t axis = 0;
    return infer_split_axis(c, out, &axis);
}

static void no_padding(const Tensor *x, Tensor *out, PadParams *p) {
    *out = infer_like(x);
    for (int32_t i = 0; i < x->rank; i++) p->begin[i] = p->drop[i] = 0, p->kept[i] = x->dims[i];
}

static Err pad_axis(int64_t begin, int64_t end, bool copies, int32_t axis, Tensor *out,
                    PadParams *p) {
    int64_t dim = out->dims[axis];
    if (begin < -dim || end < -dim || (begin < 0 && end < 0 && begin < -dim - end))
        return err_set(ERR_INVALID,
                       "pads %" PRId64 " and %" PRId64 " remove more than the %" PRId64
                       " elements of dimension %d",
                       begin, end, dim, axis);
    p->drop[axis] = begin < 0 ? -begin : 0;
    p->begin[axis] = begin > 0 ? begin : 0;
    p->kept[axis] = dim - p->drop[axis] + (end < 0 ? end : 0);
    if (copies && p->kept[axis] == 0 && (begin > 0 || end > 0))
        return err_set(ERR_INVALID, "dimension %d has no elements left to pad with", axis);
    if (__builtin_add_overflow(p->kept[axis], p->begin[axis], &out->dims[axis]) ||
        __builtin_add_overflow(out->dims[axis], end > 0 ? end : 0, &out->dims[axis]))
        return err_set(ERR_LIMIT, "dimension %d exceeds 64 bits", axis);
    return ERR_OK;
}

// copies: the padding repeats elements of the input.
static Err pad_mode(const OpCall *c, bool *copies) {
    static const char *const modes[] = {"constant", "reflect", "edge", "wrap"};
    int                      mode = 0;
    TRY(attr_enum(c->node, "mode", modes, 4, &mode));
    *copies = mode != 0;
    const Tensor *value = infer_input(c, 2);
    if (value != NULL && (value->dtype != c->in[0]->dtype || tensor_count(value) != 1))
        return err_set(ERR_INVALID, "the constant must be one element of type %s",
                       dtype_name(c->in[0]->dtype));
    return ERR_OK;
}

Err infer_pad_params(const OpCall *c, Tensor *out, PadParams *p) {
    const Tensor *x = c->in[0];
    IntList       pads, list;
    int32_t       axes[TENSOR_MAX_RANK];
    uint32_t      n = 0;
    bool          copies = false;
    TRY(infer_check_type(x, TYPES_TENSOR, "data"));
    TRY(pad_mode(c, &copies));
    TRY(infer_int_list(c, 1, attr_has(c->node, "paddings") ? "paddings" : "pads", &pads));
    TRY(infer_int_list(c, 3, "axes", &list));
    if (!pads.given) return err_set(ERR_INVALID, "pads are missing");
    no_padding(x, out, p);
    if (!pads.known || !list.known) return infer_unknown_shape(out);
    TRY(infer_axes(&list, x->rank, axes, &n));
    if (pads.n != 2 * n)
        return err_set(ERR_INVALID, "has %u pads for %u axes, needs two each", pads.n, n);
    for (uint32_t i = 0; i < n; i++)
        TRY(pad_axis(pads.v[i], pads.v[n + i], copies, axes[i], out, p));
    return ERR_OK;
}

Err infer_pad(const OpCall *c, Tensor *out) {
    PadParams p;
    return infer_pad_params(c, out, &p);
}

Err infer_crop_params(const OpCall *c, Tensor *out, PadParams *p) {
    const Tensor *x = c->in[0];
    IntList       shape, list;
    int32_t       axes[TENSOR_MAX_RANK];
    uint32_t      n = 0;
    TRY(infer_check_type(x, TYPES_TENSOR, "input_data"));
    TRY(infer_int_list(c, 1, "shape", &shape));
    TRY(infer_int_list(c, UINT32_MAX, "axes", &list));
    no_padding(x, out, p);
    if (!shape.known) return infer_unknown_shape(out);
    TRY(infer_axes(&list, x->rank, axes, &n));
    if (shape.n != n) return err_set(ERR_INVALID, "shape has %u sizes for %u axes", shape.n, n);
    for (uint32_t i = 0; i < n; i++) {
        int64_t dim = x->dims[axes[i]], want = shape.v[i];
        if (want < 0) return err_set(ERR_INVALID, "the shape has a size of %" PRId64, want);
        int64_t more = want - dim, front = more / 2;  // rounds towards 0, as specified
        TRY(pad_axis(front, more - front, false, axes[i], out, p));
    }
    return ERR_OK;
}

Err infer_crop(const OpCall *c, Tensor *out) {
    PadParams p;
    return infer_crop_params(c, out, &p);
}

static Err tile_axis(int64_t times, int32_t axis, Tensor *out) {
    if (times < 0) return err_set(ERR_INVALID, "repeats of dimension %d is %" PRId64, axis, times);
    if (__builtin_mul_overflow(out->dims[axis], times, &out->dims[axis]))
        return err_set(ERR_LIMIT, "dimension %d exceeds 64 bits", axis);
    return ERR_OK;
}

// Before operator set 6: one count for one axis, both of the data's type.
static Err tile_one(const OpCall *c, Tensor *out) {
    const Tensor *tiles = infer_input(c, 1), *axes = infer_input(c, 2);
    int32_t       axis = 0;
    if (tiles == NULL || axes == NULL || tensor_count(tiles) != 1 || tensor_count(axes) != 1)
        return err_set(ERR_INVALID, "tiles and axis must have one element each");
    TRY(infer_check_type(tiles, TYPES_NUMBER, "tiles"));
    TRY(infer_check_type(axes, TYPES_NUMBER, "axis"));
    if (tiles->data == NULL || axes->data == NULL) return infer_unknown_shape(out);
    TRY(infer_axis(tensor_get_i64(axes, 0), out->rank, &axis));
    return tile_axis(tensor_get_i64(tiles, 0), axis, out);
}

Err infer_tile(const OpCall *c, Tensor *out) {
    IntList repeats;
    TRY(infer_check_type(c->in[0], TYPES_TENSOR, "input"));
    *out = infer_like(c->in[0]);
    if (c->node->version < 6) return tile_one(c, out);
    TRY(infer_int_list(c, 1, "repeats", &repeats));
    if (!repeats.known) return infer_unknown_shape(out);
    if (repeats.n != (uint32_t)out->rank)
        return err_set(ERR_INVALID, "%u repeats for a tensor of rank %d", repeats.n, out->rank);
    for (int32_t i = 0; i < out->rank; i++) TRY(tile_axis(repeats.v[i], i, out));
    return ERR_OK;
}

static Err depth_start(const OpCall *c, Tensor *out, int64_t *block, int64_t *square) {
    TRY(infer_check_type(c->in[0], TYPES_TENSOR, "input"));
    *block = attr_int(c->node, "blocksize", 0);
    if (c->in[0]->rank != 4)
        return err_set(ERR_INVALID, "the input has rank %d, must be 4", c->in[0]->rank);
    if (*block < 1 || __builtin_mul_overflow(*block, *block, square))
        return err_set(ERR_INVALID, "blocksize is %" PRId64, *block);
    *out = infer_like(c->in[0]);
    return ERR_OK;
}

Err infer_depth_to_space(const OpCall *c, Tensor *out) {
    int64_t     block = 0, square = 0;
    const char *mode = attr_str(c->node, "mode", "DCR");
    TRY(depth_start(c, out, &block, &square));
    if (strcmp(mode, "DCR") != 0 && strcmp(mode, "CRD") != 0)
        return err_set(ERR_INVALID, "mode '%s' is neither DCR nor CRD", mode);
    if (out->dims[1] % square != 0)
        return err_set(ERR_INVALID,
                       "%" PRId64 " channels do not divide by blocksize %" PRId64 " squared",
                       out->dims[1], block);
    out->dims[1] /= square;
    TRY(tile_axis(block, 2, out));
    return tile_axis(block, 3, out);
}

Err infer_space_to_depth(const OpCall *c, Tensor *out) {
    int64_t block = 0, square = 0;
    TRY(depth_start(c, out, &block, &square));
    if (out->dims[2] % block != 0 || out->dims[3] % block != 0)
        return err_set(ERR_INVALID,
                       "height %" PRId64 " or width %" PRId64
                       " does not divide by blocksize %" PRId64,
                       out->dims[2], out->dims[3], block);
    out->dims[2] /= block;
    out->dims[3] /= block;
    return tile_axis(square, 1, out);
}

Err infer_reverse_sequence(const OpCall *c, Tensor *out) {
    const Tensor *x = c->in[0], *lens = c->in[1];
    int64_t batch = attr_int(c->node, "batch_axis", 1), time = attr_int(c->node, "time_axis", 0);
    TRY(infer_check_type(x, TYPES_TENSOR, "input"));
    TRY(infer_check_type(lens, TYPES_INDEX, "sequence_lens"));
    if (x->rank < 2)
        return err_set(ERR_INVALID, "the input has rank %d, must be at least 2", x->rank);
    if (batch < 0 || batch > 1 || time != 1 - batch)
        return err_set(ERR_INVALID, "batch_axis and time_axis must be 0 and 1");
    if (lens->rank != 1 || lens->dims[0] != x->dims[batch])
        return err_set(ERR_INVALID,
                       "sequence_lens must have one length for each of %" PRId64 " sequences",
                       x->dims[batch]);
    *out = infer_like(x);
    return ERR_OK;
}
