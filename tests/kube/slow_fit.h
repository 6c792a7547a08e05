// SlowFit: a small random cluster as plain structs, and where its pods fit by counting anew from
// all pods for every node: the twin of KubeFit.
#pragma once

#include <jansson.h>

#include "base/rng.h"
#include "kube/kube_fit.h"

enum { SLOW_NODES = 8, SLOW_PODS = 16, SLOW_APPS = 3, SLOW_TERMS = 2 };

typedef struct SlowNode {
    int  cpu, pods, zone, rack;  // zone, rack: -1 without the label
    int  taint;                  // 0: none, 1: NoSchedule, 2: NoExecute
    bool closed;
} SlowNode;

typedef struct SlowTerm {
    int app;       // selects app=aN; -1: every pod; -2: pods of another app than a0
    int topology;  // 0 zone, 1 rack, 2 host
    int spaces;    // 0: own namespace, 1: namespace n1, 2: all by an empty selector, 3: team=t0
} SlowTerm;

typedef struct SlowSpread {
    SlowTerm term;
    int      skew, min_domains;
    bool     ignores_affinity, heeds_taints, by_version;
} SlowSpread;

typedef struct SlowPod {
    int        space, app, version, cpu, port;  // port 0: none
    int        on;                              // node, -1: pending
    bool       leaving, tolerates;
    int        want_zone;  // nodeSelector, -1: none
    int        shun_rack;  // node affinity NotIn, -1: none
    int        n_near, n_apart, n_spread;
    SlowTerm   near[SLOW_TERMS], apart[SLOW_TERMS];
    SlowSpread spread[SLOW_TERMS];
} SlowPod;

typedef struct SlowCluster {
    int      n_nodes, n_pods;
    SlowNode nodes[SLOW_NODES];
    SlowPod  pods[SLOW_PODS];
    int      team[2];  // of the namespaces
} SlowCluster;

void          slow_random(Rng *r, SlowCluster *c);
void          slow_random_pod(Rng *r, const SlowCluster *c, SlowPod *p);
KubeFitReason slow_fit(const SlowCluster *c, int pod, int node, bool resources);
json_t       *slow_node_json(const SlowCluster *c, int node);
json_t       *slow_pod_json(const SlowCluster *c, int pod, unsigned version);
