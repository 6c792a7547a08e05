// What else decides where pods may run: namespaces, claims, volumes, classes, limits, budgets.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kube/kube_state_int.h"

static const json_t *spec_of(const json_t *o) { return json_object_get(o, "spec"); }
static const json_t *status_of(const json_t *o) { return json_object_get(o, "status"); }

static const json_t *annotations_of(const json_t *o) {
    return json_object_get(json_object_get(o, "metadata"), "annotations");
}

static void read_namespace(KubeMemory *m, const json_t *o, KubeNamespace *x) {
    const char *bad = NULL;
    if (labels_read(json_object_get(json_object_get(o, "metadata"), "labels"), m, &x->labels) !=
        ERR_OK)
        x->labels = (Labels){0};
    kube_fungible_read(annotations_of(o), &x->fungible, &bad);
    if (bad != NULL) x->fungible = (Fungible){.on = -1};
}

static bool has_text(const json_t *array, const char *text) {
    for (size_t i = 0; i < json_array_size(array); i++) {
        const char *at = json_string_value(json_array_get(array, i));
        if (at != NULL && strcmp(at, text) == 0) return true;
    }
    return false;
}

static void read_claim(KubeMemory *m, const json_t *o, KubeClaim *x) {
    const json_t *owners = json_object_get(json_object_get(o, "metadata"), "ownerReferences");
    const char   *volume = kube_text(spec_of(o), "volumeName");
    const char   *phase = kube_text(status_of(o), "phase");
    x->volume = volume != NULL && *volume != '\0' ? kube_memory_text(m, volume) : NULL;
    x->class_name = kube_memory_text(m, kube_text(spec_of(o), "storageClassName"));
    x->selected_node =
        kube_memory_text(m, kube_text(annotations_of(o), "volume.kubernetes.io/selected-node"));
    x->bound = x->volume != NULL &&
               json_object_get(annotations_of(o), "pv.kubernetes.io/bind-completed") != NULL;
    x->deleted = kube_meta(o, "deletionTimestamp") != NULL;
    x->lost = phase != NULL && strcmp(phase, "Lost") == 0;
    x->exclusive = has_text(json_object_get(spec_of(o), "accessModes"), "ReadWriteOncePod");
    for (size_t i = 0; i < json_array_size(owners); i++)
        if (json_is_true(json_object_get(json_array_get(owners, i), "controller")))
            x->owner_uid = kube_memory_text(m, kube_text(json_array_get(owners, i), "uid"));
}

static void read_volume(KubeMemory *m, const json_t *o, KubeVolume *x) {
    const json_t *csi = json_object_get(spec_of(o), "csi");
    const json_t *required =
        json_object_get(json_object_get(spec_of(o), "nodeAffinity"), "required");
    if (node_terms_read(json_object_get(required, "nodeSelectorTerms"), m, &x->nodes) != ERR_OK)
        x->nodes = (NodeTerms){.given = true};  // cannot be read: no node
    if (labels_read(json_object_get(json_object_get(o, "metadata"), "labels"), m, &x->labels) !=
        ERR_OK)
        x->labels = (Labels){0};
    x->driver = kube_memory_text(m, kube_text(csi, "driver"));
    x->handle = kube_memory_text(m, kube_text(csi, "volumeHandle"));
}

static void read_class(KubeMemory *m, const json_t *o, KubeClass *x) {
    const char *mode = kube_text(o, "volumeBindingMode");
    (void)m;
    x->waits = mode != NULL && strcmp(mode, "WaitForFirstConsumer") == 0;
}

static void read_csi_node(KubeMemory *m, const json_t *o, KubeCsiNode *x) {
    const json_t *drivers = json_object_get(spec_of(o), "drivers");
    x->limits = kube_memory_new(m, CsiLimit, json_array_size(drivers));
    for (size_t i = 0; i < json_array_size(drivers); i++) {
        const json_t *d = json_array_get(drivers, i);
        const json_t *most = json_object_get(json_object_get(d, "allocatable"), "count");
        const char   *name = kube_text(d, "name");
        if (name == NULL || !json_is_integer(most)) continue;
        x->limits[x->n++] = (CsiLimit){kube_memory_text(m, name), json_integer_value(most)};
    }
}

static void read_budget(KubeMemory *m, const json_t *o, KubeBudget *x) {
    const char *space = kube_meta(o, "namespace");
    x->namespace_word = kube_memory_word(m, space != NULL ? space : "default");
    if (label_selector_read(json_object_get(spec_of(o), "selector"), m, &x->labels) != ERR_OK)
        x->labels = (LabelSelector){0};  // cannot be read: protects all
    x->allowed = json_integer_value(json_object_get(status_of(o), "disruptionsAllowed"));
}

static void read_pod_group(KubeMemory *m, const json_t *o, KubePodGroup *x) {
    (void)m;
    x->min = json_integer_value(json_object_get(spec_of(o), "minMember"));
    int64_t s = json_integer_value(json_object_get(spec_of(o), "scheduleTimeoutSeconds"));
    if (s > 0 && s < 1000000000) x->timeout = (TimeNs)s * 1000000000;
}

static void read_resource_claim(KubeMemory *m, const json_t *o, KubeResourceClaim *x) {
    const json_t *allocation = json_object_get(status_of(o), "allocation");
    const json_t *terms =
        json_object_get(json_object_get(allocation, "nodeSelector"), "nodeSelectorTerms");
    x->allocated = json_is_object(allocation);
    if (node_terms_read(terms, m, &x->nodes) != ERR_OK) x->allocated = false;
    x->full = json_array_size(json_object_get(status_of(o), "reservedFor")) >= 256;
}

#define KINDS(X)                                                                                   \
    X(KUBE_NAMESPACES, KubeNamespace, read_namespace)                                              \
    X(KUBE_CLAIMS, KubeClaim, read_claim)                                                          \
    X(KUBE_VOLUMES, KubeVolume, read_volume)                                                       \
    X(KUBE_STORAGE_CLASSES, KubeClass, read_class)                                                 \
    X(KUBE_CSI_NODES, KubeCsiNode, read_csi_node)                                                  \
    X(KUBE_DISRUPTION_BUDGETS, KubeBudget, read_budget)                                            \
    X(KUBE_POD_GROUPS, KubePodGroup, read_pod_group)                                               \
    X(KUBE_RESOURCE_CLAIMS, KubeResourceClaim, read_resource_claim)

static KubeEntry *read_object(KubeState *s, KubeKind k, const json_t *o) {
    switch (k) {
#define X(kind, Type, read)                                                                        \
    case kind: {                                                                                   \
        Type *x = calloc(1, sizeof *x);                                                            \
        CHECK(x != NULL);                                                                          \
        kube_memory_init(&x->memory, &s->words);                                                   \
        read(&x->memory, o, x);                                                                    \
        char key[512];                                                                             \
        (void)kube_key(k, o, key, sizeof key);                                                     \
        x->entry.key = kube_memory_text(&x->memory, key);                                          \
        x->entry.version = kube_memory_text(&x->memory, kube_meta(o, "resourceVersion"));          \
        return &x->entry;                                                                          \
    }
        KINDS(X)
#undef X
    default: return NULL;
    }
}

static void free_object(KubeKind k, KubeEntry *e) {
    switch (k) {
#define X(kind, Type, read)                                                                        \
    case kind: kube_memory_finish(&((Type *)e)->memory); break;
        KINDS(X)
#undef X
    default: break;
    }
    free(e);
}

// What a namespace says about its pods may have changed.
static void settle(KubeState *s, KubeKind k, const char *name) {
    for (uint32_t i = 0; k == KUBE_NAMESPACES && i < s->n_pods; i++)
        if (strcmp(s->pods[i]->info.namespace_name, name) == 0) kube_pod_settle(s, s->pods[i]);
}

void kube_object_put(KubeState *s, KubeKind k, const json_t *object) {
    char        key[512];
    const char *version = kube_meta(object, "resourceVersion");
    if (!kube_key(k, object, key, sizeof key)) return;
    KubeEntry *old = kube_table_find(&s->tables[k], key);
    if (old != NULL && version != NULL && old->version != NULL && *version != '\0' &&
        strcmp(version, old->version) == 0) {
        old->epoch = s->tables[k].epoch;
        return;
    }
    KubeEntry *e = read_object(s, k, object);
    if (e == NULL) return;
    if (old != NULL) {
        kube_table_remove(&s->tables[k], old);
        free_object(k, old);
    }
    kube_table_add(&s->tables[k], e);
    s->version++;
    s->change++;
    settle(s, k, e->key);
}

void kube_object_remove(KubeState *s, KubeKind k, KubeEntry *e) {
    char name[512];
    (void)snprintf(name, sizeof name, "%s", e->key);
    kube_table_remove(&s->tables[k], e);
    free_object(k, e);
    s->version++;
    s->change++;
    settle(s, k, name);
}

KubeGang kube_state_gang(const KubeState *s, const KubePod *p) {
    char     key[512];
    KubeGang g = {.known = p->info.group_min > 0, .min = p->info.group_min};
    (void)snprintf(key, sizeof key, "%s/%s", p->info.namespace_name, p->info.group);
    const KubeEntry *e = kube_table_find(&s->tables[KUBE_POD_GROUPS], key);
    if (e == NULL) return g;
    const KubePodGroup *x = (const KubePodGroup *)e;
    g.timeout = x->timeout;
    if (!g.known) g.min = x->min < 1 ? 1 : x->min > 1000000 ? 1000000 : (uint32_t)x->min;
    g.known = true;
    return g;
}

uint32_t kube_state_disruptions(const KubeState *s, const KubePod *p) {
    const KubeTable *t = &s->tables[KUBE_DISRUPTION_BUDGETS];
    uint32_t         least = UINT32_MAX;
    for (uint32_t i = 0; i < t->n; i++) {
        const KubeBudget *b = (const KubeBudget *)t->all[i];
        if (b->namespace_word != p->namespace_word ||
            !label_selector_matches(&b->labels, p->labels))
            continue;
        uint32_t allowed = b->allowed < 0         ? 0
                           : b->allowed > 1000000 ? 1000000
                                                  : (uint32_t)b->allowed;
        least = allowed < least ? allowed : least;
    }
    return least;
}
