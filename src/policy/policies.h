// Policies: all there are, by tier and name. One line in a list file each.
#pragma once

#include "contract/node.h"

#define X(name) extern const NodePolicy policy_##name;
#include "policy/node.def"
#undef X

// In the order of policy/node.def; NULL after the last, or when there is none of that name.
const NodePolicy *policies_node_at(uint32_t i);
const NodePolicy *policies_node_find(const char *name);
