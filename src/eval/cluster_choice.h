// ClusterChoice: the policies of a cluster that the user named, each with its settings.
#pragma once

#include "base/option_list.h"
#include "contract/cluster.h"

enum { CLUSTER_CHOICES = 64 };

typedef struct ClusterChoice {
    const ClusterPolicy *policy;
    void                *settings;  // NULL: the policy has none
    const char          *label;     // its name; of a variant with what is different
    const char          *of;        // the policy that it is a part or variant of; NULL: none
} ClusterChoice;

typedef struct ClusterChoices {
    ClusterChoice at[CLUSTER_CHOICES];
    uint32_t      n;
    bool          all;  // nobody was named
} ClusterChoices;

// list: names parted by commas, or all; sets: POLICY.KEY=VALUE, for policies that are named.
MUST_USE Err cluster_choice_read(const char *list, const ArgList *sets, Arena *a,
                                 ClusterChoices *out);
// Adds the variants of cluster_ablation.def.
MUST_USE Err         cluster_choice_ablate(Arena *a, ClusterChoices *c);
const ClusterChoice *cluster_choice_find(const ClusterChoices *c, const char *label);  // or NULL
// What its settings name on disk, for a cluster; NULL when that is nothing.
MUST_USE Err cluster_choice_load(const ClusterChoice *c, const ClusterSetup *setup, Arena *a,
                                 const void **loaded);
Settings     cluster_choice_settings(const ClusterChoice *c, Arena *a);
