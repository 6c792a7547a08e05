// Part: one worker's share of a layer. Kernels never create threads; whoever runs them does.
#pragma once

#include <stdint.h>

typedef struct Part {
    uint32_t index, count;  // this is share `index` of `count`
    void    *scratch;       // the worker's own; as many bytes as the kernel asked for, TENSOR_ALIGN
} Part;

// The tasks [begin, end) of a part: contiguous, and no part has two more than another.
static inline void part_range(Part p, uint32_t tasks, uint32_t *begin, uint32_t *end) {
    *begin = (uint32_t)((uint64_t)tasks * p.index / p.count);
    *end = (uint32_t)((uint64_t)tasks * (p.index + 1) / p.count);
}
