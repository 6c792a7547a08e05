// What depends on the node alone, and host ports.
#include <string.h>

#include "kube/kube_fit_int.h"

bool fit_tolerates(const KubePod *p, const Taint *t) {
    for (uint32_t i = 0; i < p->n_tolerations; i++) {
        const Toleration *x = &p->tolerations[i];
        if (x->effect != EFFECT_ALL && x->effect != t->effect) continue;
        if (x->key != NULL && x->key != t->key) continue;
        if (x->value == NULL || x->value == t->value) return true;
    }
    return false;
}

// spec.unschedulable is a taint of that name for tolerations.
static bool tolerates_unschedulable(const KubePod *p) {
    for (uint32_t i = 0; i < p->n_tolerations; i++) {
        const Toleration *x = &p->tolerations[i];
        bool              effect = x->effect == EFFECT_ALL || x->effect == EFFECT_NO_SCHEDULE;
        bool key = x->key == NULL || strcmp(x->key->text, "node.kubernetes.io/unschedulable") == 0;
        if (effect && key && (x->value == NULL || x->value->text[0] == '\0')) return true;
    }
    return false;
}

bool fit_check_node(const FitQuery *q, KubeVerdict *why) {
    if (q->node->info.unsupported != NULL)
        return fit_refuse(why, FIT_UNSUPPORTED, q->node->info.unsupported);
    if (q->node->info.unschedulable && !tolerates_unschedulable(q->pod))
        return fit_refuse(why, FIT_UNSCHEDULABLE, NULL);
    return true;
}

bool fit_check_taints(const FitQuery *q, KubeVerdict *why) {
    for (uint32_t i = 0; i < q->node->n_taints; i++) {
        const Taint *t = &q->node->taints[i];
        if (t->effect != EFFECT_PREFER && !fit_tolerates(q->pod, t))
            return fit_refuse(why, FIT_TAINT, t->key->text);
    }
    return true;
}

bool fit_node_selected(const KubePod *p, const KubeNode *n) {
    for (uint32_t i = 0; i < p->node_selector.n; i++)
        if (labels_find(n->labels, p->node_selector.at[i].key) != p->node_selector.at[i].value)
            return false;
    return node_terms_match(&p->node_terms, n->labels, n->word);
}

static bool has_os(const KubePod *p, const KubeNode *n) {
    for (uint32_t i = 0; p->os != NULL && i < n->labels.n; i++)
        if (strcmp(n->labels.at[i].key->text, "kubernetes.io/os") == 0)
            return n->labels.at[i].value == p->os;
    return true;
}

bool fit_check_selector(const FitQuery *q, KubeVerdict *why) {
    if (!fit_node_selected(q->pod, q->node)) return fit_refuse(why, FIT_SELECTOR, NULL);
    return has_os(q->pod, q->node) || fit_refuse(why, FIT_SELECTOR, "spec.os.name");
}

static bool any_address(const HostPort *p) { return strcmp(p->ip->text, "0.0.0.0") == 0; }

static bool clash(const HostPort *a, const HostPort *b) {
    return a->port == b->port && a->protocol == b->protocol &&
           (a->ip == b->ip || any_address(a) || any_address(b));
}

bool fit_check_ports(const FitQuery *q, KubeVerdict *why) {
    for (uint32_t i = 0; i < q->node->n_pods; i++) {
        const KubePod *x = q->node->pods[i];
        if (x == q->pod) continue;
        for (uint32_t k = 0; k < x->n_ports; k++)
            for (uint32_t m = 0; m < q->pod->n_ports; m++)
                if (clash(&x->ports[k], &q->pod->ports[m]))
                    return fit_refuse(why, FIT_PORTS, x->info.name);
    }
    return true;
}
