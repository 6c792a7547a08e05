// Mersenne: MT19937, the generator behind the random numbers that ONNX's own references draw.
#pragma once

#include <stdint.h>

enum { MERSENNE_WORDS = 624 };

typedef struct Mersenne {
    uint32_t word[MERSENNE_WORDS];
    int32_t  next;
} Mersenne;

void   mersenne_seed(Mersenne *m, uint32_t seed);
double mersenne_unit(Mersenne *m);  // [0, 1), 53 bits
