#include "kube/kube_fit_int.h"

#include <stdio.h>
#include <string.h>

bool fit_refuse(KubeVerdict *why, KubeFitReason reason, const char *detail) {
    *why = (KubeVerdict){.reason = reason, .detail = detail};
    return false;
}

int64_t fit_short_of(const FitQuery *q, uint32_t r) {
    const KubeNodeInfo *n = &q->node->info;
    int64_t             need = r == KUBE_PODS ? 1 : q->amounts->of[r];
    if (need <= 0) return 0;
    int64_t room = n->allocatable.of[r] - n->used.of[r];
    if (q->pod->host == q->node) room += q->pod->info.requests.of[r];
    return need > room ? need - room : 0;
}

bool fit_check_resources(const FitQuery *q, KubeVerdict *why) {
    int64_t missing = fit_short_of(q, KUBE_PODS);
    if (missing > 0) {
        *why = (KubeVerdict){FIT_PODS, KUBE_PODS, missing, NULL};
        return false;
    }
    for (uint32_t r = 0; r < q->state->n_resources; r++) {
        missing = fit_short_of(q, r);
        if (missing == 0) continue;
        *why =
            (KubeVerdict){FIT_INSUFFICIENT, (KubeResource)r, missing, q->state->resources[r]->text};
        return false;
    }
    return true;
}

static bool has_shares(const FitQuery *q, KubeVerdict *why) {
    const KubeNodeInfo *n = &q->node->info;
    const KubePodInfo  *p = &q->pod->info;
    if (n->devices == 0 || p->requests.of[KUBE_GPU] == 0) return true;
    int64_t need = p->requests.of[KUBE_GPU] * p->gpu_milli;
    int64_t room = (int64_t)n->devices * 1000 - n->gpu_milli;
    if (q->pod->host == q->node) room += need;
    if (need <= room) return true;
    *why =
        (KubeVerdict){FIT_INSUFFICIENT, KUBE_GPU, need - room, q->state->resources[KUBE_GPU]->text};
    return false;
}

static FitQuery query(const KubeState *s, const KubePod *p, const KubeNode *n,
                      const KubeAmounts *amounts) {
    return (FitQuery){.state = s,
                      .plan = fit_plan(s, p),
                      .pod = p,
                      .node = n,
                      .amounts = amounts != NULL ? amounts : &p->info.requests};
}

bool kube_fit(const KubeState *s, const KubePod *p, const KubeNode *n, const KubeAmounts *amounts,
              KubeVerdict *why) {
    FitQuery q = query(s, p, n, amounts);
    *why = q.plan->refused;
    if (why->reason != FIT_OK) return false;
    for (uint32_t i = 0; i < q.plan->n_checks; i++)
        if (!q.plan->checks[i](&q, why)) return false;
    return has_shares(&q, why);
}

// The node as if it were empty.
static bool ever_holds(const FitQuery *q, KubeVerdict *why) {
    for (uint32_t r = 0; r < q->state->n_resources; r++) {
        int64_t need = q->amounts->of[r], room = q->node->info.allocatable.of[r];
        if (need <= room) continue;
        *why = (KubeVerdict){r == KUBE_PODS ? FIT_PODS : FIT_INSUFFICIENT, (KubeResource)r,
                             need - room, q->state->resources[r]->text};
        return false;
    }
    return true;
}

bool kube_fit_ever(const KubeState *s, const KubePod *p, const KubeNode *n, KubeVerdict *why) {
    FitQuery q = query(s, p, n, NULL);
    *why = (KubeVerdict){0};
    if (q.plan->refused.reason != FIT_OK && q.plan->always) {
        *why = q.plan->refused;
        return false;
    }
    for (uint32_t i = 0; i < q.plan->n_checks; i++) {
        if (q.plan->others[i]) continue;
        bool holds = q.plan->checks[i] == fit_check_resources ? ever_holds(&q, why)
                                                              : q.plan->checks[i](&q, why);
        if (!holds) return false;
    }
    return true;
}

void kube_fit_nodes(const KubeState *s, const KubePod *p, uint64_t *bits) {
    const FitPlan *f = fit_plan(s, p);
    KubeVerdict    why;
    memset(bits, 0, ((size_t)s->n_nodes + 63) / 64 * sizeof *bits);
    if (f->refused.reason != FIT_OK) return;
    for (uint32_t i = 0; i < s->n_nodes; i++) {
        FitQuery q = {s, f, p, s->nodes[i], &p->info.requests};
        bool     fits = true;
        for (uint32_t k = 0; k < f->n_checks && fits; k++)
            fits = f->checks[k] == fit_check_resources || f->checks[k](&q, &why);
        if (fits) bits[i / 64] |= UINT64_C(1) << i % 64;
    }
}
