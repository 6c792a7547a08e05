// Growing, shrinking and regrouping: Pad, CenterCropPad, Tile, DepthToSpace, SpaceToDepth,
// ReverseSequence.
#include <inttypes.h>
#include <string.h>

#include "base/number.h"
#include "model/move.h"

static void pad_nothing(const Tensor *x, Tensor *out, MovePad *p) {
    *out = *x;
    out->data = NULL;
    for (int32_t i = 0; i < x->rank; i++) p->begin[i] = p->drop[i] = 0, p->kept[i] = x->dims[i];
}

static Err pad_axis(int64_t begin, int64_t end, bool copies, int32_t axis, Tensor *out,
                    MovePad *p) {
    int64_t dim = out->dims[axis];
    if (begin < -dim || end < -dim || (begin < 0 && end < 0 && begin < -dim - end))
        return err_set(ERR_INVALID,
                       "pads %" PRId64 " and %" PRId64 " take more than the %" PRId64
                       " elements of dimension %d",
                       begin, end, dim, axis);
    p->drop[axis] = begin < 0 ? -begin : 0;
    p->begin[axis] = begin > 0 ? begin : 0;
    p->kept[axis] = dim - p->drop[axis] + (end < 0 ? end : 0);
    if (copies && p->kept[axis] == 0 && (begin > 0 || end > 0))
        return err_set(ERR_INVALID, "nothing is left in dimension %d to pad with", axis);
    if (__builtin_add_overflow(p->kept[axis], p->begin[axis], &out->dims[axis]) ||
        __builtin_add_overflow(out->dims[axis], end > 0 ? end : 0, &out->dims[axis]))
        return err_set(ERR_LIMIT, "dimension %d becomes larger than can be counted", axis);
    return ERR_OK;
}

static Err pad_mode(const OpCall *c, bool *copies) {
    const char *mode = attr_str(c->node, "mode", "constant");
    *copies = strcmp(mode, "constant") != 0;
    if (*copies && strcmp(mode, "reflect") != 0 && strcmp(mode, "edge") != 0 &&
        strcmp(mode, "wrap") != 0)
        return err_set(ERR_UNSUPPORTED, "mode '%s' is not supported", mode);
    const Tensor *value = infer_in(c, 2);
    if (value != NULL && (value->dtype != c->in[0]->dtype || tensor_count(value) != 1))
        return err_set(ERR_INVALID, "the constant is not one element of type %s",
                       dtype_name(c->in[0]->dtype));
    return ERR_OK;
}

Err move_pad(const OpCall *c, Tensor *out, MovePad *p) {
    const Tensor *x = c->in[0];
    MoveList      pads, list;
    int32_t       axes[TENSOR_MAX_RANK];
    uint32_t      n = 0;
    bool          copies = false;
    TRY(infer_need(x, TYPES_TENSOR, "data"));
    TRY(pad_mode(c, &copies));
    TRY(move_list(c, 1, attr_has(c->node, "paddings") ? "paddings" : "pads", &pads));
    TRY(move_list(c, 3, "axes", &list));
    if (!pads.given) return err_set(ERR_INVALID, "gives no pads");
    pad_nothing(x, out, p);
    if (!pads.known || !list.known) return move_unknown(out);
    TRY(move_axes(&list, x->rank, axes, &n));
    if (pads.n != 2 * n)
        return err_set(ERR_INVALID, "gives %u pads for %u axes, needs two each", pads.n, n);
    for (uint32_t i = 0; i < n; i++)
        TRY(pad_axis(pads.v[i], pads.v[n + i], copies, axes[i], out, p));
    return ERR_OK;
}

Err infer_pad(const OpCall *c, Tensor *out) {
    MovePad p;
    return move_pad(c, out, &p);
}

Err move_crop(const OpCall *c, Tensor *out, MovePad *p) {
    const Tensor *x = c->in[0];
    MoveList      shape, list;
    int32_t       axes[TENSOR_MAX_RANK];
    uint32_t      n = 0;
    TRY(infer_need(x, TYPES_TENSOR, "input_data"));
    TRY(move_list(c, 1, "shape", &shape));
    TRY(move_list(c, UINT32_MAX, "axes", &list));
    pad_nothing(x, out, p);
    if (!shape.known) return move_unknown(out);
    TRY(move_axes(&list, x->rank, axes, &n));
    if (shape.n != n) return err_set(ERR_INVALID, "gives %u sizes for %u axes", shape.n, n);
    for (uint32_t i = 0; i < n; i++) {
        int64_t dim = x->dims[axes[i]], want = shape.v[i];
        if (want < 0) return err_set(ERR_INVALID, "the shape has the size %" PRId64, want);
        int64_t more = want - dim, front = more / 2;  // C rounds towards 0, as is asked for
        TRY(pad_axis(front, more - front, false, axes[i], out, p));
    }
    return ERR_OK;
}

Err infer_crop(const OpCall *c, Tensor *out) {
    MovePad p;
    return move_crop(c, out, &p);
}

static Err tile_axis(int64_t times, int32_t axis, Tensor *out) {
    if (times < 0)
        return err_set(ERR_INVALID, "repeats dimension %d %" PRId64 " times", axis, times);
    if (__builtin_mul_overflow(out->dims[axis], times, &out->dims[axis]))
        return err_set(ERR_LIMIT, "dimension %d becomes larger than can be counted", axis);
    return ERR_OK;
}

// Before operator set 6: one count for one axis, both of the data's own type.
static Err tile_one(const OpCall *c, Tensor *out) {
    const Tensor *tiles = infer_in(c, 1), *axes = infer_in(c, 2);
    int32_t       axis = 0;
    if (tiles == NULL || axes == NULL || tensor_count(tiles) != 1 || tensor_count(axes) != 1)
        return err_set(ERR_INVALID, "needs one count and one axis");
    TRY(infer_need(tiles, TYPES_NUMBER, "tiles"));
    TRY(infer_need(axes, TYPES_NUMBER, "axis"));
    if (tiles->data == NULL || axes->data == NULL) return move_unknown(out);
    TRY(infer_axis(number_i64(axes, 0), out->rank, &axis));
    return tile_axis(number_i64(tiles, 0), axis, out);
}

Err infer_tile(const OpCall *c, Tensor *out) {
    MoveList repeats;
    TRY(infer_need(c->in[0], TYPES_TENSOR, "input"));
    *out = *c->in[0];
    out->data = NULL;
    if (c->node->version < 6) return tile_one(c, out);
    TRY(move_list(c, 1, "repeats", &repeats));
    if (!repeats.known) return move_unknown(out);
    if (repeats.n != (uint32_t)out->rank)
        return err_set(ERR_INVALID, "%u repeats for a tensor of rank %d", repeats.n, out->rank);
    for (int32_t i = 0; i < out->rank; i++) TRY(tile_axis(repeats.v[i], i, out));
    return ERR_OK;
}

static Err depth_start(const OpCall *c, Tensor *out, int64_t *block, int64_t *square) {
    TRY(infer_need(c->in[0], TYPES_TENSOR, "input"));
    *block = attr_int(c->node, "blocksize", 0);
    if (c->in[0]->rank != 4)
        return err_set(ERR_INVALID, "the input has rank %d, not 4", c->in[0]->rank);
    if (*block < 1 || __builtin_mul_overflow(*block, *block, square))
        return err_set(ERR_INVALID, "blocksize is %" PRId64, *block);
    *out = *c->in[0];
    out->data = NULL;
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
    TRY(infer_need(x, TYPES_TENSOR, "input"));
    TRY(infer_need(lens, TYPES_INDEX, "sequence_lens"));
    if (x->rank < 2) return err_set(ERR_INVALID, "the input has rank %d, needs 2", x->rank);
    if (batch < 0 || batch > 1 || time != 1 - batch)
        return err_set(ERR_INVALID, "batch_axis and time_axis must be 0 and 1");
    if (lens->rank != 1 || lens->dims[0] != x->dims[batch])
        return err_set(ERR_INVALID,
                       "sequence_lens must have one length for each of %" PRId64 " sequences",
                       x->dims[batch]);
    *out = *x;
    out->data = NULL;
    return ERR_OK;
}
