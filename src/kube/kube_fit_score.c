// Soft constraints as one number.
#include "kube/kube_fit_int.h"

enum { WISH_MOST = 1000000 };

static int64_t clamp(int64_t x) {
    return x > WISH_MOST ? WISH_MOST : x < -WISH_MOST ? -WISH_MOST : x;
}

static int64_t preferred_nodes(const KubePod *p, const KubeNode *n) {
    int64_t sum = 0;
    for (uint32_t i = 0; i < p->preferred_nodes.n; i++)
        if (node_term_matches(&p->preferred_nodes.at[i], n->labels, n->word))
            sum += p->preferred_nodes.at[i].weight;
    return sum;
}

static int64_t unwanted_taints(const KubePod *p, const KubeNode *n) {
    int64_t sum = 0;
    for (uint32_t i = 0; i < n->n_taints; i++)
        sum += n->taints[i].effect == EFFECT_PREFER && !fit_tolerates(p, &n->taints[i]);
    return sum;
}

// Pods in the domain above the emptiest one; a node outside of all domains is the worst.
static int64_t soft_spread(const FitPlan *f, const KubeNode *n) {
    int64_t sum = 0;
    for (uint32_t i = 0; i < f->pod->n_spread; i++) {
        const SpreadRule *r = &f->pod->spread[i];
        const KubeWord   *value = labels_find(n->labels, r->topology);
        if (r->hard) continue;
        sum += value == NULL
                   ? 1000
                   : topology_get(&f->spread[i].counts, r->topology, value) - f->spread[i].least;
    }
    return sum;
}

static int64_t affinity(const FitPlan *f, const KubeNode *n) {
    int64_t sum = 0;
    for (uint32_t i = 0; f->wishes.n > 0 && i < n->labels.n; i++)
        sum += topology_get(&f->wishes, n->labels.at[i].key, n->labels.at[i].value);
    return sum;
}

int64_t kube_fit_score(const KubeState *s, const KubePod *p, const KubeNode *n) {
    const FitPlan *f = fit_plan(s, p);
    if (!f->wished) fit_plan_wishes(s, s->plan);
    return preferred_nodes(p, n) - 100 * unwanted_taints(p, n) - 10 * clamp(soft_spread(f, n)) +
           clamp(affinity(f, n));
}
