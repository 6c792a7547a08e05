// ChipChoice: the policies of a chip that the user named, each with its settings.
#pragma once

#include "base/option_list.h"
#include "contract/chip.h"

enum { CHIP_CHOICES = 32 };

typedef struct ChipChoice {
    const ChipPolicy *policy;
    void             *settings;  // NULL: the policy has none
} ChipChoice;

typedef struct ChipChoices {
    ChipChoice at[CHIP_CHOICES];
    uint32_t   n;
} ChipChoices;

// list: names parted by commas, or all; sets: POLICY.KEY=VALUE, for policies that are named.
MUST_USE Err chip_choice_read(const char *list, const ArgList *sets, Arena *a, ChipChoices *out);
// What its settings name on disk, for a package; NULL when that is nothing.
MUST_USE Err chip_choice_load(const ChipChoice *c, const ChipSetup *setup, Arena *a,
                              const void **loaded);
Settings     chip_choice_settings(const ChipChoice *c, Arena *a);
