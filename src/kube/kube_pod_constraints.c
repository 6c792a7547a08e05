// Constraints of a pod on nodes alone: selectors, tolerations, ports.
#include <string.h>

#include "kube/kube_pod_int.h"

static void read_toleration(PodReader *r, const json_t *o, Toleration *t) {
    static const char *const known[] = {"key",    "operator",          "value",
                                        "effect", "tolerationSeconds", NULL};
    static const char *const effects[] = {"", "NoSchedule", "PreferNoSchedule", "NoExecute"};
    const char              *key = kube_text(o, "key"), *op = kube_text(o, "operator");
    const char              *value = kube_text(o, "value"), *effect = kube_text(o, "effect");
    bool                     exists = op != NULL && strcmp(op, "Exists") == 0;
    (void)pod_known(r, o, "spec.tolerations", known);
    if (op != NULL && *op != '\0' && !exists && strcmp(op, "Equal") != 0)
        pod_refuse(r, "spec.tolerations.operator: '%.40s' is not supported", op);
    if (key != NULL && *key != '\0') t->key = kube_memory_word(r->memory, key);
    if (!exists) t->value = kube_memory_word(r->memory, value != NULL ? value : "");
    if (t->key == NULL && !exists) pod_refuse(r, "spec.tolerations.key: it is missing");
    for (int i = 0; effect != NULL && i < 4; i++)
        if (strcmp(effect, effects[i]) == 0) {
            t->effect = (TaintEffect)i;
            return;
        }
    if (effect != NULL) pod_refuse(r, "spec.tolerations.effect: '%.40s' is not supported", effect);
}

static void read_tolerations(PodReader *r) {
    const json_t *all = json_object_get(r->spec, "tolerations");
    uint32_t      n = (uint32_t)json_array_size(all);
    r->pod->tolerations = kube_memory_new(r->memory, Toleration, n);
    for (uint32_t i = 0; i < n; i++)
        read_toleration(r, json_array_get(all, i), &r->pod->tolerations[i]);
    r->pod->n_tolerations = n;
}

static void add_port(PodReader *r, const json_t *o, uint32_t room) {
    int64_t     port = json_integer_value(json_object_get(o, "hostPort"));
    const char *ip = kube_text(o, "hostIP"), *protocol = kube_text(o, "protocol");
    if (port <= 0 || port > 65535 || r->pod->n_ports == room) return;
    r->pod->ports[r->pod->n_ports++] =
        (HostPort){.ip = kube_memory_word(r->memory, ip != NULL && *ip != '\0' ? ip : "0.0.0.0"),
                   .protocol = kube_memory_word(
                       r->memory, protocol != NULL && *protocol != '\0' ? protocol : "TCP"),
                   .port = (uint32_t)port};
}

static bool is_sidecar(const json_t *container) {
    const char *restart = kube_text(container, "restartPolicy");
    return restart != NULL && strcmp(restart, "Always") == 0;
}

static uint32_t each_port(PodReader *r, const char *list, bool steps, uint32_t room) {
    const json_t *all = json_object_get(r->spec, list);
    uint32_t      n = 0;
    for (size_t i = 0; i < json_array_size(all); i++) {
        const json_t *c = json_array_get(all, i), *ports = json_object_get(c, "ports");
        if (steps && !is_sidecar(c)) continue;
        for (size_t k = 0; k < json_array_size(ports); k++, n++)
            if (room > 0) add_port(r, json_array_get(ports, k), room);
    }
    return n;
}

static void read_ports(PodReader *r) {
    uint32_t n = each_port(r, "containers", false, 0) + each_port(r, "initContainers", true, 0);
    if (n == 0) return;
    r->pod->ports = kube_memory_new(r->memory, HostPort, n);
    (void)each_port(r, "containers", false, n);
    (void)each_port(r, "initContainers", true, n);
}

static void read_node_affinity(PodReader *r) {
    static const char *const known[] = {"requiredDuringSchedulingIgnoredDuringExecution",
                                        "preferredDuringSchedulingIgnoredDuringExecution", NULL};
    const json_t *o = json_object_get(json_object_get(r->spec, "affinity"), "nodeAffinity");
    const json_t *required = json_object_get(o, known[0]),
                 *preferred = json_object_get(o, known[1]);
    (void)pod_known(r, o, "spec.affinity.nodeAffinity", known);
    if (node_terms_read(json_object_get(required, "nodeSelectorTerms"), r->memory,
                        &r->pod->node_terms) != ERR_OK)
        pod_refuse(r, "spec.affinity.nodeAffinity: %s", err_why());
    if (json_is_object(required)) r->pod->node_terms.given = true;
    uint32_t  n = (uint32_t)json_array_size(preferred);
    NodeTerm *at = kube_memory_new(r->memory, NodeTerm, n);
    for (uint32_t i = 0; i < n; i++) {
        const json_t *p = json_array_get(preferred, i);
        int64_t       weight = json_integer_value(json_object_get(p, "weight"));
        if (node_term_read(json_object_get(p, "preference"), r->memory, &at[i]) != ERR_OK)
            at[i] = (NodeTerm){0};  // a preference that cannot be read has no weight
        at[i].weight = weight < 0 || weight > 100 ? 0 : (int32_t)weight;
    }
    r->pod->preferred_nodes = (NodeTerms){at, n, true};
}

void pod_read_constraints(PodReader *r) {
    const json_t *labels = json_object_get(r->meta, "labels");
    const json_t *selector = json_object_get(r->spec, "nodeSelector");
    const char   *os = kube_text(json_object_get(r->spec, "os"), "name");
    if (labels_read(labels, r->memory, &r->pod->labels) != ERR_OK)
        pod_refuse(r, "metadata.labels: %s", err_why());
    if (labels_read(selector, r->memory, &r->pod->node_selector) != ERR_OK)
        pod_refuse(r, "spec.nodeSelector: %s", err_why());
    r->pod->os = kube_memory_word(r->memory, os);
    read_tolerations(r);
    read_ports(r);
    read_node_affinity(r);
}
