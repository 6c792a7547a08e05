#include "kernel/mersenne.h"

enum { MIDDLE = 397 };

void mersenne_seed(Mersenne *m, uint32_t seed) {
    m->word[0] = seed;
    for (uint32_t i = 1; i < MERSENNE_WORDS; i++)
        m->word[i] = 1812433253u * (m->word[i - 1] ^ m->word[i - 1] >> 30) + i;
    m->next = MERSENNE_WORDS;
}

static void renew(Mersenne *m) {
    for (int i = 0; i < MERSENNE_WORDS; i++) {
        uint32_t pair =
            (m->word[i] & 0x80000000u) | (m->word[(i + 1) % MERSENNE_WORDS] & 0x7FFFFFFFu);
        uint32_t twist = pair & 1 ? 0x9908B0DFu : 0;
        m->word[i] = m->word[(i + MIDDLE) % MERSENNE_WORDS] ^ pair >> 1 ^ twist;
    }
    m->next = 0;
}

static uint32_t draw(Mersenne *m) {
    if (m->next >= MERSENNE_WORDS) renew(m);
    uint32_t v = m->word[m->next++];
    v ^= v >> 11;
    v ^= v << 7 & 0x9D2C5680u;
    v ^= v << 15 & 0xEFC60000u;
    return v ^ v >> 18;
}

double mersenne_unit(Mersenne *m) {
    uint32_t high = draw(m) >> 5, low = draw(m) >> 6;
    return ((double)high * 0x1p26 + (double)low) * 0x1p-53;
}
