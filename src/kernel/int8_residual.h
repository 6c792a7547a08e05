// Int8Residual: bytes that a convolution adds to its own before it stores them, as the residual
// connections of convolutional networks do.
#pragma once

#include "kernel/quantize.h"

// y = to(clip(own(bytes) + from(at), least, most)), where bytes are what would be stored without
// it: rounded after every operation, as isa->byte_elementwise does.
typedef struct Int8Residual {
    ByteScale own, from, to;
    float     least, most;  // of the sum
    // A shorter form, if it gives the same bytes for every pair of bytes:
    // clip(round(own_ratio * (bytes - own.zero) + (from_ratio * (at ^ flip) + offset)), lo, hi)
    // plus to.zero; both multiply-adds are rounded once.
    bool    is_direct;
    float   own_ratio, from_ratio, offset;
    float   lo, hi;
    int32_t flip;  // makes the bytes of at unsigned
} Int8Residual;

Int8Residual int8_residual(const ByteScale *own, const ByteScale *from, const ByteScale *to,
                           float least, float most);
