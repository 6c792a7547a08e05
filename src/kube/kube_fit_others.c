// Affinity both ways and topology spread: counts of pods by domain, once for all nodes.
#include <string.h>

#include "kube/kube_fit_int.h"

static Labels namespace_labels(const KubeState *s, const char *name) {
    const KubeEntry *e = kube_table_find(&s->tables[KUBE_NAMESPACES], name);
    return e != NULL ? ((const KubeNamespace *)e)->labels : (Labels){0};
}

static bool in_namespaces(const KubeState *s, const PodTerm *t, const KubePod *p) {
    for (uint32_t i = 0; i < t->n; i++)
        if (t->namespaces[i] == p->namespace_word) return true;
    if (t->namespace_labels.nothing) return false;
    return label_selector_matches(&t->namespace_labels,
                                  namespace_labels(s, p->info.namespace_name));
}

bool term_matches(const KubeState *s, const PodTerm *t, const KubePod *p) {
    return label_selector_matches(&t->labels, p->labels) && in_namespaces(s, t, p);
}

static bool matches_all(const KubeState *s, const PodTerms *t, const KubePod *p) {
    for (uint32_t i = 0; i < t->n; i++)
        if (!term_matches(s, &t->at[i], p)) return false;
    return true;
}

static void count_at(TopologyMap *m, const KubeNode *n, const KubeWord *key, int64_t weight) {
    const KubeWord *value = n->known ? labels_find(n->labels, key) : NULL;
    if (value != NULL) topology_add(m, key, value, weight);
}

static void count_repelled(const KubeState *s, FitPlan *f) {
    for (uint32_t i = 0; i < s->repel.n; i++) {
        const RepelGroup *g = (const RepelGroup *)s->repel.all[i];
        if (!term_matches(s, g->members[0].term, f->pod)) continue;
        for (uint32_t k = 0; k < g->n; k++)
            if (g->members[k].pod != f->pod)
                count_at(&f->repelled, g->members[k].pod->host, g->members[k].term->topology, 1);
    }
}

static void count_terms(const KubeState *s, FitPlan *f) {
    const KubePod *p = f->pod;
    for (uint32_t i = 0; i < s->n_pods; i++) {
        const KubePod *x = s->pods[i];
        if (x->host == NULL || x == p) continue;
        if (p->affinity.n > 0 && matches_all(s, &p->affinity, x))
            for (uint32_t k = 0; k < p->affinity.n; k++)
                count_at(&f->near, x->host, p->affinity.at[k].topology, 1);
        for (uint32_t k = 0; k < p->anti.n; k++)
            if (term_matches(s, &p->anti.at[k], x))
                count_at(&f->apart, x->host, p->anti.at[k].topology, 1);
    }
    f->alone = f->near.n == 0 && matches_all(s, &p->affinity, p);
}

static bool tolerated(const KubePod *p, const KubeNode *n) {
    for (uint32_t i = 0; i < n->n_taints; i++)
        if (n->taints[i].effect != EFFECT_PREFER && !fit_tolerates(p, &n->taints[i])) return false;
    return true;
}

static bool has_topologies(const KubePod *p, const KubeNode *n) {
    for (uint32_t i = 0; i < p->n_spread; i++)
        if (p->spread[i].hard && labels_find(n->labels, p->spread[i].topology) == NULL)
            return false;
    return true;
}

static int64_t count_on(const FitPlan *f, const SpreadRule *r, const KubeNode *n) {
    int64_t count = 0;
    for (uint32_t i = 0; i < n->n_pods; i++) {
        const KubePod *x = n->pods[i];
        if (x != f->pod && !x->info.terminating && x->namespace_word == f->pod->namespace_word &&
            label_selector_matches(&r->labels, x->labels))
            count++;
    }
    return count;
}

static void count_spread_on(FitPlan *f, const KubeNode *n) {
    const KubePod *p = f->pod;
    if (!n->known || !has_topologies(p, n)) return;
    for (uint32_t i = 0; i < p->n_spread; i++) {
        const SpreadRule *r = &p->spread[i];
        const KubeWord   *value = labels_find(n->labels, r->topology);
        if (value == NULL || (!r->ignores_affinity && !fit_node_selected(p, n))) continue;
        if (r->heeds_taints && !tolerated(p, n)) continue;
        topology_add(&f->spread[i].counts, r->topology, value, count_on(f, r, n));
    }
}

static void count_spread(const KubeState *s, FitPlan *f) {
    const KubeTable *nodes = &s->tables[KUBE_NODES];
    for (uint32_t i = 0; i < nodes->n; i++) count_spread_on(f, (const KubeNode *)nodes->all[i]);
    for (uint32_t i = 0; i < f->pod->n_spread; i++) {
        SpreadPlan *x = &f->spread[i];
        x->self = label_selector_matches(&f->pod->spread[i].labels, f->pod->labels);
        x->least = x->counts.n > 0 ? INT64_MAX : 0;
        for (uint32_t k = 0; k < x->counts.cap; k++)
            if (x->counts.at[k].key != NULL && x->counts.at[k].n < x->least)
                x->least = x->counts.at[k].n;
        if (x->counts.n < f->pod->spread[i].min_domains) x->least = 0;
    }
}

void fit_plan_others(const KubeState *s, FitPlan *f) {
    count_repelled(s, f);
    if (f->pod->affinity.n + f->pod->anti.n > 0) count_terms(s, f);
    if (f->pod->n_spread > 0) count_spread(s, f);
}

static void wish(const KubeState *s, FitPlan *f, const PodTerms *t, const KubePod *x, int sign) {
    for (uint32_t i = 0; i < t->n; i++)
        if (t->at[i].weight > 0 && term_matches(s, &t->at[i], x))
            count_at(&f->wishes, x->host, t->at[i].topology, sign * t->at[i].weight);
}

void fit_plan_wishes(const KubeState *s, FitPlan *f) {
    const KubePod *p = f->pod;
    f->wished = true;
    if (p->preferred.n + p->preferred_anti.n == 0) return;
    for (uint32_t i = 0; i < s->n_pods; i++) {
        if (s->pods[i]->host == NULL || s->pods[i] == p) continue;
        wish(s, f, &p->preferred, s->pods[i], 1);
        wish(s, f, &p->preferred_anti, s->pods[i], -1);
    }
}

bool fit_check_repelled(const FitQuery *q, KubeVerdict *why) {
    for (uint32_t i = 0; i < q->node->labels.n; i++) {
        const Label *l = &q->node->labels.at[i];
        if (topology_get(&q->plan->repelled, l->key, l->value) > 0)
            return fit_refuse(why, FIT_EXISTING_ANTI_AFFINITY, l->key->text);
    }
    return true;
}

bool fit_check_affinity(const FitQuery *q, KubeVerdict *why) {
    const PodTerms *t = &q->pod->affinity;
    const KubeWord *missing = NULL;
    for (uint32_t i = 0; i < t->n; i++) {
        const KubeWord *value = labels_find(q->node->labels, t->at[i].topology);
        if (value == NULL) return fit_refuse(why, FIT_AFFINITY, t->at[i].topology->text);
        if (topology_get(&q->plan->near, t->at[i].topology, value) == 0)
            missing = t->at[i].topology;
    }
    return missing == NULL || q->plan->alone || fit_refuse(why, FIT_AFFINITY, missing->text);
}

bool fit_check_apart(const FitQuery *q, KubeVerdict *why) {
    const PodTerms *t = &q->pod->anti;
    for (uint32_t i = 0; i < t->n; i++) {
        const KubeWord *value = labels_find(q->node->labels, t->at[i].topology);
        if (value != NULL && topology_get(&q->plan->apart, t->at[i].topology, value) > 0)
            return fit_refuse(why, FIT_ANTI_AFFINITY, t->at[i].topology->text);
    }
    return true;
}

bool fit_check_spread(const FitQuery *q, KubeVerdict *why) {
    for (uint32_t i = 0; i < q->pod->n_spread; i++) {
        const SpreadRule *r = &q->pod->spread[i];
        const SpreadPlan *x = &q->plan->spread[i];
        if (!r->hard) continue;
        const KubeWord *value = labels_find(q->node->labels, r->topology);
        if (value == NULL ||
            topology_get(&x->counts, r->topology, value) + x->self - x->least > r->max_skew)
            return fit_refuse(why, FIT_SPREAD, r->topology->text);
    }
    return true;
}
