#include "policy/node/common/suffix_times.h"

void suffix_times_carve(SuffixTimes *a, const NodeModel *m, uint32_t n_levels, Carve *from) {
    *a = (SuffixTimes){.model = m, .n_counts = m->n_counts, .n_levels = n_levels};
    a->rest = carve(from, float, (size_t)n_levels *(m->n_layers + 1) * m->n_counts);
}

void suffix_times_init(SuffixTimes *a, const uint8_t *picks) {
    const NodeModel *m = a->model;
    for (uint32_t level = 0; level < a->n_levels; level++)
        for (uint32_t l = m->n_layers; l-- > 0;)
            for (uint32_t k = 0; k < m->n_counts; k++) {
                uint32_t v = picks == NULL ? 0 : picks[(level * m->n_counts + k) * m->n_layers + l];
                float   *here = a->rest + (size_t)(level * (m->n_layers + 1) + l) * m->n_counts;
                here[k] = here[k + m->n_counts] + node_time(m, l, v, k, level);
            }
}

uint32_t suffix_times_least(const SuffixTimes *a, uint32_t level, uint32_t l, uint32_t end,
                            double ns) {
    const float *from = suffix_times_at(a, level, l), *to = suffix_times_at(a, level, end);
    uint32_t     k = 0;
    while (k < a->n_counts && (double)(from[k] - to[k]) > ns) k++;
    return k;
}

uint32_t suffix_times_fastest(const SuffixTimes *a, uint32_t level, uint32_t l, uint32_t end) {
    uint32_t best = 0;
    for (uint32_t k = 1; k < a->n_counts; k++)
        if (suffix_times_time(a, level, l, end, k) < suffix_times_time(a, level, l, end, best))
            best = k;
    return best;
}
