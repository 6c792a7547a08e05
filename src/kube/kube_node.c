// Reading a node; what is counted on it stays as it is.
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kube/kube_state_int.h"
#include "kube/quantity.h"

#define ALLOCATABLE_MOST ((INT64_C(1) << 50) - 1)  // a request that was cut never fits

static const char *label_text(const json_t *labels, const char *first, const char *second) {
    const char *text = kube_text(labels, first);
    if (text == NULL) text = kube_text(labels, second);
    return text != NULL ? text : "";
}

static void refuse(KubeMemory *m, KubeNodeInfo *i, const char *where) {
    if (i->unsupported == NULL)
        i->unsupported = kube_memory_printf(m, "%s: %.200s", where, err_why());
}

static void read_amounts(KubeState *s, const json_t *list, KubeMemory *m, KubeNodeInfo *i) {
    const char *key;
    json_t     *value;
    json_object_foreach((json_t *)list, key, value) {
        char        number[32], where[160];
        int64_t     amount = 0;
        const char *text = json_string_value(value);
        if (json_is_integer(value)) {
            (void)snprintf(number, sizeof number, "%" JSON_INTEGER_FORMAT,
                           json_integer_value(value));
            text = number;
        }
        (void)snprintf(where, sizeof where, "status.allocatable.%.80s", key);
        Err e = text == NULL              ? err_set(ERR_PARSE, "not a quantity")
                : strcmp(key, "cpu") == 0 ? quantity_milli(text, &amount)
                                          : quantity_units(text, &amount);
        if (e != ERR_OK) refuse(m, i, where);
        if (e != ERR_OK || amount <= 0) continue;
        uint32_t r = kube_resource(s, key, KUBE_RESOURCES);
        if (r < KUBE_RESOURCES)
            i->allocatable.of[r] = amount > ALLOCATABLE_MOST ? ALLOCATABLE_MOST : amount;
    }
}

static void read_taints(KubeNode *n, const json_t *list, KubeMemory *m) {
    n->taints = kube_memory_new(m, Taint, json_array_size(list));
    n->n_taints = 0;
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *o = json_array_get(list, i);
        const char   *key = kube_text(o, "key"), *value = kube_text(o, "value");
        const char   *effect = kube_text(o, "effect");
        TaintEffect   e = EFFECT_NO_SCHEDULE;  // of one that is not known: refuses
        if (effect != NULL && strcmp(effect, "PreferNoSchedule") == 0) e = EFFECT_PREFER;
        if (effect != NULL && strcmp(effect, "NoExecute") == 0) e = EFFECT_NO_EXECUTE;
        n->taints[n->n_taints++] = (Taint){kube_memory_word(m, key != NULL ? key : ""),
                                           kube_memory_word(m, value != NULL ? value : ""), e};
    }
}

static bool read_ready(const json_t *conditions) {
    for (size_t i = 0; i < json_array_size(conditions); i++) {
        const json_t *c = json_array_get(conditions, i);
        const char   *type = kube_text(c, "type"), *status = kube_text(c, "status");
        if (type != NULL && status != NULL && strcmp(type, "Ready") == 0)
            return strcmp(status, "True") == 0;
    }
    return false;
}

static void read_labels(KubeNode *n, const json_t *labels, KubeMemory *m) {
    if (labels_read(labels, m, &n->labels) != ERR_OK) refuse(m, &n->info, "metadata.labels");
    n->info.gpu_type = kube_memory_text(
        m, label_text(labels, kube_labels[KUBE_LABEL_GPU_TYPE].key, "nvidia.com/gpu.product"));
    n->info.rack = kube_memory_text(
        m, label_text(labels, kube_labels[KUBE_LABEL_RACK].key, "topology.kubernetes.io/rack"));
}

// A device plugin that advertises a GPU several times labels the node with their number.
static uint32_t read_devices(const json_t *labels, const KubeNodeInfo *i) {
    const char *text = kube_text(labels, "nvidia.com/gpu.count");
    int64_t     n = 0;
    if (text == NULL || quantity_units(text, &n) != ERR_OK || n <= 0) return 0;
    return n < i->allocatable.of[KUBE_GPU] ? (uint32_t)n : 0;
}

static KubeNode read_node(KubeState *s, const json_t *object, KubeMemory *m) {
    const json_t *spec = json_object_get(object, "spec");
    const json_t *status = json_object_get(object, "status");
    const char   *uid = kube_meta(object, "uid");
    KubeNode      n = {0};
    n.info.uid = kube_memory_text(m, uid != NULL ? uid : "");
    n.info.unschedulable = json_is_true(json_object_get(spec, "unschedulable"));
    n.info.ready = read_ready(json_object_get(status, "conditions"));
    read_labels(&n, json_object_get(json_object_get(object, "metadata"), "labels"), m);
    read_taints(&n, json_object_get(spec, "taints"), m);
    read_amounts(s, json_object_get(status, "allocatable"), m, &n.info);
    n.info.devices =
        read_devices(json_object_get(json_object_get(object, "metadata"), "labels"), &n.info);
    n.in_scope = label_selector_matches(&s->scope, n.labels);
    return n;
}

static bool same_labels(Labels a, Labels b) {
    return a.n == b.n && (a.n == 0 || memcmp(a.at, b.at, a.n * sizeof *a.at) == 0);
}

static bool same_taints(const KubeNode *a, const KubeNode *b) {
    if (a->n_taints != b->n_taints) return false;
    for (uint32_t i = 0; i < a->n_taints; i++)
        if (a->taints[i].key != b->taints[i].key || a->taints[i].value != b->taints[i].value ||
            a->taints[i].effect != b->taints[i].effect)
            return false;
    return true;
}

// Heartbeats change nothing that matters here.
static bool same(const KubeNode *a, const KubeNode *b) {
    return a->known && strcmp(a->info.uid, b->info.uid) == 0 &&
           a->info.unschedulable == b->info.unschedulable && a->info.ready == b->info.ready &&
           (a->info.unsupported == NULL) == (b->info.unsupported == NULL) &&
           same_labels(a->labels, b->labels) && same_taints(a, b) &&
           memcmp(&a->info.allocatable, &b->info.allocatable, sizeof(KubeAmounts)) == 0;
}

static void set_scope(KubeState *s, KubeNode *n, bool in_scope) {
    if (in_scope == n->in_scope) return;
    n->in_scope = in_scope;
    if (in_scope) {
        s->nodes = kube_grow(s->nodes, s->n_nodes, &s->room_nodes, sizeof(KubeNode *));
        n->at = s->n_nodes;
        s->nodes[s->n_nodes++] = n;
    } else {
        s->nodes[n->at] = s->nodes[--s->n_nodes];
        s->nodes[n->at]->at = n->at;
    }
}

void kube_node_put(KubeState *s, const json_t *object) {
    KubeMemory m;
    KubeNode  *n = kube_host(s, kube_meta(object, "name"));
    n->entry.epoch = s->tables[KUBE_NODES].epoch;
    kube_memory_init(&m, &s->words);
    KubeNode fresh = read_node(s, object, &m);
    if (same(n, &fresh)) {
        kube_memory_finish(&m);
        return;
    }
    kube_memory_finish(&n->memory);
    n->memory = m;
    fresh.info.name = n->info.name;
    fresh.info.used = n->info.used;
    fresh.info.gpu_milli = n->info.gpu_milli;
    n->info = fresh.info;
    n->labels = fresh.labels;
    n->taints = fresh.taints;
    n->n_taints = fresh.n_taints;
    n->known = true;
    set_scope(s, n, fresh.in_scope);
    s->version++;
    s->change++;
}

void kube_node_remove(KubeState *s, KubeNode *n) {
    set_scope(s, n, false);
    n->known = false;
    n->labels = (Labels){0};
    n->n_taints = 0;
    KubeNodeInfo gone = {.name = n->info.name,
                         .uid = "",
                         .gpu_type = "",
                         .rack = "",
                         .used = n->info.used,
                         .gpu_milli = n->info.gpu_milli,
                         .unsupported = "the node was deleted"};
    n->info = gone;
    kube_memory_finish(&n->memory);
    s->version++;
    s->change++;
    kube_host_drop(s, n);
}

void kube_node_free(KubeNode *n) {
    kube_memory_finish(&n->memory);
    kube_memory_finish(&n->name_memory);
    free(n->pods);
    free(n);
}
