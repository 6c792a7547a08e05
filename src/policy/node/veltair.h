// Veltair: adaptive blocks and adaptive versions; the ablations run the same code with one of them.
#pragma once

#include "base/carve.h"
#include "contract/node.h"

#define VELTAIR_SETTINGS(X, length, follow, eager)                                                 \
    X(safety, double, 0.85, 0.01, 1.0, "share of the QoS that cores are sized for when crowded")   \
    X(idle, double, eager, 0.01, 1.0, "the same on an idle machine")                               \
    X(th_lo, double, 0.1, 0.0, 100.0, "threshold of block formation on an idle machine")           \
    X(th_hi, double, 2.0, 0.0, 100.0, "threshold of block formation on a crowded machine")         \
    X(min_dispatches, double, 20.0, 0.0, 1e6, "a block takes at least that many dispatch times")   \
    X(max_qos, double, 0.1, 0.001, 1.0, "a block takes at most this share of the least QoS")       \
    X(fixed, int, length, 0, 100000, "layers of a block; 0: by threshold")                         \
    X(quantum, int, 4, 1, 256, "cores are given in multiples of that many")                        \
    X(overtake, bool, true, 0, 1, "who finds enough cores passes who does not")                    \
    X(urgent, bool, true, 0, 1, "in order of deadlines; else of arrival")                          \
    X(yield, bool, true, 0, 1, "requests that are late already go after those that are not")       \
    X(start, double, 0.5, 0.0, 1.0, "least share of the cores wanted that a block starts with")    \
    X(recover, bool, follow, 0, 1, "blocks of a request that is behind its plan get more cores")   \
    X(grow, bool, follow, 0, 1, "blocks that started with less get more as cores become free")     \
    X(hold, double, 0.25, 0.0, 5.0, "pressure beyond the middle between levels that changes them")

typedef struct VeltairSettings {
#define X(...) SETTING_FIELD(__VA_ARGS__)
    VELTAIR_SETTINGS(X, 0, true, 0.2)
#undef X
} VeltairSettings;

size_t   veltair_size(const NodeSetup *setup, const void *settings);
void     veltair_init(void *state, const NodeSetup *setup, const void *settings);
void     veltair_init_as(void *state, const NodeSetup *setup, const void *settings);
uint32_t veltair_decide(void *state, const NodeView *view, NodeAction *out, uint32_t max);
