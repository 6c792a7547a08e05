// Counts by topology domain.
#include <stdlib.h>
#include <string.h>

#include "kube/kube_fit_int.h"

static uint32_t slot(const TopologyMap *m, const KubeWord *key, const KubeWord *value) {
    uint32_t i = (key->hash * 31 + value->hash) & (m->cap - 1);
    while (m->at[i].key != NULL && (m->at[i].key != key || m->at[i].value != value))
        i = (i + 1) & (m->cap - 1);
    return i;
}

int64_t topology_get(const TopologyMap *m, const KubeWord *key, const KubeWord *value) {
    return m->n > 0 ? m->at[slot(m, key, value)].n : 0;
}

static void resize(TopologyMap *m, uint32_t cap) {
    TopologyMap old = *m;
    m->at = calloc(cap, sizeof *m->at);
    CHECK(m->at != NULL);
    m->cap = cap;
    for (uint32_t i = 0; i < old.cap; i++)
        if (old.at[i].key != NULL) m->at[slot(m, old.at[i].key, old.at[i].value)] = old.at[i];
    free(old.at);
}

void topology_add(TopologyMap *m, const KubeWord *key, const KubeWord *value, int64_t n) {
    if (2 * (m->n + 1) > m->cap) resize(m, m->cap == 0 ? 16 : 2 * m->cap);
    TopologyCount *c = &m->at[slot(m, key, value)];
    if (c->key == NULL) {
        m->n++;
        *c = (TopologyCount){key, value, 0};
    }
    c->n += n;
}

void topology_clear(TopologyMap *m) {
    if (m->n > 0) memset(m->at, 0, m->cap * sizeof *m->at);
    m->n = 0;
}
