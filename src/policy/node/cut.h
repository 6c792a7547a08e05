// Cut: a model's layers in blocks, and the cores that each needs to keep its share of the QoS. All
// lists that a load or a level can ask for are made ahead; at run time only an index moves.
#pragma once

#include "contract/node.h"
#include "policy/node/carve.h"

enum { CUT_THETAS = 8 };

typedef struct CutRule {
    double   safety;          // share of the QoS that is planned with
    double   th_lo, th_hi;    // thresholds at no load and at full load
    double   min_ns, max_ns;  // what a block should take
    uint32_t fixed;           // layers of a block; 0: by threshold
    bool     best;            // the versions that node_pick names; otherwise version 0
    bool     blind;           // level 0 whatever the machine says
} CutRule;

// The least cores that keep a layer, a block or the model within its share of the QoS.
typedef struct Cut {
    const NodeModel *model;
    uint32_t         n_levels;
    uint16_t         flat[NODE_LEVELS];  // of the whole model
    float           *share;              // [level][layer + 1] of the time, from the layer on
    uint16_t        *need;               // [level][layer]
    uint16_t        *end;                // [theta][level][layer] where the block it is in ends
    uint16_t        *cores;              // [theta][level][layer] from the layer to that end
} Cut;

typedef struct CutBlock {
    uint32_t n_layers, cores;
} CutBlock;

void cut_carve(Cut *c, const CutRule *rule, const NodeTenant *t, Carve *from);
void cut_init(Cut *c, const CutRule *rule, const NodeTenant *t);

// The block that a request at this layer has before it.
CutBlock cut_at(const Cut *c, uint32_t theta, uint32_t level, uint32_t layer);

uint32_t cut_theta(double load);  // the index for a load of 0 (idle) to 1 (all cores wanted)
