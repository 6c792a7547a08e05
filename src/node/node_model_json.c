#include "node/node_model.h"

#include <math.h>

#include "node/node_model_int.h"

enum { LAYERS_MOST = 1 << 16 };
#define NUMBER_MOST 1e15

static json_t *whole(const float *x, size_t n) {
    json_t *list = json_array();
    for (size_t i = 0; i < n; i++)
        json_array_append_new(list, json_integer((json_int_t)llround((double)x[i])));
    return list;
}

static json_t *numbers(const uint16_t *x, uint32_t n) {
    json_t *list = json_array();
    for (uint32_t i = 0; i < n; i++) json_array_append_new(list, json_integer(x[i]));
    return list;
}

static json_t *version_json(const NodeModel *m, uint32_t l, uint32_t v) {
    const NodeDemand  *d = m->demand;
    const NodeVersion *x = &m->layers[l].versions[v];
    size_t             at = (size_t)l * NODE_VERSIONS + v;
    return json_pack(
        "{s:I,s:o,s:o,s:o,s:o,s:o,s:o}", "tasks", (json_int_t)x->tasks, "l3_bytes",
        whole(&x->l3_bytes, 1), "dram_bytes", whole(x->dram_bytes, m->n_counts), "times",
        whole(m->times + at * m->n_counts * NODE_LEVELS, m->n_counts * (size_t)NODE_LEVELS),
        "core_ns", whole(d->core_ns + at * d->n_counts, d->n_counts), "bytes",
        whole(demand_bytes(d, l, v, 0), d->n_slices * (size_t)DEMAND_SHARES), "hot_bytes",
        whole(d->hot_bytes + at, 1));
}

json_t *model_to_json(const NodeModel *m) {
    json_t *layers = json_array();
    for (uint32_t l = 0; l < m->n_layers; l++) {
        json_t *versions = json_array();
        for (uint32_t v = 0; v < m->layers[l].n_versions; v++)
            json_array_append_new(versions, version_json(m, l, v));
        json_array_append_new(layers,
                              json_pack("{s:s,s:o,s:o}", "name", m->layers[l].name, "read_bytes",
                                        whole(m->demand->read_bytes + l, 1), "versions", versions));
    }
    return json_pack("{s:s,s:o,s:o,s:o}", "name", m->name, "counts",
                     numbers(m->counts, m->n_counts), "slices",
                     numbers(m->demand->slices, m->demand->n_slices), "layers", layers);
}

static Err floats(const json_t *o, const char *key, double least, size_t n, float *out) {
    json_t *list = NULL;
    TRY(json_get_array(o, key, &list));
    if (json_array_size(list) != n)
        return err_set(ERR_INVALID, "'%s' has %zu numbers, expected %zu", key,
                       json_array_size(list), n);
    for (size_t i = 0; i < n; i++) {
        double x = json_number_value(json_array_get(list, i));
        if (!(x >= 0 && x <= NUMBER_MOST)) return err_set(ERR_INVALID, "'%s' is out of range", key);
        out[i] = (float)fmax(x, least);
    }
    return ERR_OK;
}

static Err rising(const json_t *o, const char *key, uint32_t most, uint16_t *out, uint32_t *n) {
    json_t *list = NULL;
    TRY(json_get_array(o, key, &list));
    *n = (uint32_t)json_array_size(list);
    if (*n == 0 || *n > most) return err_set(ERR_INVALID, "'%s' has %u numbers", key, *n);
    for (uint32_t i = 0; i < *n; i++) {
        json_int_t x = json_integer_value(json_array_get(list, i));
        if (x < 1 || x > UINT16_MAX || (i > 0 && x <= out[i - 1]) || (i == 0 && x != 1))
            return err_set(ERR_INVALID, "'%s' does not rise from 1", key);
        out[i] = (uint16_t)x;
    }
    return ERR_OK;
}

static Err read_version(const json_t *o, ModelTables *t, uint32_t l, uint32_t v) {
    const NodeModel *m = t->model;
    NodeVersion     *x = &t->layers[l].versions[v];
    size_t           at = (size_t)l * NODE_VERSIONS + v;
    int64_t          tasks = 0;
    TRY(json_get_int(o, "tasks", 1, UINT32_MAX, &tasks));
    x->tasks = (uint32_t)tasks;
    TRY(floats(o, "l3_bytes", 0, 1, &x->l3_bytes));
    TRY(floats(o, "dram_bytes", 0, m->n_counts, x->dram_bytes));
    TRY(floats(o, "times", 1, m->n_counts * (size_t)NODE_LEVELS, model_times(t, l, v, 0)));
    TRY(floats(o, "core_ns", 1, m->n_counts, t->core_ns + at * m->n_counts));
    TRY(floats(o, "bytes", 0, t->demand->n_slices * (size_t)DEMAND_SHARES,
               model_bytes(t, l, v, 0)));
    return floats(o, "hot_bytes", 0, 1, t->hot_bytes + at);
}

static Err read_layer(const json_t *o, ModelTables *t, uint32_t l, Arena *a) {
    json_t     *versions = NULL;
    const char *name = NULL;
    TRY(json_get_text(o, "name", &name));
    TRY(floats(o, "read_bytes", 0, 1, &t->read_bytes[l]));
    TRY(json_get_array(o, "versions", &versions));
    size_t n = json_array_size(versions);
    if (n == 0 || n > NODE_VERSIONS)
        return err_set(ERR_INVALID, "layer '%s' has %zu versions", name, n);
    t->layers[l].name = arena_str(a, name);
    t->layers[l].n_versions = (uint32_t)n;
    for (uint32_t v = 0; v < n; v++) TRY(read_version(json_array_get(versions, v), t, l, v));
    return ERR_OK;
}

Err model_from_json(const json_t *j, Arena *a, NodeModel *out) {
    NodeModel   m = {0};
    NodeDemand  d = {0};
    ModelTables t;
    json_t     *layers = NULL;
    const char *name = NULL;
    TRY(json_get_text(j, "name", &name));
    TRY(rising(j, "counts", NODE_COUNTS, m.counts, &m.n_counts));
    TRY(rising(j, "slices", DEMAND_SLICE_COUNTS, d.slices, &d.n_slices));
    TRY(json_get_array(j, "layers", &layers));
    m.name = arena_str(a, name);
    m.n_layers = (uint32_t)json_array_size(layers);
    if (m.n_layers == 0 || m.n_layers > LAYERS_MOST)
        return err_set(ERR_INVALID, "%s has %u layers", name, m.n_layers);
    TRY(model_begin(&t, &m, &d, a));
    for (uint32_t l = 0; l < m.n_layers; l++) TRY(read_layer(json_array_get(layers, l), &t, l, a));
    TRY(model_end(&t, a));
    *out = m;
    return ERR_OK;
}
