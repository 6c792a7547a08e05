// Hashes: FNV-1a for tables and fingerprints that need no secrecy, SHA-256 for content identity.
#pragma once

#include <stddef.h>
#include <stdint.h>

// 64-bit FNV-1a: start from HASH_FNV_START and add values; hash_fnv adds each of len bytes.
#define HASH_FNV_START UINT64_C(14695981039346656037)

static inline uint64_t hash_fnv_add(uint64_t hash, uint64_t value) {
    return (hash ^ value) * UINT64_C(1099511628211);
}

static inline uint64_t hash_fnv(uint64_t hash, const void *bytes, size_t len) {
    const unsigned char *p = bytes;
    for (size_t i = 0; i < len; i++) hash = hash_fnv_add(hash, p[i]);
    return hash;
}

enum { SHA256_TEXT = 65 };  // 64 hexadecimal digits and '\0'

typedef struct Sha256 {  // FIPS 180-4
    uint32_t state[8];
    uint64_t total;      // bytes added
    uint8_t  block[64];  // bytes of the incomplete block
} Sha256;

void sha256_begin(Sha256 *s);
void sha256_add(Sha256 *s, const void *bytes, size_t n);
void sha256_end(Sha256 *s, char out[SHA256_TEXT]);
