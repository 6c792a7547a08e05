// A block on whole cache slices has no contention for cache: interference only reduces its memory
// bandwidth, so a layer takes its time without co-runners or the time of its traffic at the
// remaining bandwidth, whichever is longer. On parts of a slice the measured times at the level
// apply.
#include "policy/node/common/cost_table.h"

#include <math.h>

void cost_table_carve(CostTable *m, const NodeModel *model, const NodeMachine *machine,
                      Carve *from) {
    size_t layers = model->n_layers, counts = model->n_counts;
    *m = (CostTable){.model = model, .machine = machine};
    m->rest = carve(from, CostEntry, NODE_LEVELS * (layers + 1) * COST_VERSION_SETS * counts);
    m->picks = carve(from, uint8_t, NODE_LEVELS * COST_VERSION_SETS * counts * layers);
    m->fastest = carve(from, float, layers + 1);
}

static bool whole_slices(const CostTable *m, uint32_t k) {
    uint32_t slice = (m->machine->n_cores + m->machine->n_slices - 1) / m->machine->n_slices;
    return m->model->counts[k] % slice == 0;
}

static double layer_ns(const CostTable *m, uint32_t l, uint32_t v, uint32_t k, uint32_t level) {
    if (!whole_slices(m, k)) return (double)node_time(m->model, l, v, k, level);
    double bytes = (double)m->model->layers[l].versions[v].dram_bytes[k];
    double granted = (double)m->machine->dram_bytes_ns * node_bandwidth(level);
    return fmax((double)node_time(m->model, l, v, k, 0), bytes / granted);
}

// The version with the least time plus weighted traffic, the traffic as time on these cores.
static uint8_t pick(const CostTable *m, uint32_t l, uint32_t k, uint32_t level,
                    double byte_weight) {
    const NodeLayer *layer = &m->model->layers[l];
    double           bandwidth = (double)m->machine->dram_bytes_ns, least = INFINITY;
    double           cores = (double)m->machine->n_cores / m->model->counts[k];
    uint8_t          best = 0;
    for (uint8_t v = 0; v < layer->n_versions; v++) {
        double bytes = (double)layer->versions[v].dram_bytes[k];
        double cost = layer_ns(m, l, v, k, level) + byte_weight * cores * bytes / bandwidth;
        if (cost < least) best = v, least = cost;
    }
    return best;
}

static void fill(CostTable *m, uint32_t level, uint32_t set, uint32_t k, double byte_weight) {
    const NodeModel *model = m->model;
    uint8_t *picks = m->picks + (size_t)((level * COST_VERSION_SETS + set) * model->n_counts + k) *
                                    model->n_layers;
    CostEntry sum = {0};
    for (uint32_t l = model->n_layers; l-- > 0;) {
        uint8_t v = picks[l] = pick(m, l, k, level, byte_weight);
        sum.ns += (float)layer_ns(m, l, v, k, level);
        sum.bytes += model->layers[l].versions[v].dram_bytes[k];
        CostEntry *at = m->rest + (cost_table_at(m, level, l, set) - m->rest);
        at[k] = sum;
    }
}

static void find_fastest(CostTable *m) {
    for (uint32_t l = m->model->n_layers; l-- > 0;) {
        float least = INFINITY;
        for (uint32_t v = 0; v < m->model->layers[l].n_versions; v++)
            for (uint32_t k = 0; k < m->model->n_counts; k++)
                least = fminf(least, node_time(m->model, l, v, k, 0));
        m->fastest[l] = m->fastest[l + 1] + least;
    }
}

void cost_table_init(CostTable *m, double byte_weight, uint32_t min_cores, double short_ns) {
    m->min_k = node_count_index(m->model, min_cores);
    m->short_ns = short_ns;
    double weight[COST_VERSION_SETS] = {0, byte_weight / 4, byte_weight};
    for (uint32_t level = 0; level < NODE_LEVELS; level++)
        for (uint32_t set = 0; set < COST_VERSION_SETS; set++)
            for (uint32_t k = 0; k < m->model->n_counts; k++) fill(m, level, set, k, weight[set]);
    find_fastest(m);
}

// Smallest count to choose, for the rest with these costs: min_k, but no more cores than make it
// faster, and one where it is over soon.
static uint32_t first_count(const CostTable *m, const CostEntry *rest, uint32_t cores) {
    uint32_t k = m->model->counts[m->min_k] <= cores ? m->min_k : 0;
    if ((double)rest[0].ns <= m->short_ns) return 0;
    while (k > 0 && rest[k].ns >= rest[k - 1].ns) k--;
    return k;
}

CostChoice cost_table_choose(const CostTable *m, uint32_t level, uint32_t l, uint32_t cores,
                             double ns, double price) {
    const CostEntry *rest = cost_table_at(m, level, l, 0);
    double           per_core = 1.0 / m->machine->n_cores, least = INFINITY;
    double           per_byte = price / (double)m->machine->dram_bytes_ns;
    CostChoice       best = {0}, fastest = {.ns = INFINITY};
    uint32_t         first = first_count(m, rest, cores);
    for (uint32_t set = 0; set < COST_VERSION_SETS; set++, rest += m->model->n_counts)
        for (uint32_t k = first; k < m->model->n_counts && m->model->counts[k] <= cores; k++) {
            if (rest[k].ns < fastest.ns) fastest = (CostChoice){set, k, rest[k].ns, false};
            if ((double)rest[k].ns > ns) continue;
            double cost = (double)rest[k].ns * m->model->counts[k] * per_core +
                          (double)rest[k].bytes * per_byte;
            if (cost < least) best = (CostChoice){set, k, rest[k].ns, true}, least = cost;
        }
    return best.fits ? best : fastest;
}

uint32_t cost_table_reach(const CostTable *m, uint32_t level, uint32_t l, CostChoice choice,
                          double ns) {
    uint32_t lo = l + 1, hi = m->model->n_layers;
    float    from = cost_table_at(m, level, l, choice.set)[choice.k].ns;
    while (lo < hi) {
        uint32_t mid = (lo + hi + 1) / 2;
        if ((double)(from - cost_table_at(m, level, mid, choice.set)[choice.k].ns) <= ns)
            lo = mid;
        else
            hi = mid - 1;
    }
    return lo;
}

const uint8_t *cost_table_versions(const CostTable *m, uint32_t level, CostChoice choice) {
    size_t list = (size_t)(level * COST_VERSION_SETS + choice.set) * m->model->n_counts + choice.k;
    return m->picks + list * m->model->n_layers;
}

double cost_table_traffic(const CostTable *m, uint32_t level, uint32_t l, uint32_t end,
                          CostChoice choice) {
    CostEntry from = cost_table_at(m, level, l, choice.set)[choice.k],
              to = cost_table_at(m, level, end, choice.set)[choice.k];
    double ns = (double)(from.ns - to.ns);
    return ns > 0 ? (double)(from.bytes - to.bytes) / (ns * (double)m->machine->dram_bytes_ns) : 0;
}
