// PolicyCard: what is told of one policy: its name, what it does, its settings.
#pragma once

#include <jansson.h>

#include "base/settings.h"

typedef struct PolicyCard {
    const char    *name, *about, *paper;  // paper: NULL when it follows none
    const char    *kind;                  // NULL: a rule
    const Setting *rows;
    uint32_t       n_rows;
} PolicyCard;

void    policy_card_print(const PolicyCard *c);  // on stdout
json_t *policy_card_json(const PolicyCard *c);
