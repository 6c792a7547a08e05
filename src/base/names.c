#include "base/names.h"

#include <string.h>

void names_init(Names *s, Arena *a) { *s = (Names){.map.arena = a}; }

// A map that grows takes what it needs or aborts, so there must be room for it before.
static Err grow(Names *s) {
    Arena       *a = s->map.arena;
    uint32_t     cap = s->cap == 0 ? 16 : 2 * s->cap;
    size_t       needed = (size_t)cap * 64 + 4096;
    const char **at = NULL;
    if (s->cap < 1u << 28 && a->cap - a->used > needed) at = arena_try_new(a, const char *, cap);
    if (at == NULL) return err_set(ERR_LIMIT, "no memory for a table of %u names", cap);
    if (s->cap == 0) map_init(&s->map, a);
    if (s->n > 0) memcpy(at, s->at, s->n * sizeof *at);
    s->at = at;
    s->cap = cap;
    return ERR_OK;
}

Err names_add(Names *s, const char *name, uint32_t *index) {
    uint32_t found = names_find(s, name);
    if (found == MAP_NONE) {
        if (s->n == s->cap) TRY(grow(s));
        found = s->n++;
        s->at[found] = name;
        map_put(&s->map, name, found);
    }
    *index = found;
    return ERR_OK;
}

uint32_t names_find(const Names *s, const char *name) {
    return s->n > 0 ? map_get(&s->map, name) : MAP_NONE;
}
