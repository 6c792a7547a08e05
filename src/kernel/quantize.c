#include "kernel/quantize.h"

#include "kernel/blocking.h"

static uint32_t pieces(size_t count) { return checked_tasks(ceil_div_size(count, QUANTIZE_PIECE)); }

uint32_t quantize_tasks(const Quantize *q) {
    if (q->pixels == 0) return pieces(q->count);
    uint32_t each = (uint32_t)ceil_div_size(q->pixels * q->channels, QUANTIZE_PIECE);
    return checked_tasks((uint64_t)q->n * min_u32(each, (uint32_t)q->pixels));
}

uint32_t dequantize_tasks(const Dequantize *d) {
    if (d->pixels == 0) return pieces(d->count);
    uint32_t each = (uint32_t)ceil_div_size(d->pixels * d->pitch, QUANTIZE_PIECE);
    return checked_tasks((uint64_t)d->n * min_u32(each, (uint32_t)d->pixels));
}

uint32_t byte_elementwise_tasks(const ByteElementwise *e) { return pieces(e->count); }
