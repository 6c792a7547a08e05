#include "policy/cluster/common/tenant_reclaim.h"

enum { TRIES = 64 };  // tasks that do not fit before it ends

// Running tasks whose tenants keep their guarantees when all of these stop.
static uint32_t find_lent(const PlanBuilder *d, uint32_t *out) {
    const ClusterView *v = d->view;
    uint32_t           n = 0, has = 0;
    for (uint32_t i = v->n_running; i-- > 0;) {
        const ClusterJob *j = &v->tasks[v->running[i]].job;
        uint64_t milli = cluster_gpu_milli(j), lent = tenant_quota_lent(&d->free.tenants, j);
        if (milli == 0 || plan_builder_slices(d, v->running[i], &has) == NULL) continue;
        for (uint32_t k = 0; k < n; k++)
            if (v->tasks[out[k]].job.tenant == j->tenant)
                lent -= cluster_gpu_milli(&v->tasks[out[k]].job);
        if (milli <= lent) out[n++] = v->running[i];
    }
    return n;
}

void tenant_reclaim(PlanBuilder *d, uint32_t *scratch) {
    const ClusterView *v = d->view;
    uint32_t           failed = 0, has = 0;
    if (!v->setup->quotas) return;
    for (uint32_t i = 0; i < v->n_waiting && failed < TRIES; i++) {
        uint32_t          slot = v->waiting[i];
        const ClusterJob *j = &v->tasks[slot].job;
        if (!tenant_quota_guaranteed(&d->free.tenants, j)) continue;
        if (plan_builder_slices(d, slot, &has) != NULL || plan_builder_place(d, slot)) continue;
        uint32_t n = find_lent(d, scratch);
        if (!plan_builder_preempt(d, slot, j, scratch, n)) failed++;
    }
}
