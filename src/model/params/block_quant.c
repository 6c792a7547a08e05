#include "model/params/block_quant.h"

#include <inttypes.h>

#include "model/attr.h"
#include "model/infer/infer.h"

static Err read_bits(const Node *n, int64_t block, BlockQuant *q) {
    int64_t bits = attr_int(n, "bits", 4);
    if (bits != 2 && bits != 4 && bits != 8)
        return err_set(ERR_UNSUPPORTED, "bits is %" PRId64 ", must be 2, 4 or 8", bits);
    if (block < 16 || block > 1 << 20 || (block & (block - 1)) != 0)
        return err_set(ERR_INVALID, "block_size %" PRId64 " must be a power of 2 and at least 16",
                       block);
    q->bits = (int32_t)bits;
    q->block = block;
    return ERR_OK;
}

static int64_t bytes_of(int64_t elements, int32_t bits) { return (elements * bits + 7) / 8; }

static Err check_count(const Tensor *t, int64_t rows, int64_t row, const char *what) {
    int64_t all = 0;
    if (!__builtin_mul_overflow(rows, row, &all) && tensor_count(t) == all) return ERR_OK;
    return err_set(ERR_INVALID, "%s must have %" PRId64 " rows of %" PRId64, what, rows, row);
}

// Zero points are packed like the data, or (MatMulNBits) one number of the scales' type per block.
static Err read_zeros(const Tensor *zeros, const Tensor *scales, bool floats, BlockQuant *q) {
    q->zero_bytes = 0;
    if (zeros == NULL) return ERR_OK;
    if (zeros->dtype == DT_U8) {
        q->zero_bytes = bytes_of(q->blocks, q->bits);
        return check_count(zeros, q->rows, q->zero_bytes, "zero_points");
    }
    TRY(infer_check_type(zeros, floats ? dtype_bit(scales->dtype) : dtype_bit(DT_U8),
                         "zero_points"));
    return check_count(zeros, q->rows, q->blocks, "zero_points");
}

Err matmul_nbits_read(const OpCall *c, BlockQuant *q) {
    const Tensor *a = c->in[0], *b = c->in[1], *scales = c->in[2], *bias = infer_input(c, 5);
    *q = (BlockQuant){.rows = attr_int(c->node, "N", 0), .columns = attr_int(c->node, "K", 0)};
    if (infer_input(c, 4) != NULL)
        return err_set(ERR_UNSUPPORTED, "g_idx (columns in another order) is not supported");
    if (attr_int(c->node, "weight_prepacked", 0) != 0)
        return err_set(ERR_UNSUPPORTED, "weight_prepacked is not supported");
    TRY(read_bits(c->node, attr_int(c->node, "block_size", 0), q));
    TRY(infer_check_type(a, TYPES_FLOAT, "A"));
    TRY(infer_check_type(b, dtype_bit(DT_U8), "B"));
    TRY(infer_check_type(scales, dtype_bit(a->dtype), "scales"));
    if (q->rows < 1 || q->columns < 1 || q->rows > INT32_MAX || q->columns > INT32_MAX)
        return err_set(ERR_INVALID, "N and K must be positive");
    if (a->rank < 1 || a->dims[a->rank - 1] != q->columns)
        return err_set(ERR_INVALID, "rows of A must have K = %" PRId64 " elements", q->columns);
    q->blocks = (q->columns + q->block - 1) / q->block;
    q->row_bytes = q->blocks * bytes_of(q->block, q->bits);
    TRY(check_count(b, q->rows, q->row_bytes, "B"));
    TRY(check_count(scales, q->rows, q->blocks, "scales"));
    if (bias != NULL) {
        TRY(infer_check_type(bias, dtype_bit(a->dtype), "bias"));
        if (bias->rank != 1 || bias->dims[0] != q->rows)
            return err_set(ERR_INVALID, "bias must have N = %" PRId64 " elements", q->rows);
    }
    return read_zeros(infer_input(c, 3), scales, true, q);
}

Err gather_nbits_read(const OpCall *c, BlockQuant *q) {
    const Tensor *data = c->in[0], *scales = c->in[2];
    int32_t       axis = 0, along = 0;
    *q = (BlockQuant){.rows = 1};
    TRY(read_bits(c->node, attr_int(c->node, "block_size", 128), q));
    TRY(infer_check_type(data, dtype_bit(DT_U8), "data"));
    TRY(infer_check_type(c->in[1], TYPES_INDEX, "indices"));
    TRY(infer_check_type(scales, TYPES_FLOAT, "scales"));
    TRY(infer_axis(attr_int(c->node, "gather_axis", 0), data->rank, &axis));
    TRY(infer_axis(attr_int(c->node, "quantize_axis", 1), data->rank, &along));
    if (axis != 0 || along != data->rank - 1 || data->rank < 2)
        return err_set(ERR_UNSUPPORTED, "gather_axis must be 0 and quantize_axis the last one");
    q->row_bytes = data->dims[data->rank - 1];
    if (q->row_bytes > INT32_MAX)
        return err_set(ERR_LIMIT, "rows of %" PRId64 " bytes are too long", q->row_bytes);
    for (int32_t i = 0; i < data->rank - 1; i++)
        if (__builtin_mul_overflow(q->rows, data->dims[i], &q->rows))
            return err_set(ERR_LIMIT, "data is too large");
    q->columns = q->row_bytes * 8 / q->bits;
    q->blocks = (q->columns + q->block - 1) / q->block;
    TRY(check_count(scales, q->rows, q->blocks, "scales"));
    return read_zeros(infer_input(c, 3), scales, false, q);
}
