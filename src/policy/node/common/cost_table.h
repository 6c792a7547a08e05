// CostTable: time and memory traffic of the rest of a request for each combination of versions and
// core count, and the cheapest combination that meets a deadline.
#pragma once

#include "base/carve.h"
#include "contract/node.h"

enum { COST_VERSION_SETS = 3 };  // fastest, compromise, least traffic

typedef struct CostEntry {
    float ns, bytes;  // of all layers from one on
} CostEntry;

typedef struct CostTable {
    const NodeModel   *model;
    const NodeMachine *machine;
    uint32_t           min_k;     // smallest core count to choose, if as many cores are free
    double             short_ns;  // a rest that takes no longer on one core may have fewer
    CostEntry         *rest;      // [level][n_layers + 1][set][count]
    uint8_t           *picks;     // [level][set][count][layer] versions
    float             *fastest;   // [n_layers + 1] lower bound of the time of the rest
} CostTable;

typedef struct CostChoice {
    uint32_t set, k;
    float    ns;
    bool     fits;  // within the given time
} CostChoice;

void cost_table_carve(CostTable *m, const NodeModel *model, const NodeMachine *machine,
                      Carve *from);
// byte_weight: cost of traffic against core time in the set with the least traffic. short_ns: see
// CostTable.
void cost_table_init(CostTable *m, double byte_weight, uint32_t min_cores, double short_ns);

// The cheapest choice on at most `cores` cores that takes at most ns; the fastest if none does.
// price: cost of the whole memory bandwidth relative to all cores.
CostChoice cost_table_choose(const CostTable *m, uint32_t level, uint32_t l, uint32_t cores,
                             double ns, double price);

// End of the longest block from layer l on that takes at most ns; at least l + 1.
uint32_t cost_table_reach(const CostTable *m, uint32_t level, uint32_t l, CostChoice choice,
                          double ns);

const uint8_t *cost_table_versions(const CostTable *m, uint32_t level, CostChoice choice);

// Share of the memory bandwidth that layers [l, end) use.
double cost_table_traffic(const CostTable *m, uint32_t level, uint32_t l, uint32_t end,
                          CostChoice choice);

static inline const CostEntry *cost_table_at(const CostTable *m, uint32_t level, uint32_t l,
                                             uint32_t set) {
    size_t layer = (size_t)level * (m->model->n_layers + 1) + l;
    return m->rest + (layer * COST_VERSION_SETS + set) * m->model->n_counts;
}
