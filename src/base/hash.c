#include "base/hash.h"

#include <string.h>

enum { BLOCK = 64, ROUNDS = 64 };

static const uint32_t start[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                  0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};

static const uint32_t keys[ROUNDS] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

static uint32_t ror(uint32_t x, uint32_t by) { return x >> by | x << (32 - by); }

static uint32_t word_at(const uint8_t *p) {
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static void mix(uint32_t state[8], const uint8_t *block) {
    uint32_t w[ROUNDS], v[8];
    memcpy(v, state, sizeof v);
    for (uint32_t i = 0; i < 16; i++) w[i] = word_at(block + (size_t)4 * i);
    for (uint32_t i = 16; i < ROUNDS; i++) {
        uint32_t a = w[i - 15], b = w[i - 2];
        w[i] = w[i - 16] + w[i - 7] + (ror(a, 7) ^ ror(a, 18) ^ a >> 3) +
               (ror(b, 17) ^ ror(b, 19) ^ b >> 10);
    }
    for (uint32_t i = 0; i < ROUNDS; i++) {
        uint32_t a = v[0], e = v[4];
        uint32_t one = v[7] + (ror(e, 6) ^ ror(e, 11) ^ ror(e, 25)) + ((e & v[5]) ^ (~e & v[6])) +
                       keys[i] + w[i];
        uint32_t two =
            (ror(a, 2) ^ ror(a, 13) ^ ror(a, 22)) + ((a & v[1]) ^ (a & v[2]) ^ (v[1] & v[2]));
        memmove(v + 1, v, 7 * sizeof *v);
        v[4] += one;
        v[0] = one + two;
    }
    for (uint32_t i = 0; i < 8; i++) state[i] += v[i];
}

void sha256_begin(Sha256 *s) {
    *s = (Sha256){0};
    memcpy(s->state, start, sizeof start);
}

void sha256_add(Sha256 *s, const void *bytes, size_t n) {
    const uint8_t *p = bytes;
    size_t         used = s->total % BLOCK;
    s->total += n;
    if (used > 0) {
        size_t some = n < BLOCK - used ? n : BLOCK - used;
        memcpy(s->block + used, p, some);
        p += some;
        n -= some;
        if (used + some < BLOCK) return;
        mix(s->state, s->block);
    }
    for (; n >= BLOCK; n -= BLOCK, p += BLOCK) mix(s->state, p);
    if (n > 0) memcpy(s->block, p, n);
}

void sha256_end(Sha256 *s, char out[SHA256_TEXT]) {
    static const char digits[] = "0123456789abcdef";
    uint64_t          bits = s->total * 8;
    uint8_t           tail[2 * BLOCK] = {0x80};
    size_t            pad = (s->total % BLOCK < 56 ? 56 : 120) - s->total % BLOCK;
    for (uint32_t i = 0; i < 8; i++) tail[pad + i] = (uint8_t)(bits >> (56 - 8 * i));
    sha256_add(s, tail, pad + 8);
    for (uint32_t i = 0; i < 64; i++) out[i] = digits[s->state[i / 8] >> (28 - 4 * (i % 8)) & 15];
    out[64] = '\0';
}
