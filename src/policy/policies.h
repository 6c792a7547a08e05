// Policies: all there are, by tier and name. One line in a list file each.
#pragma once

#include "contract/chip.h"
#include "contract/cluster.h"
#include "contract/node.h"

#define X(name) extern const NodePolicy policy_##name;
#include "policy/node.def"
#undef X

#define X(name) extern const ChipPolicy chip_policy_##name;
#include "policy/chip.def"
#undef X

#define X(name) extern const ClusterPolicy cluster_policy_##name;
#include "policy/cluster.def"
#undef X

// In the order of policy/node.def; NULL after the last, or when there is none of that name.
const NodePolicy *policies_node_at(uint32_t i);
const NodePolicy *policies_node_find(const char *name);

// The same for policy/chip.def.
const ChipPolicy *policies_chip_at(uint32_t i);
const ChipPolicy *policies_chip_find(const char *name);

// And for policy/cluster.def.
const ClusterPolicy *policies_cluster_at(uint32_t i);
const ClusterPolicy *policies_cluster_find(const char *name);
