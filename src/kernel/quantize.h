// Quantize: between floats and bytes, element-wise programs over bytes, and the range of a tensor.
//
// A byte q stands for (q - zero) * scale. Quotients are rounded to float, then to an integer,
// halves to even, and saturated: as the reference kernels do, bit for bit.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernel/elementwise.h"
#include "kernel/isa.h"

typedef struct ByteScale {
    float   scale;
    int32_t zero;
    bool    is_signed;  // int8; else uint8
} ByteScale;

// Bounds of an integer before the zero point is added.
static inline float byte_lowest(const ByteScale *s) {
    return (float)((s->is_signed ? -128 : 0) - s->zero);
}
static inline float byte_highest(const ByteScale *s) {
    return (float)((s->is_signed ? 127 : 255) - s->zero);
}

enum { QUANTIZE_PIECE = 8192 };  // elements per task

// Arguments of isa->quantize(&q, part): y = x / scale + zero. If pixels is not 0, x is
// [n][channels][pixels], or blocked: [n][blocks][pixels][lanes]; and y is [n][pixels][pitch].
typedef struct Quantize {
    const float *x;
    uint8_t     *y;
    size_t       count;
    ByteScale    to;
    uint32_t     n, channels, pitch;
    size_t       pixels;
    bool         blocked;
} Quantize;

uint32_t quantize_tasks(const Quantize *q);

// Arguments of isa->dequantize(&d, part): y = (x - zero) * scale. If pixels is not 0, x is
// [n][pixels][pitch] with a pitch of whole vectors, and y is blocked: [n][blocks][pixels][lanes].
typedef struct Dequantize {
    const uint8_t *x;
    float         *y;
    size_t         count;
    ByteScale      from;
    uint32_t       n, pitch;
    size_t         pixels;
} Dequantize;

uint32_t dequantize_tasks(const Dequantize *d);

// isa->byte_range(x, n, &scale): the scale and uint8 zero point that cover x and 0, as of
// DynamicQuantizeLinear.

typedef enum ByteArgKind { BYTE_ARG_BYTES, BYTE_ARG_FLOATS, BYTE_ARG_SCALAR } ByteArgKind;

// Arguments of isa->byte_elementwise(&e, part): y = program(in) over `count` elements.
typedef struct ByteElementwise {
    const ElementwiseProgram *program;
    struct {
        const void *at;
        ByteScale   from;  // of bytes
        ByteArgKind kind;
    } in[EWISE_MAX_ARGS];
    uint8_t  *y;
    float    *floats;  // the results before quantisation, too; NULL: not stored
    ByteScale to;
    size_t    count;
} ByteElementwise;

uint32_t byte_elementwise_tasks(const ByteElementwise *e);
