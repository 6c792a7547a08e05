// Sha256: the fingerprint of bytes, FIPS 180-4.
#pragma once

#include <stddef.h>
#include <stdint.h>

enum { SHA256_TEXT = 65 };  // in hexadecimal, with its '\0'

typedef struct Sha256 {
    uint32_t state[8];
    uint64_t total;      // bytes so far
    uint8_t  block[64];  // those of an unfinished block
} Sha256;

void sha256_begin(Sha256 *s);
void sha256_add(Sha256 *s, const void *bytes, size_t n);
void sha256_end(Sha256 *s, char out[SHA256_TEXT]);
