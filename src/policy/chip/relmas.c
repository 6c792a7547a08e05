// relmas: prototype
#include "policy/chip/relmas_look.h"
#include "policy/chip/relmas_serve.h"
#include "policy/policies.h"

typedef struct Relmas {
    RelmasTable table;
    RelmasServe serve;
} Relmas;

static Relmas *carve_all(const ChipSetup *s, Carve *from) {
    Relmas *r = carve(from, Relmas, 1), none;
    Relmas *to = r == NULL ? &none : r;
    relmas_table_carve(&to->table, s, from);
    relmas_serve_carve(&to->serve, s, from);
    return r;
}

static size_t size_of(const ChipSetup *s, const void *settings) {
    (void)settings;
    Carve c = {0};
    carve_all(s, &c);
    return c.used;
}

static void init(void *state, const ChipSetup *s, const void *settings, const void *loaded) {
    (void)loaded;
    Carve   c = {.base = state};
    Relmas *r = carve_all(s, &c);
    relmas_table_fill(&r->table, s);
    r->serve.rule = (RelmasRule){s, &r->table, *(const RelmasSettings *)settings};
}

static uint32_t decide(void *state, const ChipView *v, ChipAction *out, uint32_t max) {
    Relmas *r = state;
    return relmas_serve(&r->serve, v, out, max);
}

static const Setting rows[] = {
#define X(...) SETTING_ROW(RelmasSettings, __VA_ARGS__)
    RELMAS_SETTINGS(X)
#undef X
};

const ChipPolicy chip_policy_relmas = {
    .name = "relmas",
    .about = "a network over the queue corrects a dispatcher that reckons in prices",
    .learned = true,
    .rows = rows,
    .n_rows = sizeof rows / sizeof *rows,
    .settings_size = sizeof(RelmasSettings),
    .state_size = size_of,
    .init = init,
    .decide = decide,
};
