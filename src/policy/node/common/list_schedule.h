// ListSchedule: list scheduling of blocks: waiting requests in order of arrival or of deadline,
// each started on the cores that its next block requests, or on those that are free.
#pragma once

#include "contract/node.h"
#include "policy/node/common/core_placement.h"
#include "policy/node/common/node_setup.h"
#include "policy/node/common/request_queue.h"

typedef struct BlockRequest {  // the next block of a request
    uint32_t n_layers, cores;
} BlockRequest;

typedef struct ListSchedule {
    const NodeView *view;
    RequestQueue   *queue;      // scratch for the order by deadline; NULL: by arrival
    const uint8_t  *versions;   // of every layer; NULL: node_best_versions at `level`
    uint32_t        level;      // interference level for node_best_versions
    double          min_start;  // a block starts with at least this share of its cores
    bool            grow;       // blocks that started with fewer cores get more when none waits
    bool            backfill;   // a request that cannot start does not block those behind it
    bool            late_last;  // requests past their deadline go last
    BlockRequest (*ask)(const void *policy, const NodeView *v, const NodeRequest *r);
    const void *policy;
} ListSchedule;

// Rounds up to whole quanta, at most the machine's cores.
static inline uint32_t list_schedule_quanta(const NodeMachine *m, uint32_t cores,
                                            uint32_t quantum) {
    uint32_t q = node_setup_quantum(m, quantum);
    uint32_t rounded = (cores + q - 1) / q * q;
    return rounded < m->n_cores ? rounded : m->n_cores;
}

uint32_t list_schedule_run(const ListSchedule *list, NodeAction *out, uint32_t max);

// GROW actions for running blocks with fewer cores than wanted, oldest first; returns their number.
// placement: by cache slices, near the block's cores; NULL: the lowest core numbers.
uint32_t list_schedule_grow(const NodeView *v, const CorePlacement *placement, Cores *free,
                            uint32_t n_free, NodeAction *out, uint32_t max);

// Cores wanted by all requests, as a share of the machine; a waiting request of tenant t counts as
// waiting[t] cores.
double list_schedule_load(const NodeView *v, const uint16_t *waiting);
