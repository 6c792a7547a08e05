#include "eval/cluster_choice.h"

#include <string.h>

#include "policy/policies.h"

Settings cluster_choice_settings(const ClusterChoice *c, Arena *a) {
    return (Settings){
        .rows = c->policy->rows, .n_rows = c->policy->n_rows, .values = c->settings, .arena = a};
}

static Err unknown(const char *name, size_t n, Arena *a) {
    char *names = arena_str(a, "");
    for (uint32_t i = 0; policies_cluster_at(i) != NULL; i++)
        names = arena_printf(a, "%s%s%s", names, i > 0 ? ", " : "", policies_cluster_at(i)->name);
    return err_set(ERR_ARG, "no policy '%.*s'; there are %s", (int)n, name, names);
}

static Err add(const ClusterPolicy *p, Arena *a, ClusterChoices *out) {
    for (uint32_t i = 0; i < out->n; i++)
        if (out->at[i].policy == p) return err_set(ERR_ARG, "policy '%s' is named twice", p->name);
    if (out->n == CLUSTER_CHOICES) return err_set(ERR_LIMIT, "too many policies");
    ClusterChoice *c = &out->at[out->n++];
    c->policy = p;
    c->label = p->name;
    c->of = p->of;
    if (p->settings_size == 0) return ERR_OK;
    c->settings = arena_alloc(a, 1, p->settings_size, 16);
    Settings s = cluster_choice_settings(c, a);
    settings_default(&s);
    return ERR_OK;
}

static Err add_named(const char *list, Arena *a, ClusterChoices *out) {
    for (const char *at = list;; at++) {
        size_t               n = strcspn(at, ",");
        const ClusterPolicy *p = policies_cluster_find(arena_printf(a, "%.*s", (int)n, at));
        if (p == NULL) return unknown(at, n, a);
        TRY(add(p, a, out));
        at += n;
        if (*at == '\0') return ERR_OK;
    }
}

static Err set(const char *text, Arena *a, const ClusterChoices *c) {
    const char *dot = strchr(text, '.');
    size_t      n = dot != NULL ? (size_t)(dot - text) : 0;
    for (uint32_t i = 0; i < c->n && dot != NULL; i++) {
        const char *name = c->at[i].policy->name;
        if (strlen(name) != n || strncmp(name, text, n) != 0) continue;
        Settings s = cluster_choice_settings(&c->at[i], a);
        Err      e = settings_set(&s, dot + 1);
        return e == ERR_OK ? e : err_add(ERR_ARG, "--set %s", text);
    }
    return err_set(ERR_ARG, "--set %s: write POLICY.KEY=VALUE, for a policy that takes part", text);
}

Err cluster_choice_read(const char *list, const ArgList *sets, Arena *a, ClusterChoices *out) {
    *out = (ClusterChoices){.all = strcmp(list, "all") == 0};
    if (out->all) {
        for (uint32_t i = 0; policies_cluster_at(i) != NULL; i++)
            TRY(add(policies_cluster_at(i), a, out));
    } else {
        TRY(add_named(list, a, out));
    }
    for (uint32_t i = 0; i < sets->n; i++) TRY(set(sets->at[i], a, out));
    return ERR_OK;
}

static const struct Ablation {
    const char *policy, *setting;
} ablations[] = {
#define X(policy, setting) {policy, setting},
#include "eval/cluster_ablation.def"
#undef X
    {NULL, NULL},
};

const ClusterChoice *cluster_choice_find(const ClusterChoices *c, const char *label) {
    for (uint32_t i = 0; i < c->n; i++)
        if (strcmp(c->at[i].label, label) == 0) return &c->at[i];
    return NULL;
}

Err cluster_choice_ablate(Arena *a, ClusterChoices *c) {
    uint32_t before = c->n;
    for (const struct Ablation *x = ablations; x->policy != NULL; x++) {
        const ClusterChoice *whole = cluster_choice_find(c, x->policy);
        if (whole == NULL) continue;
        if (c->n == CLUSTER_CHOICES) return err_set(ERR_LIMIT, "too many policies");
        ClusterChoice *part = &c->at[c->n++];
        *part = *whole;
        part->label = arena_printf(a, "%s %s", x->policy, x->setting);
        part->of = whole->policy->name;
        part->settings = arena_alloc(a, 1, whole->policy->settings_size, 16);
        memcpy(part->settings, whole->settings, whole->policy->settings_size);
        Settings s = cluster_choice_settings(part, a);
        Err      e = settings_set(&s, x->setting);
        if (e != ERR_OK) return err_add(ERR_ARG, "--ablate %s", part->label);
    }
    if (c->n == before)
        return err_set(ERR_ARG, "--ablate: no policy that takes part has parts to take away");
    return ERR_OK;
}

Err cluster_choice_load(const ClusterChoice *c, const ClusterSetup *setup, Arena *a,
                        const void **loaded) {
    *loaded = NULL;
    return c->policy->load != NULL ? c->policy->load(setup, c->settings, a, loaded) : ERR_OK;
}
