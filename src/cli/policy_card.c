#include "cli/policy_card.h"

#include <stdio.h>

#include "base/settings.h"

void policy_card_print(const PolicyCard *c) {
    printf("%-12s %s", c->name, c->about);
    if (c->kind != NULL) printf("; %s", c->kind);
    if (c->paper != NULL) printf(" (%s)", c->paper);
    printf("\n");
    for (uint32_t i = 0; i < c->n_rows; i++) {
        char text[64], range[64];
        setting_range_text(&c->rows[i], range, sizeof range);
        printf("  %-24s %s (%s; %s)\n", c->rows[i].key, c->rows[i].about,
               setting_text(&c->rows[i], c->rows[i].def, text, sizeof text), range);
    }
}

json_t *policy_card_json(const PolicyCard *c) {
    json_t *settings = json_array();
    for (uint32_t i = 0; i < c->n_rows; i++) {
        char text[64];
        json_array_append_new(
            settings, json_pack("{s:s,s:s,s:s}", "key", c->rows[i].key, "default",
                                setting_text(&c->rows[i], c->rows[i].def, text, sizeof text),
                                "about", c->rows[i].about));
    }
    return json_pack("{s:s,s:s,s:s*,s:s*,s:o}", "policy", c->name, "about", c->about, "kind",
                     c->kind, "paper", c->paper, "settings", settings);
}
