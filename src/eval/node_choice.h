// NodeChoice: the policies that the user named, each with its settings.
#pragma once

#include "base/option_list.h"
#include "contract/node.h"

enum { NODE_CHOICES = 32 };

typedef struct NodeChoice {
    const NodePolicy *policy;
    void             *settings;  // NULL: the policy has none
} NodeChoice;

typedef struct NodeChoices {
    NodeChoice at[NODE_CHOICES];
    uint32_t   n;
} NodeChoices;

// list: names parted by commas, or all; sets: POLICY.KEY=VALUE, for policies that are named.
MUST_USE Err node_choice_read(const char *list, const ArgList *sets, Arena *a, NodeChoices *out);
Settings     node_choice_settings(const NodeChoice *c, Arena *a);
