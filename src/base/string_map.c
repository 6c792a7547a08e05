#include "base/string_map.h"

#include <stdatomic.h>
#include <string.h>
#include <sys/random.h>

#include "base/arena.h"

// Keys come from untrusted files: a random seed per process prevents chosen collisions. It affects
// lookups only, never an observable order.
static uint64_t seed(void) {
    static _Atomic uint64_t kept;
    uint64_t                s = kept;
    if (s != 0) return s;
    if (getrandom(&s, sizeof s, GRND_NONBLOCK) != (ssize_t)sizeof s) s = 0;
    uint64_t none = 0;
    (void)atomic_compare_exchange_strong(&kept, &none, s | 1);
    return kept;
}

static uint32_t hash(const char *s) {  // like FNV-1a, with a final mix of the high bits
    uint64_t h = seed();
    for (; *s != '\0'; s++) {
        h = (h ^ (unsigned char)*s) * UINT64_C(0x9e3779b97f4a7c15);
        h ^= h >> 32;
    }
    return (uint32_t)(h ^ h >> 29);
}

static uint32_t slot(const StringMap *m, const char *key) {
    uint32_t i = hash(key) & (m->cap - 1);
    while (m->keys[i] != NULL && strcmp(m->keys[i], key) != 0) i = (i + 1) & (m->cap - 1);
    return i;
}

static void resize(StringMap *m, uint32_t cap) {
    StringMap old = *m;
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

void string_map_init(StringMap *m, Arena *a) {
    *m = (StringMap){.arena = a};
    resize(m, 16);
}

void string_map_put(StringMap *m, const char *key, uint32_t val) {
    if (2 * (m->n + 1) > m->cap) resize(m, 2 * m->cap);
    uint32_t at = slot(m, key);
    if (m->keys[at] == NULL) m->n++;
    m->keys[at] = key;
    m->vals[at] = val;
}

uint32_t string_map_get(const StringMap *m, const char *key) {
    uint32_t at = slot(m, key);
    return m->keys[at] != NULL ? m->vals[at] : STRING_MAP_NONE;
}

void interner_init(Interner *s, Arena *a) { *s = (Interner){.map.arena = a}; }

// The map aborts if the arena is full, so the room for it is checked first.
static Err grow(Interner *s) {
    Arena       *a = s->map.arena;
    uint32_t     cap = s->cap == 0 ? 16 : 2 * s->cap;
    size_t       needed = (size_t)cap * 64 + 4096;
    const char **at = NULL;
    if (s->cap < 1u << 28 && arena_left(a) > needed) at = arena_try_new(a, const char *, cap);
    if (at == NULL) return err_set(ERR_LIMIT, "no memory for a table of %u names", cap);
    if (s->cap == 0) string_map_init(&s->map, a);
    if (s->n > 0) memcpy(at, s->at, s->n * sizeof *at);
    s->at = at;
    s->cap = cap;
    return ERR_OK;
}

Err interner_add(Interner *s, const char *name, uint32_t *index) {
    uint32_t found = interner_find(s, name);
    if (found == STRING_MAP_NONE) {
        if (s->n == s->cap) TRY(grow(s));
        found = s->n++;
        s->at[found] = name;
        string_map_put(&s->map, name, found);
    }
    *index = found;
    return ERR_OK;
}

uint32_t interner_find(const Interner *s, const char *name) {
    return s->n > 0 ? string_map_get(&s->map, name) : STRING_MAP_NONE;
}
