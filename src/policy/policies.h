// Policies: the registry of all policies by tier and name; one row each in node.def, chip.def or
// cluster.def.
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

// By index in the order of the .def file, NULL after the last; by name, NULL if unknown.
const NodePolicy *policies_node_at(uint32_t i);
const NodePolicy *policies_node_find(const char *name);

const ChipPolicy *policies_chip_at(uint32_t i);
const ChipPolicy *policies_chip_find(const char *name);

const ClusterPolicy *policies_cluster_at(uint32_t i);
const ClusterPolicy *policies_cluster_find(const char *name);
