#include "policy/policies.h"

#include <string.h>

static const NodePolicy *const node[] = {
#define X(name) &policy_##name,
#include "policy/node.def"
#undef X
    NULL,
};

static const ChipPolicy *const chip[] = {
#define X(name) &chip_policy_##name,
#include "policy/chip.def"
#undef X
    NULL,
};

static const ClusterPolicy *const cluster[] = {
#define X(name) &cluster_policy_##name,
#include "policy/cluster.def"
#undef X
    NULL,
};

#define ACCESSORS(tier, Policy)                                                                    \
    const Policy *policies_##tier##_at(uint32_t i) {                                               \
        for (uint32_t k = 0; (tier)[k] != NULL; k++)                                               \
            if (k == i) return (tier)[k];                                                          \
        return NULL;                                                                               \
    }                                                                                              \
    const Policy *policies_##tier##_find(const char *name) {                                       \
        for (uint32_t i = 0; (tier)[i] != NULL; i++)                                               \
            if (strcmp((tier)[i]->name, name) == 0) return (tier)[i];                              \
        return NULL;                                                                               \
    }

ACCESSORS(node, NodePolicy)
ACCESSORS(chip, ChipPolicy)
ACCESSORS(cluster, ClusterPolicy)
