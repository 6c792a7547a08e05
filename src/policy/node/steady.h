// Steady: a level of interference that does not flutter between two neighbours.
#pragma once

#include "contract/node.h"

// Stays at `was` until the pressure is `hold` beyond the middle to the next level.
static inline uint32_t steady_level(uint32_t was, float pressure, double hold) {
    double away = (double)pressure - (double)was;
    if (away <= 0.5 + hold && away >= -0.5 - hold) return was;
    double rounded = (double)pressure + 0.5;
    return rounded < 0 ? 0 : rounded >= NODE_LEVELS ? NODE_LEVELS - 1 : (uint32_t)rounded;
}
