// Seats: a name keeps its number while versions come and go.
#include <stdlib.h>
#include <string.h>

#include "serve/fleet_int.h"

static uint32_t hash(const char *at, size_t n) {  // FNV-1a
    uint32_t sum = UINT32_C(2166136261);
    for (size_t i = 0; i < n; i++) sum = (sum ^ (uint8_t)at[i]) * UINT32_C(16777619);
    return sum;
}

static uint16_t *place_of(Fleet *f, Str name) {
    uint32_t at = hash(name.at, name.len) % (2 * FLEET_SEATS);
    for (;; at = (at + 1) % (2 * FLEET_SEATS)) {
        if (f->places[at] == 0) return &f->places[at];
        const char *own = f->seats[f->places[at] - 1].name;
        if (strlen(own) == name.len && memcmp(own, name.at, name.len) == 0) return &f->places[at];
    }
}

Seat *seat_find(Fleet *f, Str name) {
    uint16_t *place = place_of(f, name);
    return *place != 0 ? &f->seats[*place - 1] : NULL;
}

const char *seat_intern(Fleet *f, const char *text) {
    size_t n = strlen(text) + 1;
    for (const Word *w = f->words; w != NULL; w = w->next)
        if (strcmp(w->text, text) == 0) return w->text;
    Word *own = arena_try(&f->names, 1, sizeof *own + n, _Alignof(Word));
    if (own == NULL) return NULL;
    memcpy(own->text, text, n);
    own->next = f->words;
    f->words = own;
    return own->text;
}

Err seat_take(Fleet *f, const char *name, uint32_t *seat) {
    uint16_t *place = place_of(f, (Str){name, strlen(name)});
    if (*place == 0) {
        if (f->n_seats == FLEET_SEATS)
            return err_set(ERR_LIMIT, "more than %d names of models were seen; start again",
                           FLEET_SEATS);
        const char *own = seat_intern(f, name);
        if (own == NULL) return err_set(ERR_LIMIT, "no memory for the name of a model");
        f->seats[f->n_seats++].name = own;
        *place = (uint16_t)f->n_seats;
    }
    *seat = (uint32_t)*place - 1;
    return ERR_OK;
}

// Numbers by their size, and before all that is none.
int version_compare(const char *a, const char *b) {
    size_t n = strlen(a), m = strlen(b);
    bool   x = n > 0 && strspn(a, "0123456789") == n, y = m > 0 && strspn(b, "0123456789") == m;
    if (x != y) return x ? -1 : 1;
    if (x && n != m) return n < m ? -1 : 1;
    return strcmp(a, b);
}

static int compare(const Unit *a, const Unit *b) {
    int by_name = strcmp(a->pub.name, b->pub.name);
    return by_name != 0 ? by_name : version_compare(a->pub.version, b->pub.version);
}

static Err make_room(Fleet *f) {
    if (f->n_listed < f->cap_listed) return ERR_OK;
    uint32_t cap = f->cap_listed > 0 ? 2 * f->cap_listed : 16;
    Unit   **more = realloc(f->listed, cap * sizeof(Unit *));
    if (more == NULL) return err_set(ERR_LIMIT, "no memory for %u models", cap);
    f->listed = more;
    f->cap_listed = cap;
    return ERR_OK;
}

static void take_out(Unit *u) {
    Unit **at = &u->fleet->out;
    while (*at != NULL && *at != u) at = &(*at)->next_out;
    if (*at == u) *at = u->next_out;
    u->next_out = NULL;
}

Err seat_add(Unit *u) {
    Fleet   *f = u->fleet;
    Unit   **in = &f->seats[u->pub.seat].units;
    uint32_t i = f->n_listed;
    TRY(make_room(f));
    while (*in != NULL && compare(*in, u) > 0) in = &(*in)->next;
    u->next = *in;
    *in = u;
    for (; i > 0 && compare(f->listed[i - 1], u) > 0; i--) f->listed[i] = f->listed[i - 1];
    f->listed[i] = u;
    f->n_listed++;
    u->listed = true;
    take_out(u);
    return ERR_OK;
}

void seat_remove(Unit *u) {
    Fleet *f = u->fleet;
    Unit **in = &f->seats[u->pub.seat].units;
    if (!u->listed) return;
    while (*in != u) in = &(*in)->next;
    *in = u->next;
    uint32_t i = 0;
    while (f->listed[i] != u) i++;
    memmove(&f->listed[i], &f->listed[i + 1], (f->n_listed - i - 1) * sizeof(Unit *));
    f->n_listed--;
    u->listed = false;
    u->next_out = f->out;
    f->out = u;
}
