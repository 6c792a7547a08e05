// cotenant node policies, chip policies, cluster policies: what each policy does, and its settings.
#include <stdio.h>
#include <string.h>

#include "base/settings.h"
#include "cli/commands.h"
#include "eval/policy_choice.h"

static void print_policy(const PolicyInfo *p) {
    printf("%-12s %s", p->name, p->about);
    if (p->kind != NULL) printf("; %s", p->kind);
    if (p->paper != NULL) printf(" (%s)", p->paper);
    printf("\n");
    for (uint32_t i = 0; i < p->n_rows; i++) {
        char text[64], range[64];
        setting_range_text(&p->rows[i], range, sizeof range);
        printf("  %-24s %s (%s; %s)\n", p->rows[i].key, p->rows[i].about,
               setting_text(&p->rows[i], p->rows[i].def, text, sizeof text), range);
    }
}

static json_t *policy_json(const PolicyInfo *p) {
    json_t *settings = json_array();
    for (uint32_t i = 0; i < p->n_rows; i++) {
        char text[64];
        json_array_append_new(
            settings, json_pack("{s:s,s:s,s:s}", "key", p->rows[i].key, "default",
                                setting_text(&p->rows[i], p->rows[i].def, text, sizeof text),
                                "about", p->rows[i].about));
    }
    return json_pack("{s:s,s:s,s:s*,s:s*,s:o}", "policy", p->name, "about", p->about, "kind",
                     p->kind, "paper", p->paper, "settings", settings);
}

static int unknown(Tier tier, const char *name) {
    Arena a = {0};
    Err   e = arena_init(&a, (size_t)1 << 20);
    if (e == ERR_OK) e = policy_info_unknown(tier, name, &a);
    arena_finish(&a);
    return command_failed(e);
}

static int list_policies(Tier tier, const Command *c, int argc, char **argv) {
    bool         json = false;
    const char  *name = NULL;
    uint32_t     n = 0;
    PolicyInfo   p;
    const ArgRow rows[] = {
        {"json", ARG_FLAG, &json, NULL, "one JSON document on stdout", 0, 0},
    };
    int code = args_parse(c, rows, 1, argc, argv, &name, 0, 1, &n);
    if (code >= 0) return code;
    if (n > 0 && !policy_info_find(tier, name, &p)) return unknown(tier, name);
    json_t *list = json ? json_array() : NULL;
    for (uint32_t i = 0; policy_info(tier, i, &p); i++) {
        if (n > 0 && strcmp(p.name, name) != 0) continue;
        if (json)
            json_array_append_new(list, policy_json(&p));
        else
            print_policy(&p);
    }
    return json ? command_json(list) : 0;
}

int cmd_node_policies(const Command *c, int argc, char **argv) {
    return list_policies(TIER_NODE, c, argc, argv);
}

int cmd_chip_policies(const Command *c, int argc, char **argv) {
    return list_policies(TIER_CHIP, c, argc, argv);
}

int cmd_cluster_policies(const Command *c, int argc, char **argv) {
    return list_policies(TIER_CLUSTER, c, argc, argv);
}
