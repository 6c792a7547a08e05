// RequestTrace: the requests of a run as CSV, one row each: when it comes, for which network, when
// it is due and of which tenant.
//
//   time_ms,network,deadline_ms,tenant
//   0.25,resnet50,14,kitchen
//
// deadline_ms counts from the request's arrival; without the column, or with an empty field, the
// deadline follows the scenario's rule at the medium level of service. Without the column tenant,
// or with an empty field, a tenant has the name of its network. A tenant with several networks
// counts as one tenant for each of them. Columns stand in any order, rows by time.
#pragma once

#include <stdio.h>

#include "base/arena.h"
#include "base/err.h"
#include "contract/chip.h"

enum { REQUEST_TRACE_MOST = 1 << 20 };  // requests

typedef struct TraceRequest {
    TimeNs   at, due;  // due: after its arrival; 0: by the scenario's rule
    uint32_t tenant;   // index
} TraceRequest;

typedef struct TraceTenant {
    const char *name, *network;
    uint32_t    n;  // requests
} TraceTenant;

typedef struct RequestTrace {
    const char   *name;
    TraceRequest *at;  // [n] by time
    uint32_t      n;
    TraceTenant   tenants[CHIP_TENANTS];  // [n_tenants] by first appearance
    uint32_t      n_tenants;
} RequestTrace;

// Splits text[len] in place and borrows it; text[len] is writable too. Errors name the line.
MUST_USE Err request_trace_parse(const char *name, char *text, size_t len, Arena *a,
                                 RequestTrace *out);
MUST_USE Err request_trace_load(const char *path, Arena *a, RequestTrace *out);

// Writes requests so that reading them gives the same times, deadlines and tenants.
// networks: [tenants].
void         request_trace_put(FILE *f, const ChipTenant *tenants, const char *const *networks,
                               const ChipRequest *at, uint32_t n);
MUST_USE Err request_trace_save(const char *path, const ChipTenant *tenants,
                                const char *const *networks, const ChipRequest *at, uint32_t n);
