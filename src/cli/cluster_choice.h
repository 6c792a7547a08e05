// ClusterChoice: the policies of a cluster that the user named, each with its settings.
#pragma once

#include "cli/args.h"
#include "contract/cluster.h"

enum { CLUSTER_CHOICES = 64 };

typedef struct ClusterChoice {
    const ClusterPolicy *policy;
    void                *settings;  // NULL: the policy has none
} ClusterChoice;

typedef struct ClusterChoices {
    ClusterChoice at[CLUSTER_CHOICES];
    uint32_t      n;
} ClusterChoices;

// list: names parted by commas, or all; sets: POLICY.KEY=VALUE, for policies that are named.
MUST_USE Err cluster_choice_read(const char *list, const ArgList *sets, Arena *a,
                                 ClusterChoices *out);
// What its settings name on disk, for a cluster; NULL when that is nothing.
MUST_USE Err cluster_choice_load(const ClusterChoice *c, const ClusterSetup *setup, Arena *a,
                                 const void **loaded);
Settings     cluster_choice_settings(const ClusterChoice *c, Arena *a);
