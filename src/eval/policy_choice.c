#include "eval/policy_choice.h"

#include <string.h>

#include "base/text.h"
#include "policy/policies.h"

static bool node_info(const NodePolicy *p, PolicyInfo *out) {
    if (p == NULL) return false;
    *out = (PolicyInfo){.policy = p,
                        .name = p->name,
                        .about = p->about,
                        .rows = p->rows,
                        .n_rows = p->n_rows,
                        .settings_size = p->settings_size};
    return true;
}

static bool chip_info(const ChipPolicy *p, PolicyInfo *out) {
    if (p == NULL) return false;
    *out = (PolicyInfo){.policy = p,
                        .name = p->name,
                        .about = p->about,
                        .paper = p->paper,
                        .part_of = p->of,
                        .kind = p->clairvoyant ? "clairvoyant"
                                : p->learned   ? "learned"
                                               : NULL,
                        .rows = p->rows,
                        .n_rows = p->n_rows,
                        .settings_size = p->settings_size};
    return true;
}

static bool cluster_info(const ClusterPolicy *p, PolicyInfo *out) {
    static const char *const kinds[2][3] = {
        {[CLUSTER_BLIND] = "knows no durations",
         [CLUSTER_PREDICTED] = "knows estimates of durations",
         [CLUSTER_ORACLE] = "knows durations"},
        {[CLUSTER_BLIND] = "learned, knows no durations",
         [CLUSTER_PREDICTED] = "learned, knows estimates of durations",
         [CLUSTER_ORACLE] = "learned, knows durations"}};
    if (p == NULL) return false;
    *out = (PolicyInfo){.policy = p,
                        .name = p->name,
                        .about = p->about,
                        .paper = p->paper,
                        .part_of = p->of,
                        .kind = kinds[p->learned][p->knows],
                        .rows = p->rows,
                        .n_rows = p->n_rows,
                        .settings_size = p->settings_size};
    return true;
}

bool policy_info(Tier t, uint32_t i, PolicyInfo *out) {
    switch (t) {
    case TIER_NODE: return node_info(policies_node_at(i), out);
    case TIER_CHIP: return chip_info(policies_chip_at(i), out);
    case TIER_CLUSTER: return cluster_info(policies_cluster_at(i), out);
    case TIERS: break;
    }
    return false;
}

bool policy_info_find(Tier t, const char *name, PolicyInfo *out) {
    PolicyInfo p;
    for (uint32_t i = 0; policy_info(t, i, &p); i++) {
        if (strcmp(p.name, name) != 0) continue;
        *out = p;
        return true;
    }
    return false;
}

Settings policy_choice_settings(const PolicyChoice *c, Arena *a) {
    return (Settings){
        .rows = c->info.rows, .n_rows = c->info.n_rows, .values = c->settings, .arena = a};
}

Err policy_info_unknown(Tier t, const char *name, Arena *a) {
    char       *list = arena_str(a, "there are "), hint[TEXT_MEANT];
    const char *names[POLICY_CHOICES];
    PolicyInfo  p;
    uint32_t    n = 0;
    for (; n < POLICY_CHOICES && policy_info(t, n, &p); n++) {
        names[n] = p.name;
        list = arena_printf(a, "%s%s%s", list, n > 0 ? ", " : "", p.name);
    }
    return err_set(ERR_ARG, "no policy '%s'; %s", name, text_meant(name, names, n, list, hint));
}

static Err add(const PolicyInfo *p, Arena *a, PolicyChoices *out) {
    for (uint32_t i = 0; i < out->n; i++)
        if (out->at[i].policy == p->policy)
            return err_set(ERR_ARG, "policy '%s' is named twice", p->name);
    if (out->n == POLICY_CHOICES) return err_set(ERR_LIMIT, "too many policies");
    PolicyChoice *c = &out->at[out->n++];
    *c = (PolicyChoice){.info = *p, .policy = p->policy, .label = p->name, .part_of = p->part_of};
    if (p->settings_size == 0) return ERR_OK;
    c->settings = arena_alloc(a, 1, p->settings_size, 16);
    Settings s = policy_choice_settings(c, a);
    settings_default(&s);
    return ERR_OK;
}

static Err add_named(Tier t, const char *list, Arena *a, PolicyChoices *out) {
    for (const char *at = list;; at++) {
        size_t      n = strcspn(at, ",");
        const char *name = arena_printf(a, "%.*s", (int)n, at);
        PolicyInfo  p;
        if (!policy_info_find(t, name, &p)) return policy_info_unknown(t, name, a);
        TRY(add(&p, a, out));
        at += n;
        if (*at == '\0') return ERR_OK;
    }
}

static Err set(const char *option, const char *text, Arena *a, const PolicyChoices *c) {
    const char *dot = strchr(text, '.');
    size_t      n = dot != NULL ? (size_t)(dot - text) : 0;
    for (uint32_t i = 0; i < c->n && dot != NULL; i++) {
        const char *name = c->at[i].info.name;
        if (strlen(name) != n || strncmp(name, text, n) != 0) continue;
        Settings s = policy_choice_settings(&c->at[i], a);
        Err      e = settings_set(&s, dot + 1);
        return e == ERR_OK ? e : err_add(ERR_ARG, "--%s %s", option, text);
    }
    return err_set(ERR_ARG, "--%s %s: write POLICY.KEY=VALUE, for a policy that takes part", option,
                   text);
}

Err policy_choices_read(Tier t, const char *list, const ArgList *sets, Arena *a,
                        PolicyChoices *out) {
    PolicyInfo p;
    *out = (PolicyChoices){.all = strcmp(list, "all") == 0};
    if (out->all) {
        for (uint32_t i = 0; policy_info(t, i, &p); i++) TRY(add(&p, a, out));
    } else {
        TRY(add_named(t, list, a, out));
    }
    for (uint32_t i = 0; i < sets->n; i++)
        TRY(set(sets->option != NULL ? sets->option : "set", sets->at[i], a, out));
    return ERR_OK;
}

Err policy_choice_read(Tier t, const char *name, const ArgList *sets, Arena *a, PolicyChoice *out) {
    PolicyChoices all;
    TRY(policy_choices_read(t, name, sets, a, &all));
    if (all.n != 1) return err_set(ERR_ARG, "--policy %s: one policy runs at a time", name);
    *out = all.at[0];
    return ERR_OK;
}

const PolicyChoice *policy_choices_find(const PolicyChoices *c, const char *label) {
    for (uint32_t i = 0; i < c->n; i++)
        if (strcmp(c->at[i].label, label) == 0) return &c->at[i];
    return NULL;
}

static const struct Variant {
    const char *group, *policy, *settings;
} variants[] = {
#define X(group, policy, settings) {group, policy, settings},
#include "eval/cluster_ablation.def"
#undef X
};

static Err set_all(Settings *s, const char *words, Arena *a) {
    char *at = arena_str(a, words), *rest = NULL;
    for (char *one = strtok_r(at, " ", &rest); one != NULL; one = strtok_r(NULL, " ", &rest))
        TRY(settings_set(s, one));
    return ERR_OK;
}

static Err add_variant(Arena *a, PolicyChoices *c, const struct Variant *x,
                       const PolicyChoice *whole) {
    if (c->n == POLICY_CHOICES) return err_set(ERR_LIMIT, "too many policies");
    PolicyChoice *part = &c->at[c->n++];
    *part = *whole;
    part->label = arena_printf(a, "%s %s", x->policy, x->settings);
    part->part_of = whole->info.name;
    part->settings = arena_alloc(a, 1, whole->info.settings_size, 16);
    memcpy(part->settings, whole->settings, whole->info.settings_size);
    Settings s = policy_choice_settings(part, a);
    Err      e = set_all(&s, x->settings, a);
    return e == ERR_OK ? e : err_add(ERR_ARG, "%s", part->label);
}

Err policy_choices_variants(Arena *a, const char *group, PolicyChoices *c) {
    uint32_t before = c->n;
    bool     known = false;
    for (size_t k = 0; k < sizeof variants / sizeof *variants; k++) {
        const struct Variant *x = &variants[k];
        const PolicyChoice   *whole = policy_choices_find(c, x->policy);
        if (strcmp(x->group, group) != 0) continue;
        known = true;
        if (whole != NULL) TRY(add_variant(a, c, x, whole));
    }
    if (!known) return err_set(ERR_ARG, "%s: no such ladder; there is coordination", group);
    if (c->n == before)
        return err_set(ERR_ARG, "%s: no policy that takes part has parts to take away", group);
    return ERR_OK;
}

Err chip_choice_load(const PolicyChoice *c, const ChipSetup *setup, Arena *a, const void **loaded) {
    const ChipPolicy *p = c->policy;
    *loaded = NULL;
    return p->load != NULL ? p->load(setup, c->settings, a, loaded) : ERR_OK;
}

Err cluster_choice_load(const PolicyChoice *c, const ClusterSetup *setup, Arena *a,
                        const void **loaded) {
    const ClusterPolicy *p = c->policy;
    *loaded = NULL;
    return p->load != NULL ? p->load(setup, c->settings, a, loaded) : ERR_OK;
}
