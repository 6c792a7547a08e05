// Kinds of servers: those with equal features, such as all empty ones, have equal rows in every
// layer, so that one row of each kind is computed.
#include <string.h>

#include "base/hash.h"
#include "policy/cluster/maifs/maifs_net_int.h"

size_t maifs_kind_slots(uint32_t n_servers) {
    size_t slots = 2;
    while (slots < 2 * (size_t)n_servers) slots *= 2;
    return slots;
}

static uint64_t hash_of(const float *features) {
    uint64_t hash = HASH_FNV_START, words[MAIFS_SERVER / 2];
    _Static_assert(sizeof words == MAIFS_SERVER * sizeof *features, "two features in a word");
    memcpy(words, features, sizeof words);
    for (size_t i = 0; i < MAIFS_SERVER / 2; i++) {
        hash = hash_fnv_add(hash, words[i]);
        hash ^= hash >> 32;
    }
    return hash;
}

uint32_t maifs_find_kinds(const MaifsCache *k, const float *servers) {
    size_t   slots = maifs_kind_slots(k->n_servers), bytes = MAIFS_SERVER * sizeof *servers;
    uint32_t n = 0;
    memset(k->table, 0, slots * sizeof *k->table);
    for (uint32_t i = 0; i < k->n_servers; i++) {
        const float *x = servers + (size_t)i * MAIFS_SERVER;
        size_t       at = hash_of(x) & (slots - 1);
        while (k->table[at] != 0 &&
               memcmp(k->features + (k->table[at] - 1) * (size_t)MAIFS_SERVER, x, bytes) != 0)
            at = (at + 1) & (slots - 1);
        if (k->table[at] == 0) {
            memcpy(k->features + n * (size_t)MAIFS_SERVER, x, bytes);
            k->table[at] = ++n;
        }
        k->kind[i] = k->table[at] - 1;
    }
    return n;
}

void maifs_spread_kinds(const MaifsCache *k, size_t n, const float *kinds, float *to) {
    for (uint32_t i = 0; i < k->n_servers; i++)
        memcpy(to + i * n, kinds + k->kind[i] * n, n * sizeof *to);
}
