// Turn: tasks start from the head of an order that does not change while they wait; nobody is
// stopped. The first that finds no place blocks all behind it.
#pragma once

#include "policy/cluster/floor.h"
#include "policy/cluster/line.h"

typedef struct Turn {
    Line     line;
    Floor    floor;
    uint64_t seen;  // the last entry that stands in line
    // The rank of a task; `fresh`: nobody waits but those that came now.
    Rank (*rank)(const ClusterView *v, const ClusterTask *t, bool fresh);
    bool by_freshness;  // ranks differ between the two
} Turn;

size_t   turn_size(const ClusterSetup *s, const void *settings);
void     turn_init(Turn *q, const ClusterSetup *s);
uint32_t turn_decide(Turn *q, const ClusterView *v, ClusterAction *out);
