#include "base/map.h"

#include <stdatomic.h>
#include <string.h>
#include <sys/random.h>

#include "base/arena.h"

// Names come from files, so nobody may choose names that all fall into one slot: the hash starts
// from a number of this process. Only lookups depend on it, never an order that can be seen.
static uint64_t seed(void) {
    static _Atomic uint64_t kept;
    uint64_t                s = kept;
    if (s != 0) return s;
    if (getrandom(&s, sizeof s, GRND_NONBLOCK) != (ssize_t)sizeof s) s = 0;
    uint64_t none = 0;
    (void)atomic_compare_exchange_strong(&kept, &none, s | 1);
    return kept;
}

static uint32_t hash(const char *s) {  // FNV-1a's loop, then a finish that spreads the high bits
    uint64_t h = seed();
    for (; *s != '\0'; s++) {
        h = (h ^ (unsigned char)*s) * UINT64_C(0x9e3779b97f4a7c15);
        h ^= h >> 32;
    }
    return (uint32_t)(h ^ h >> 29);
}

static uint32_t slot(const Map *m, const char *key) {
    uint32_t i = hash(key) & (m->cap - 1);
    while (m->keys[i] != NULL && strcmp(m->keys[i], key) != 0) i = (i + 1) & (m->cap - 1);
    return i;
}

static void resize(Map *m, uint32_t cap) {
    Map old = *m;
    m->keys = arena_new(m->arena, const char *, cap);
    m->vals = arena_new(m->arena, uint32_t, cap);
    m->cap = cap;
    for (uint32_t i = 0; i < old.cap; i++)
        if (old.keys[i] != NULL) {
            uint32_t at = slot(m, old.keys[i]);
            m->keys[at] = old.keys[i];
            m->vals[at] = old.vals[i];
        }
}

void map_init(Map *m, Arena *a) {
    *m = (Map){.arena = a};
    resize(m, 16);
}

void map_put(Map *m, const char *key, uint32_t val) {
    if (2 * (m->n + 1) > m->cap) resize(m, 2 * m->cap);
    uint32_t at = slot(m, key);
    if (m->keys[at] == NULL) m->n++;
    m->keys[at] = key;
    m->vals[at] = val;
}

uint32_t map_get(const Map *m, const char *key) {
    uint32_t at = slot(m, key);
    return m->keys[at] != NULL ? m->vals[at] : MAP_NONE;
}
