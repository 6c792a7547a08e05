// What a way takes. A block on whole slices of cache has them to itself: there, interference is
// less bandwidth and nothing else, so a layer takes its time on a quiet machine or what its bytes
// take at the bandwidth that is left. On parts of a slice the model's own times at the level hold.
#include "policy/node/menu.h"

#include <math.h>

void menu_carve(Menu *m, const NodeModel *model, const NodeMachine *machine, Carve *from) {
    size_t layers = model->n_layers, counts = model->n_counts;
    *m = (Menu){.model = model, .machine = machine};
    m->rest = carve(from, MenuCost, NODE_LEVELS * (layers + 1) * MENU_SETS * counts);
    m->picks = carve(from, uint8_t, NODE_LEVELS * MENU_SETS * counts * layers);
    m->fastest = carve(from, float, layers + 1);
}

static bool whole_slices(const Menu *m, uint32_t k) {
    uint32_t slice = (m->machine->n_cores + m->machine->n_slices - 1) / m->machine->n_slices;
    return m->model->counts[k] % slice == 0;
}

static double layer_ns(const Menu *m, uint32_t l, uint32_t v, uint32_t k, uint32_t level) {
    if (!whole_slices(m, k)) return (double)node_time(m->model, l, v, k, level);
    double bytes = (double)m->model->layers[l].versions[v].dram_bytes[k];
    double granted = (double)m->machine->dram_bytes_ns * node_bandwidth(level);
    return fmax((double)node_time(m->model, l, v, k, 0), bytes / granted);
}

// Time plus the bytes' part of the machine, as time on these cores.
static uint8_t pick(const Menu *m, uint32_t l, uint32_t k, uint32_t level, double worth) {
    const NodeLayer *layer = &m->model->layers[l];
    double           bandwidth = (double)m->machine->dram_bytes_ns, least = INFINITY;
    double           cores = (double)m->machine->n_cores / m->model->counts[k];
    uint8_t          best = 0;
    for (uint8_t v = 0; v < layer->n_versions; v++) {
        double bytes = (double)layer->versions[v].dram_bytes[k];
        double cost = layer_ns(m, l, v, k, level) + worth * cores * bytes / bandwidth;
        if (cost < least) best = v, least = cost;
    }
    return best;
}

static void fill(Menu *m, uint32_t level, uint32_t set, uint32_t k, double worth) {
    const NodeModel *model = m->model;
    uint8_t         *picks =
        m->picks + (size_t)((level * MENU_SETS + set) * model->n_counts + k) * model->n_layers;
    MenuCost sum = {0};
    for (uint32_t l = model->n_layers; l-- > 0;) {
        uint8_t v = picks[l] = pick(m, l, k, level, worth);
        sum.ns += (float)layer_ns(m, l, v, k, level);
        sum.bytes += model->layers[l].versions[v].dram_bytes[k];
        MenuCost *at = m->rest + (menu_at(m, level, l, set) - m->rest);
        at[k] = sum;
    }
}

static void find_fastest(Menu *m) {
    for (uint32_t l = m->model->n_layers; l-- > 0;) {
        float least = INFINITY;
        for (uint32_t v = 0; v < m->model->layers[l].n_versions; v++)
            for (uint32_t k = 0; k < m->model->n_counts; k++)
                least = fminf(least, node_time(m->model, l, v, k, 0));
        m->fastest[l] = m->fastest[l + 1] + least;
    }
}

void menu_init(Menu *m, double lean, uint32_t narrow) {
    m->narrow = node_count(m->model, narrow);
    double worth[MENU_SETS] = {0, lean / 4, lean};
    for (uint32_t level = 0; level < NODE_LEVELS; level++)
        for (uint32_t set = 0; set < MENU_SETS; set++)
            for (uint32_t k = 0; k < m->model->n_counts; k++) fill(m, level, set, k, worth[set]);
    find_fastest(m);
}

MenuWay menu_choose(const Menu *m, uint32_t level, uint32_t l, uint32_t cores, double ns,
                    double price) {
    const MenuCost *rest = menu_at(m, level, l, 0);
    double          per_core = 1.0 / m->machine->n_cores, least = INFINITY;
    double          per_byte = price / (double)m->machine->dram_bytes_ns;
    MenuWay         best = {0}, fastest = {.ns = INFINITY};
    uint32_t        first = m->model->counts[m->narrow] <= cores ? m->narrow : 0;
    for (uint32_t set = 0; set < MENU_SETS; set++, rest += m->model->n_counts)
        for (uint32_t k = first; k < m->model->n_counts && m->model->counts[k] <= cores; k++) {
            if (rest[k].ns < fastest.ns) fastest = (MenuWay){set, k, rest[k].ns, false};
            if ((double)rest[k].ns > ns) continue;
            double cost = (double)rest[k].ns * m->model->counts[k] * per_core +
                          (double)rest[k].bytes * per_byte;
            if (cost < least) best = (MenuWay){set, k, rest[k].ns, true}, least = cost;
        }
    return best.fits ? best : fastest;
}

uint32_t menu_reach(const Menu *m, uint32_t level, uint32_t l, MenuWay way, double ns) {
    uint32_t lo = l + 1, hi = m->model->n_layers;
    float    from = menu_at(m, level, l, way.set)[way.k].ns;
    while (lo < hi) {
        uint32_t mid = (lo + hi + 1) / 2;
        if ((double)(from - menu_at(m, level, mid, way.set)[way.k].ns) <= ns)
            lo = mid;
        else
            hi = mid - 1;
    }
    return lo;
}

const uint8_t *menu_versions(const Menu *m, uint32_t level, MenuWay way) {
    size_t list = (size_t)(level * MENU_SETS + way.set) * m->model->n_counts + way.k;
    return m->picks + list * m->model->n_layers;
}

double menu_traffic(const Menu *m, uint32_t level, uint32_t l, uint32_t end, MenuWay way) {
    MenuCost from = menu_at(m, level, l, way.set)[way.k],
             to = menu_at(m, level, end, way.set)[way.k];
    double ns = (double)(from.ns - to.ns);
    return ns > 0 ? (double)(from.bytes - to.bytes) / (ns * (double)m->machine->dram_bytes_ns) : 0;
}
