// Mix: networks that share a node, with a latency target each.
//
// Classes and targets are VELTAIR's, for a server of 64 cores. On another machine they would be
// infeasible or trivial, so there QoS is MIX_SLACK times the network's latency alone on all
// cores. 5 is the geometric middle of what the paper leaves its medium networks: on 56 cores
// ResNet-50 takes 4.3 of its 15 ms, GoogLeNet 1.9. Every policy gets the same targets in
// milliseconds.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/clock.h"

enum { MIX_TENANTS = 8 };
#define MIX_SLACK 5.0

typedef enum MixPlace {
    MIX_SERVER,  // the paper's machine: its targets, bert_large
    MIX_HERE,    // any other machine: targets by mix_qos, bert_base
} MixPlace;

typedef struct MixTenant {
    const char *network;   // in the zoo
    int64_t     sequence;  // 0: the network's default
    TimeNs      qos_ns;    // 0: computed by mix_qos
    double      share;     // share of the requests; equal for all
} MixTenant;

typedef struct Mix {
    const char *name;
    MixTenant   tenants[MIX_TENANTS];
    uint32_t    n;
} Mix;

const char  *mix_name(uint32_t i);  // NULL after the last
MUST_USE Err mix_find(const char *name, MixPlace place, Mix *out);
TimeNs       mix_qos(TimeNs alone, double slack);  // whole microseconds, at least one
