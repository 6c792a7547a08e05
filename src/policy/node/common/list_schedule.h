// ListSchedule: requests in order of arrival or of their deadlines, each given the cores that its
// next block asks for, or what is free of them.
#pragma once

#include "contract/node.h"
#include "policy/node/common/node_setup.h"
#include "policy/node/common/request_queue.h"

typedef struct BlockRequest {
    uint32_t n_layers, cores;
} BlockRequest;

typedef struct ListSchedule {
    const NodeView *view;
    RequestQueue   *queue;     // room for those that wait, by deadline; NULL: by arrival
    const uint8_t  *versions;  // for every layer; NULL: what node_best_versions names
    uint32_t        level;     // for node_best_versions
    double          start;     // least share of the cores asked for that a block starts with
    bool            grow;      // blocks that started with less get more when nobody waits
    bool            overtake;  // whoever finds enough cores goes on, though one before it does not
    bool            yield;     // requests that are late already go last
    BlockRequest (*ask)(const void *policy, const NodeView *v, const NodeRequest *r);
    const void *policy;
} ListSchedule;

// Cores in whole quanta, as far as the machine has them.
static inline uint32_t list_schedule_quanta(const NodeMachine *m, uint32_t cores,
                                            uint32_t quantum) {
    uint32_t q = node_setup_quantum(m, quantum);
    uint32_t rounded = (cores + q - 1) / q * q;
    return rounded < m->n_cores ? rounded : m->n_cores;
}

uint32_t list_schedule_run(const ListSchedule *list, NodeAction *out, uint32_t max);

// Cores wanted by all requests there are, in shares of the machine; waiting[t] is what one of
// tenant t is worth.
double list_schedule_load(const NodeView *v, const uint16_t *waiting);
