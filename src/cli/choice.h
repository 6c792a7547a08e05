// Choice: the policies that the user named, each with its settings.
#pragma once

#include "cli/args.h"
#include "contract/node.h"

enum { CHOICES_MAX = 32 };

typedef struct Choice {
    const NodePolicy *policy;
    void             *settings;  // NULL: the policy has none
} Choice;

typedef struct Choices {
    Choice   at[CHOICES_MAX];
    uint32_t n;
} Choices;

// list: names parted by commas, or all; sets: POLICY.KEY=VALUE, for policies that are named.
MUST_USE Err choice_read(const char *list, const ArgList *sets, Arena *a, Choices *out);
Settings     choice_settings(const Choice *c, Arena *a);
