// KubeState: nodes, pods and what else decides where pods may run, as the API server last told, and
// the assumed pods: bound by this process and not yet confirmed by a watch.
//
// Objects are parsed once into KubePod and KubeNode; JSON is not kept. What a node has free is
// counted here and nowhere else: pods with its name that have not ended, terminating ones included,
// and assumed ones.
#pragma once

#include <jansson.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/err.h"

enum { KUBE_RESOURCES = 32 };  // kinds of extended resources, at most

typedef enum KubeResource {  // indices into KubeAmounts.of; extended ones follow by name
    KUBE_CPU,                // millicores
    KUBE_MEMORY,             // bytes
    KUBE_EPHEMERAL,          // bytes
    KUBE_PODS,
    KUBE_GPU,       // nvidia.com/gpu, or the resource that the options name
    KUBE_EXTENDED,  // the first extended one
} KubeResource;

typedef struct KubeAmounts {
    int64_t of[KUBE_RESOURCES];
} KubeAmounts;

typedef enum KubeKind {  // collections that are watched
    KUBE_NODES,
    KUBE_PODS_KIND,
    KUBE_NAMESPACES,
    KUBE_CLAIMS,
    KUBE_VOLUMES,
    KUBE_STORAGE_CLASSES,
    KUBE_CSI_NODES,
    KUBE_DISRUPTION_BUDGETS,
    KUBE_PRIORITY_CLASSES,
    KUBE_POD_GROUPS,
    KUBE_RESOURCE_CLAIMS,
    KUBE_KINDS
} KubeKind;

typedef struct KubeNode KubeNode;
typedef struct KubePod  KubePod;

typedef enum KubePhase {
    POD_PENDING,
    POD_RUNNING,
    POD_SUCCEEDED,
    POD_FAILED,
    POD_UNKNOWN
} KubePhase;

// What others read of a pod; constraints are private to kube_fit.
typedef struct KubePodInfo {
    const char *namespace_name, *name, *uid, *version;  // version: resourceVersion, opaque
    const char *node;                                   // spec.nodeName; NULL: not bound
    const char *nominated;                              // status.nominatedNodeName or NULL
    const char *scheduler;                              // spec.schedulerName
    const char *group;   // name of its gang (label, PodGroup), or NULL
    const char *tenant;  // namespace, or the value of the tenant label
    const char *model;   // annotation cotenant.io/model, or NULL
    KubePhase   phase;
    KubeAmounts requests;   // effective: containers, sidecars, init steps, overhead
    uint32_t    gpu_milli;  // of each GPU: 1000, less with a fraction annotation
    int32_t     priority;
    uint32_t    group_min;    // members that must start together; 0: as the PodGroup says
    TimeNs      created;      // Unix time
    bool        may_preempt;  // preemptionPolicy is not Never
    bool        gated, terminating, ours, fungible;
    bool        daemon;                  // owned by a DaemonSet
    double      cores_min, cores_max;    // bounds of a fungible pod, in cores; 0: none
    double      memory_min, memory_max;  // in bytes
    const char *unsupported;  // field that cannot be honoured, with the reason; NULL: none
    const char *refused;      // condition of its last resize: "Infeasible", "Deferred" or NULL
    double      progress, progress_rate;  // last report: iterations, iterations per second; 0: none
    TimeNs      progress_at;              // Unix time, if the report says it; else 0
} KubePodInfo;

typedef struct KubeNodeInfo {
    const char *name, *uid, *gpu_type, *rack;  // from labels; "" without
    KubeAmounts allocatable, used;             // used: of counted and assumed pods
    uint32_t    devices;    // GPUs that there are, if the resource counts shares of them; else 0
    int64_t     gpu_milli;  // thousandths of GPUs that counted and assumed pods hold
    bool        unschedulable, ready;
    const char *unsupported;  // why nothing can run there: it could not be read; NULL: it could
} KubeNodeInfo;

typedef struct KubeStateOptions {  // NULL or 0: the default
    const char *scheduler_name;    // "cotenant"
    const char *gpu_resource;      // "nvidia.com/gpu"
    const char *tenant_label;      // NULL: the namespace is the tenant
    const char *namespaces;        // comma-separated scope; NULL: all
    const char *node_selector;     // label selector of the nodes in scope; NULL: all
} KubeStateOptions;

typedef struct KubeState KubeState;

MUST_USE Err kube_state_create(KubeState **out, const KubeStateOptions *o);
void         kube_state_destroy(KubeState *s);  // accepts NULL

// As a watch delivers them. An object that cannot be parsed is kept with `unsupported`: one bad
// object never stops the others.
void kube_state_begin(KubeState *s, KubeKind k);
void kube_state_put(KubeState *s, KubeKind k, const json_t *object);
void kube_state_gone(KubeState *s, KubeKind k, const json_t *object);
void kube_state_end(KubeState *s, KubeKind k);

// Changes whenever something changed that may let a pod fit which did not.
uint64_t kube_state_version(const KubeState *s);

// Pending pods of this scheduler and all others, nodes in scope; pointers are valid until the next
// put, gone or end.
uint32_t            kube_state_nodes(const KubeState *s, KubeNode *const **out);
uint32_t            kube_state_pods(const KubeState *s, KubePod *const **out);
const KubePodInfo  *kube_pod_info(const KubePod *p);
const KubeNodeInfo *kube_node_info(const KubeNode *n);
KubePod  *kube_state_pod(const KubeState *s, const char *namespace_name, const char *name);
KubeNode *kube_state_node(const KubeState *s, const char *name);

// Assumed pods count as bound until a watch confirms them or they are forgotten.
void            kube_state_assume(KubeState *s, KubePod *p, KubeNode *n);
void            kube_state_forget(KubeState *s, KubePod *p);
const KubeNode *kube_state_assumed(const KubeState *s, const KubePod *p);  // NULL: not assumed

// A report over HTTP, in the place of the annotation, until that one has a later time.
void kube_state_progress(KubePod *p, double iterations, double per_s, TimeNs at);

const char *kube_state_resource(const KubeState *s, KubeResource r);  // its name; NULL: not in use

typedef struct KubeGang {
    bool     known;    // min is known: by annotation, or there is such a PodGroup
    uint32_t min;      // members that must start together
    TimeNs   timeout;  // scheduleTimeoutSeconds; 0: not said
} KubeGang;
KubeGang kube_state_gang(const KubeState *s, const KubePod *p);  // info.group must not be NULL

// Evictions that the disruption budgets that select the pod still allow; UINT32_MAX: none selects.
uint32_t kube_state_disruptions(const KubeState *s, const KubePod *p);
