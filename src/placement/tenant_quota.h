// TenantQuota: GPUs that the tenants' running jobs request, against their limits and guarantees.
//
// Without limits and guarantees in the setup nothing is counted and everything fits.
#pragma once

#include "base/carve.h"
#include "contract/cluster.h"

typedef struct TenantQuota {
    const ClusterSetup *setup;
    uint64_t           *used;  // [n_tenants + 1] thousandths of a GPU; the last: without a tenant
} TenantQuota;

void tenant_quota_carve(TenantQuota *q, const ClusterSetup *s, Carve *from);
void tenant_quota_clear(TenantQuota *q, const ClusterSetup *s);
void tenant_quota_open(TenantQuota *q, const ClusterView *v);       // all running tasks
bool tenant_quota_fits(const TenantQuota *q, const ClusterJob *j);  // below the limit
void tenant_quota_take(TenantQuota *q, const ClusterJob *j);
void tenant_quota_give(TenantQuota *q, const ClusterJob *j);

// The job would run within its tenant's guarantee.
bool tenant_quota_guaranteed(const TenantQuota *q, const ClusterJob *j);
// Thousandths that the job's tenant uses beyond its guarantee.
uint64_t tenant_quota_lent(const TenantQuota *q, const ClusterJob *j);
