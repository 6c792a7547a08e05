#include "eval/chip_choice.h"

#include <string.h>

#include "policy/policies.h"

Settings chip_choice_settings(const ChipChoice *c, Arena *a) {
    return (Settings){
        .rows = c->policy->rows, .n_rows = c->policy->n_rows, .values = c->settings, .arena = a};
}

static Err unknown(const char *name, size_t n, Arena *a) {
    char *names = arena_str(a, "");
    for (uint32_t i = 0; policies_chip_at(i) != NULL; i++)
        names = arena_printf(a, "%s%s%s", names, i > 0 ? ", " : "", policies_chip_at(i)->name);
    return err_set(ERR_ARG, "no policy '%.*s'; there are %s", (int)n, name, names);
}

static Err add(const ChipPolicy *p, Arena *a, ChipChoices *out) {
    for (uint32_t i = 0; i < out->n; i++)
        if (out->at[i].policy == p) return err_set(ERR_ARG, "policy '%s' is named twice", p->name);
    if (out->n == CHIP_CHOICES) return err_set(ERR_LIMIT, "too many policies");
    ChipChoice *c = &out->at[out->n++];
    c->policy = p;
    if (p->settings_size == 0) return ERR_OK;
    c->settings = arena_alloc(a, 1, p->settings_size, 16);
    Settings s = chip_choice_settings(c, a);
    settings_default(&s);
    return ERR_OK;
}

static Err add_named(const char *list, Arena *a, ChipChoices *out) {
    for (const char *at = list;; at++) {
        size_t            n = strcspn(at, ",");
        const ChipPolicy *p = policies_chip_find(arena_printf(a, "%.*s", (int)n, at));
        if (p == NULL) return unknown(at, n, a);
        TRY(add(p, a, out));
        at += n;
        if (*at == '\0') return ERR_OK;
    }
}

static Err set(const char *text, Arena *a, const ChipChoices *c) {
    const char *dot = strchr(text, '.');
    size_t      n = dot != NULL ? (size_t)(dot - text) : 0;
    for (uint32_t i = 0; i < c->n && dot != NULL; i++) {
        const char *name = c->at[i].policy->name;
        if (strlen(name) != n || strncmp(name, text, n) != 0) continue;
        Settings s = chip_choice_settings(&c->at[i], a);
        Err      e = settings_set(&s, dot + 1);
        return e == ERR_OK ? e : err_add(ERR_ARG, "--set %s", text);
    }
    return err_set(ERR_ARG, "--set %s: write POLICY.KEY=VALUE, for a policy that takes part", text);
}

Err chip_choice_read(const char *list, const ArgList *sets, Arena *a, ChipChoices *out) {
    *out = (ChipChoices){0};
    if (strcmp(list, "all") == 0) {
        for (uint32_t i = 0; policies_chip_at(i) != NULL; i++)
            TRY(add(policies_chip_at(i), a, out));
    } else {
        TRY(add_named(list, a, out));
    }
    for (uint32_t i = 0; i < sets->n; i++) TRY(set(sets->at[i], a, out));
    return ERR_OK;
}

Err chip_choice_load(const ChipChoice *c, const ChipSetup *setup, Arena *a, const void **loaded) {
    *loaded = NULL;
    return c->policy->load != NULL ? c->policy->load(setup, c->settings, a, loaded) : ERR_OK;
}
