// prices: the rule under relmas, without its network
//
// Tasks take turns by little work and little slack, reckoned in prices of units and memory; each
// takes the unit that suits it, and bandwidth goes to those worth most: see relmas.c, 1 to 4.
// It stands here by itself to show what learning adds.
#include "policy/chip/relmas_serve.h"
#include "policy/policies.h"

typedef struct Prices {
    RelmasTable table;
    RelmasServe serve;
} Prices;

static Prices *carve_all(const ChipSetup *s, Carve *from) {
    Prices *p = carve(from, Prices, 1), none;
    Prices *to = p == NULL ? &none : p;
    relmas_table_carve(&to->table, s, from);
    relmas_serve_carve(&to->serve, s, from);
    return p;
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
    Prices *p = carve_all(s, &c);
    relmas_table_fill(&p->table, s);
    p->serve.rule = (RelmasRule){s, &p->table, *(const RelmasSettings *)settings};
}

static uint32_t decide(void *state, const ChipView *v, ChipAction *out, uint32_t max) {
    Prices *p = state;
    return relmas_serve(&p->serve, v, NULL, out, max);
}

static const Setting rows[] = {
#define X(...) SETTING_ROW(RelmasSettings, __VA_ARGS__)
    RELMAS_RULE_SETTINGS(X)
#undef X
};

const ChipPolicy chip_policy_prices = {
    .name = "prices",
    .about = "relmas without its network: little work first, units and bandwidth by their prices",
    .of = "relmas",
    .rows = rows,
    .n_rows = sizeof rows / sizeof *rows,
    .settings_size = sizeof(RelmasSettings),
    .state_size = size_of,
    .init = init,
    .decide = decide,
};
