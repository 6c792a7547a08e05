#include "kernel/ref/ref_block_quant.h"

#include "base/work_stop.h"
#include "kernel/ref/ref_int.h"
#include "kernel/wide_type.h"

static int32_t bits_at(const uint8_t *bytes, int64_t i, int32_t bits) {
    int32_t per = 8 / bits;
    return bytes[i / per] >> (i % per * bits) & ((1 << bits) - 1);
}

static double zero_of(const RefBlocks *p, int64_t row, int64_t block) {
    if (p->zeros == NULL) return 1 << (p->bits - 1);
    if (p->zeros->dtype != DT_U8) return tensor_get_f64(p->zeros, row * p->blocks + block);
    return bits_at((const uint8_t *)p->zeros->data + row * p->zero_bytes, block, p->bits);
}

void ref_blocks_row(const RefBlocks *p, int64_t row, double *out) {
    const uint8_t *bytes = (const uint8_t *)p->data->data + row * p->row_bytes;
    for (int64_t b = 0; b < p->blocks && !work_stopped(); b++) {
        double  scale = tensor_get_f64(p->scales, row * p->blocks + b), zero = zero_of(p, row, b);
        int64_t end = b + 1 < p->blocks ? (b + 1) * p->block : p->columns;
        for (int64_t i = b * p->block; i < end; i++)
            out[i] = (bits_at(bytes, i, p->bits) - zero) * scale;
    }
}

Err ref_blocks_matmul(const RefBlocks *p, int64_t rows, const Tensor *a, const Tensor *bias,
                      Tensor *y, Arena *scratch) {
    double *w, *x;
    int64_t m = p->columns > 0 ? tensor_count(a) / p->columns : 0;
    TRY(ref_alloc_doubles(scratch, 1, p->columns, &w));
    TRY(ref_alloc_doubles(scratch, 1, p->columns, &x));
    for (int64_t j = 0; j < rows && !work_stopped(); j++) {
        ref_blocks_row(p, j, w);
        for (int64_t i = 0; i < m && !work_stopped(); i++) {
            double sum = bias != NULL ? tensor_get_f64(bias, j) : 0;
            wide_read(a, i * p->columns, 1, p->columns, x);
            for (int64_t k = 0; k < p->columns; k++) sum += x[k] * w[k];
            tensor_set(y, i * rows + j, sum);
        }
    }
    return ERR_OK;
}

Err ref_blocks_gather(const RefBlocks *p, int64_t count, int64_t each, const Tensor *index,
                      Tensor *y, Arena *scratch) {
    double *row;
    TRY(ref_alloc_doubles(scratch, 1, p->columns, &row));
    for (int64_t i = 0; i < tensor_count(index) && !work_stopped(); i++) {
        int64_t at = tensor_get_i64(index, i);
        if (at < 0) at += count;
        for (int64_t r = 0; r < each && !work_stopped(); r++) {
            bool inside = at >= 0 && at < count;
            if (inside) ref_blocks_row(p, at * each + r, row);
            WORK_EACH (k, p->columns)
                tensor_set(y, (i * each + r) * p->columns + k, inside ? row[k] : 0);
        }
    }
    return ERR_OK;
}
