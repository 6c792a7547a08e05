// Tenant reclaim: GPUs that were lent beyond guarantees are taken back for tenants below theirs.
#pragma once

#include "policy/cluster/common/plan_builder.h"

// Places waiting tasks within their tenants' guarantees, in the order in which they began to wait,
// by preempting tasks of tenants above theirs, the latest started first. scratch: [n_slots].
void tenant_reclaim(PlanBuilder *d, uint32_t *scratch);
