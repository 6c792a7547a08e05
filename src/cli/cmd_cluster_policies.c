// The policies of a cluster: what each does and knows, the paper that it follows, its settings.
#include <string.h>

#include "cli/commands.h"
#include "cli/policy_card.h"
#include "policy/policies.h"

static PolicyCard card_of(const ClusterPolicy *p) {
    static const char *const kinds[2][3] = {
        {[CLUSTER_BLIND] = "knows no durations",
         [CLUSTER_PREDICTED] = "knows estimates of durations",
         [CLUSTER_ORACLE] = "knows durations"},
        {[CLUSTER_BLIND] = "learned, knows no durations",
         [CLUSTER_PREDICTED] = "learned, knows estimates of durations",
         [CLUSTER_ORACLE] = "learned, knows durations"}};
    return (PolicyCard){.name = p->name,
                        .about = p->about,
                        .paper = p->paper,
                        .kind = kinds[p->learned][p->knows],
                        .rows = p->rows,
                        .n_rows = p->n_rows};
}

static bool wanted(const ClusterPolicy *p, const char *name) {
    return name == NULL || strcmp(p->name, name) == 0;
}

int cmd_cluster_policies(const Command *c, int argc, char **argv) {
    bool         json = false;
    const char  *name = NULL;
    uint32_t     n = 0;
    json_t      *list;
    const ArgRow rows[] = {
        {"json", ARG_FLAG, &json, NULL, "one JSON document on stdout", 0, 0},
    };
    int code = args_parse(c, rows, 1, argc, argv, &name, 0, 1, &n);
    if (code >= 0) return code;
    if (n > 0 && policies_cluster_find(name) == NULL)
        return args_fail(EXIT_USAGE,
                         "cluster policies: no policy '%s'; without a name all are told", name);
    list = json ? json_array() : NULL;
    for (uint32_t i = 0; policies_cluster_at(i) != NULL; i++) {
        PolicyCard card = card_of(policies_cluster_at(i));
        if (!wanted(policies_cluster_at(i), n > 0 ? name : NULL)) continue;
        if (json)
            json_array_append_new(list, policy_card_json(&card));
        else
            policy_card_print(&card);
    }
    return json ? command_json(list) : 0;
}
