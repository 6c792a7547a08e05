// PolicyChoice: the policies of a tier that the user named, each with its settings.
#pragma once

#include "base/option_list.h"
#include "base/settings.h"
#include "contract/chip.h"
#include "contract/cluster.h"
#include "contract/node.h"
#include "result/metric.h"

enum { POLICY_CHOICES = 64 };

typedef struct PolicyInfo {  // what the policies of all tiers have in common
    const void    *policy;   // NodePolicy, ChipPolicy or ClusterPolicy
    const char    *name, *about;
    const char    *paper;    // that it follows; NULL: none
    const char    *part_of;  // policy of which it is a part; NULL: none
    const char    *kind;     // learned, clairvoyant, or what it knows of durations; NULL: a rule
    const Setting *rows;
    uint32_t       n_rows;
    size_t         settings_size;
} PolicyInfo;

// Row i of policy/TIER.def; false after the last.
bool policy_info(Tier t, uint32_t i, PolicyInfo *out);
bool policy_info_find(Tier t, const char *name, PolicyInfo *out);
Err  policy_info_unknown(Tier t, const char *name, Arena *a);  // ERR_ARG with a suggestion

typedef struct PolicyChoice {
    PolicyInfo  info;
    const void *policy;    // info.policy
    void       *settings;  // NULL: the policy has none
    const char *label;     // its name; of a variant with the setting that differs
    const char *part_of;   // policy of which it is a part or variant; NULL: none
} PolicyChoice;

typedef struct PolicyChoices {
    PolicyChoice at[POLICY_CHOICES];
    uint32_t     n;
    bool         all;  // no policy was named
} PolicyChoices;

// list: names separated by commas, or all; sets: POLICY.KEY=VALUE, for policies that are named.
MUST_USE Err policy_choices_read(Tier t, const char *list, const ArgList *sets, Arena *a,
                                 PolicyChoices *out);
// The same of --policy, which names one.
MUST_USE Err policy_choice_read(Tier t, const char *name, const ArgList *sets, Arena *a,
                                PolicyChoice *out);
// Adds a group of the variants in eval/cluster_ablation.def.
MUST_USE Err        policy_choices_variants(Arena *a, const char *group, PolicyChoices *c);
const PolicyChoice *policy_choices_find(const PolicyChoices *c, const char *label);  // or NULL
Settings            policy_choice_settings(const PolicyChoice *c, Arena *a);

// Loads what the settings name on disk (weights); *loaded is NULL when that is nothing.
MUST_USE Err chip_choice_load(const PolicyChoice *c, const ChipSetup *setup, Arena *a,
                              const void **loaded);
MUST_USE Err cluster_choice_load(const PolicyChoice *c, const ClusterSetup *setup, Arena *a,
                                 const void **loaded);
