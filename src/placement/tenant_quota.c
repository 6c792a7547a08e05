#include "placement/tenant_quota.h"

#include <string.h>

#include "base/err.h"

void tenant_quota_carve(TenantQuota *q, const ClusterSetup *s, Carve *from) {
    q->used = carve(from, uint64_t, s->quotas ? s->n_tenants + 1 : 0);
}

void tenant_quota_clear(TenantQuota *q, const ClusterSetup *s) {
    q->setup = s;
    if (s->quotas) memset(q->used, 0, (s->n_tenants + 1) * sizeof *q->used);
}

void tenant_quota_open(TenantQuota *q, const ClusterView *v) {
    tenant_quota_clear(q, v->setup);
    for (uint32_t i = 0; v->setup->quotas && i < v->n_running; i++) {
        const ClusterTask *t = &v->tasks[v->running[i]];
        ClusterJob         as = cluster_job_as(&t->job, t->slices, t->n_slices);
        tenant_quota_take(q, &as);
    }
}

static uint32_t tenant_of(const TenantQuota *q, const ClusterJob *j) {
    return j->tenant < q->setup->n_tenants ? j->tenant : q->setup->n_tenants;
}

static uint64_t guarantee_of(const TenantQuota *q, const ClusterJob *j) {
    return j->tenant < q->setup->n_tenants ? q->setup->tenants[j->tenant].guaranteed_milli : 0;
}

bool tenant_quota_fits(const TenantQuota *q, const ClusterJob *j) {
    if (!q->setup->quotas || j->tenant >= q->setup->n_tenants) return true;
    uint64_t limit = q->setup->tenants[j->tenant].limit_milli;
    return limit == 0 || q->used[j->tenant] + cluster_gpu_milli(j) <= limit;
}

void tenant_quota_take(TenantQuota *q, const ClusterJob *j) {
    if (q->setup->quotas) q->used[tenant_of(q, j)] += cluster_gpu_milli(j);
}

void tenant_quota_give(TenantQuota *q, const ClusterJob *j) {
    if (!q->setup->quotas) return;
    CHECK(q->used[tenant_of(q, j)] >= cluster_gpu_milli(j));
    q->used[tenant_of(q, j)] -= cluster_gpu_milli(j);
}

bool tenant_quota_guaranteed(const TenantQuota *q, const ClusterJob *j) {
    return q->setup->quotas &&
           q->used[tenant_of(q, j)] + cluster_gpu_milli(j) <= guarantee_of(q, j);
}

uint64_t tenant_quota_lent(const TenantQuota *q, const ClusterJob *j) {
    if (!q->setup->quotas) return 0;
    uint64_t used = q->used[tenant_of(q, j)], own = guarantee_of(q, j);
    return used > own ? used - own : 0;
}
