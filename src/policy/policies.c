#include "policy/policies.h"

#include <string.h>

static const NodePolicy *const node[] = {
#define X(name) &policy_##name,
#include "policy/node.def"
#undef X
};

const NodePolicy *policies_node_at(uint32_t i) {
    return i < sizeof node / sizeof *node ? node[i] : NULL;
}

const NodePolicy *policies_node_find(const char *name) {
    for (uint32_t i = 0; i < sizeof node / sizeof *node; i++)
        if (strcmp(node[i]->name, name) == 0) return node[i];
    return NULL;
}
