// CostTable: the ways in which a request can go on, by versions and cores: what each takes, and
// what it costs the machine.
#pragma once

#include "base/carve.h"
#include "contract/node.h"

enum { COST_VERSION_SETS = 3 };  // of versions: the fastest, frugal ones, those that move least

typedef struct CostEntry {
    float ns, bytes;  // of all layers from one on
} CostEntry;

typedef struct CostTable {
    const NodeModel   *model;
    const NodeMachine *machine;
    uint32_t           narrow;   // count that ways start with, where there are cores enough
    CostEntry         *rest;     // [level][layer, one more than there are][set][count]
    uint8_t           *picks;    // [level][set][count][layer] versions
    float             *fastest;  // [layer, one more] the least that the rest can take at all
} CostTable;

typedef struct CostChoice {
    uint32_t set, k;
    float    ns;
    bool     fits;  // into the time that was asked for
} CostChoice;

void cost_table_carve(CostTable *m, const NodeModel *model, const NodeMachine *machine,
                      Carve *from);
// lean: what bytes are worth against cores in the sets that spare them; narrow: least cores of a
// way.
void cost_table_init(CostTable *m, double lean, uint32_t narrow);

// The cheapest way on at most `cores` cores that takes no more than ns; the fastest when none does.
// price: of the whole bandwidth for a while, against all cores for as long.
CostChoice cost_table_choose(const CostTable *m, uint32_t level, uint32_t l, uint32_t cores,
                             double ns, double price);

// Where a block that goes this way ends when it may take ns; after layer l at least.
uint32_t cost_table_reach(const CostTable *m, uint32_t level, uint32_t l, CostChoice way,
                          double ns);

const uint8_t *cost_table_versions(const CostTable *m, uint32_t level, CostChoice way);

// Part of the memory's bandwidth that layers [l, end) use.
double cost_table_traffic(const CostTable *m, uint32_t level, uint32_t l, uint32_t end,
                          CostChoice way);

static inline const CostEntry *cost_table_at(const CostTable *m, uint32_t level, uint32_t l,
                                             uint32_t set) {
    size_t layer = (size_t)level * (m->model->n_layers + 1) + l;
    return m->rest + (layer * COST_VERSION_SETS + set) * m->model->n_counts;
}
