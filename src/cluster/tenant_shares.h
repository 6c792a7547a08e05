// TenantShares: weights, guarantees and limits of tenants, as options give them.
#pragma once

#include "base/arena.h"
#include "base/err.h"
#include "contract/cluster.h"

typedef struct TenantShare {
    const char *name;
    double      weight;             // 0: not given
    uint32_t    guaranteed, limit;  // GPUs; limit 0: none
} TenantShare;

typedef struct TenantShares {
    TenantShare *at;
    uint32_t     n;
} TenantShares;

// quota: "a=16,b=8..24,c=8..,d=..24": all of its GPUs guaranteed; guarantee and limit; either.
// weights: "a=2,b=0.5". Either may be NULL.
MUST_USE Err tenant_shares_read(const char *quota, const char *weights, Arena *a,
                                TenantShares *out);
// A copy of `shares` (NULL: none) with these changes.
MUST_USE Err tenant_shares_change(const TenantShares *shares, const char *quota,
                                  const char *weights, Arena *a, TenantShares *out);

// Into tenants[n_tenants] of a cluster with `gpus` GPUs; *quotas: some tenant has one. shares NULL:
// changes nothing.
MUST_USE Err tenant_shares_apply(const TenantShares *shares, uint64_t gpus, ClusterTenant *tenants,
                                 uint32_t n_tenants, bool *quotas);

// GPUs that a tenant's jobs may have; 0: any number.
uint32_t tenant_shares_limit(const TenantShares *shares, const char *tenant);
