#include "policy/policies.h"

#include <string.h>

static const NodePolicy *const node[] = {
#define X(name) &policy_##name,
#include "policy/node.def"
#undef X
    NULL,
};

const NodePolicy *policies_node_at(uint32_t i) {
    uint32_t n = 0;
    while (n < i && node[n] != NULL) n++;
    return node[n];
}

const NodePolicy *policies_node_find(const char *name) {
    for (uint32_t i = 0; node[i] != NULL; i++)
        if (strcmp(node[i]->name, name) == 0) return node[i];
    return NULL;
}

static const ChipPolicy *const chip[] = {
#define X(name) &chip_policy_##name,
#include "policy/chip.def"
#undef X
    NULL,
};

const ChipPolicy *policies_chip_at(uint32_t i) {
    uint32_t n = 0;
    while (n < i && chip[n] != NULL) n++;
    return chip[n];
}

const ChipPolicy *policies_chip_find(const char *name) {
    for (uint32_t i = 0; chip[i] != NULL; i++)
        if (strcmp(chip[i]->name, name) == 0) return chip[i];
    return NULL;
}

static const ClusterPolicy *const cluster[] = {
#define X(name) &cluster_policy_##name,
#include "policy/cluster.def"
#undef X
    NULL,
};

const ClusterPolicy *policies_cluster_at(uint32_t i) {
    uint32_t n = 0;
    while (n < i && cluster[n] != NULL) n++;
    return cluster[n];
}

const ClusterPolicy *policies_cluster_find(const char *name) {
    for (uint32_t i = 0; cluster[i] != NULL; i++)
        if (strcmp(cluster[i]->name, name) == 0) return cluster[i];
    return NULL;
}
