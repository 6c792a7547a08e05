// ClusterPolicy helpers: layout of a policy's state, newly waiting tasks, periods.
#pragma once

#include "base/carve.h"
#include "contract/cluster.h"

// A state is a T followed by the arrays that lay_out(T *, const ClusterSetup *, Carve *) carves.
// Defines state_size() for the policy's table and state_open() for its init().
#define CLUSTER_POLICY_STATE(T)                                                                    \
    static size_t state_size(const ClusterSetup *s, const void *settings) {                        \
        (void)settings;                                                                            \
        T     none = {0};                                                                          \
        Carve c = {.used = sizeof none};                                                           \
        lay_out(&none, s, &c);                                                                     \
        return c.used;                                                                             \
    }                                                                                              \
    static T *state_open(void *state, const ClusterSetup *s) {                                     \
        T    *x = state;                                                                           \
        Carve c = {.base = state, .used = sizeof *x};                                              \
        lay_out(x, s, &c);                                                                         \
        return x;                                                                                  \
    }

// Index into view->waiting of the first task that began to wait after entry number `seen`.
static inline uint32_t waiting_since(const ClusterView *v, uint64_t seen) {
    uint32_t from = v->n_waiting;
    while (from > 0 && v->tasks[v->waiting[from - 1]].entry > seen) from--;
    return from;
}

// The first multiple of `period` after `now`.
static inline TimeNs period_after(TimeNs now, TimeNs period) { return (now / period + 1) * period; }
