// The policies of a chip: what each does, the paper that it follows, its settings.
#include "cli/commands.h"
#include "cli/policy_card.h"
#include "policy/policies.h"

static PolicyCard card_of(const ChipPolicy *p) {
    return (PolicyCard){.name = p->name,
                        .about = p->about,
                        .paper = p->paper,
                        .kind = p->clairvoyant ? "clairvoyant"
                                : p->learned   ? "learned"
                                               : NULL,
                        .rows = p->rows,
                        .n_rows = p->n_rows};
}

static json_t *list_json(void) {
    json_t *list = json_array();
    for (uint32_t i = 0; policies_chip_at(i) != NULL; i++) {
        PolicyCard c = card_of(policies_chip_at(i));
        json_array_append_new(list, policy_card_json(&c));
    }
    return list;
}

int cmd_chip_policies(const Command *c, int argc, char **argv) {
    bool         json = false;
    const ArgRow rows[] = {
        {"json", ARG_FLAG, &json, NULL, "one JSON document on stdout", 0, 0},
    };
    int code = args_parse(c, rows, 1, argc, argv, NULL, 0, 0, NULL);
    if (code >= 0) return code;
    if (json) return command_json(list_json());
    for (uint32_t i = 0; policies_chip_at(i) != NULL; i++) {
        PolicyCard card = card_of(policies_chip_at(i));
        policy_card_print(&card);
    }
    return 0;
}
