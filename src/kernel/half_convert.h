// HalfConvert: arrays of float16 or bfloat16 to floats and back.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernel/isa.h"

enum { HALF_CONVERT_TASK = 4096 };  // elements

// Arguments of isa->half_convert(&convert, part).
typedef struct HalfConvert {
    size_t      n;
    bool        bfloat;  // bfloat16, else float16
    bool        widen;   // to floats, else from them, rounding to nearest
    const void *from;
    void       *to;
} HalfConvert;

uint32_t half_convert_tasks(const HalfConvert *h);
