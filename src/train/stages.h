// Stages: generations of a training, so many of each stage, one stage after the other.
#pragma once

#include <stdbool.h>
#include <stdint.h>

static inline uint32_t stages_total(const uint32_t *generations, uint32_t n) {
    uint32_t sum = 0;
    for (uint32_t i = 0; i < n; i++) sum += generations[i];
    return sum;
}

// The stage that a generation is of.
static inline uint32_t stages_at(const uint32_t *generations, uint32_t n, uint32_t generation) {
    uint32_t stage = 0, before = 0;
    while (stage + 1 < n && generation >= before + generations[stage])
        before += generations[stage++];
    return stage;
}

// The generation is the last of its stage.
static inline bool stages_end(const uint32_t *generations, uint32_t n, uint32_t generation) {
    return generation + 1 == stages_total(generations, n) ||
           stages_at(generations, n, generation) != stages_at(generations, n, generation + 1);
}
