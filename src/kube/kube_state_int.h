// KubeState internals: objects, accounts and the functions between its files.
#pragma once

#include "kube/kube_labels.h"
#include "kube/kube_state.h"
#include "kube/kube_table.h"
#include "kube/label_selector.h"

typedef enum TaintEffect {
    EFFECT_ALL,
    EFFECT_NO_SCHEDULE,
    EFFECT_PREFER,
    EFFECT_NO_EXECUTE
} TaintEffect;

typedef struct Taint {
    const KubeWord *key, *value;  // value: "" without
    TaintEffect     effect;
} Taint;

typedef struct Toleration {
    const KubeWord *key;    // NULL: all keys
    const KubeWord *value;  // NULL: Exists
    TaintEffect     effect;
} Toleration;

typedef struct HostPort {
    const KubeWord *ip, *protocol;
    uint32_t        port;
} HostPort;

typedef struct PodTerm {  // of pod affinity
    LabelSelector          labels, namespace_labels;
    const KubeWord *const *namespaces;  // [n]
    const KubeWord        *topology;
    const KubeWord        *identity;  // the same for equal terms; of required anti-affinity only
    uint32_t               n, group_at;
    int32_t                weight;  // of a preferred term
} PodTerm;

typedef struct PodTerms {
    PodTerm *at;
    uint32_t n;
} PodTerms;

typedef struct SpreadRule {
    LabelSelector   labels;
    const KubeWord *topology;
    int64_t         max_skew, min_domains;
    bool            hard, ignores_affinity, heeds_taints;
} SpreadRule;

typedef struct PodClaim {
    const char *key;     // "NAMESPACE/CLAIM"
    const char *name;    // the claim's
    const char *volume;  // its name in the pod
    bool        owned;   // of a generic ephemeral volume
} PodClaim;

typedef struct Fungible {  // bounds; 0: none
    double cores_min, cores_max, memory_min, memory_max;
    int8_t on;  // -1: not said
} Fungible;

struct KubePod {
    KubeEntry       entry;
    KubePodInfo     info;
    KubeMemory      memory;
    uint32_t        at;       // in pods of the state
    uint32_t        host_at;  // in pods of the host
    KubeNode       *host;     // counted there; NULL: nowhere
    bool            assumed;
    bool            waits;  // has constraints that other pods may satisfy
    const KubeWord *namespace_word, *os;
    Labels          labels, node_selector;
    Fungible        fungible;
    NodeTerms       node_terms, preferred_nodes;
    PodTerms        affinity, anti, preferred, preferred_anti;
    Toleration     *tolerations;
    HostPort       *ports;
    SpreadRule     *spread;
    PodClaim       *claims;
    const char    **resource_claims;  // keys
    uint32_t        n_tolerations, n_ports, n_spread, n_claims, n_resource_claims;
};

struct KubeNode {  // stays while the node is known or a pod is counted on it
    KubeEntry       entry;
    KubeNodeInfo    info;
    KubeMemory      name_memory, memory;
    const KubeWord *word;
    uint32_t        at;  // in nodes of the state
    bool            known, in_scope;
    Labels          labels;
    Taint          *taints;
    uint32_t        n_taints;
    KubePod       **pods;  // [n_pods] counted
    uint32_t        n_pods, room;
};

typedef struct RepelGroup {  // required anti-affinity terms that are equal
    KubeEntry entry;         // by identity
    struct RepelMember {
        KubePod *pod;
        PodTerm *term;
    } * members;  // [n] of counted pods
    uint32_t n, room;
} RepelGroup;

typedef struct KubeNamespace {
    KubeEntry  entry;
    KubeMemory memory;
    Labels     labels;
    Fungible   fungible;
} KubeNamespace;

typedef struct KubeClaim {
    KubeEntry   entry;
    KubeMemory  memory;
    const char *volume, *class_name, *owner_uid, *selected_node;
    bool        bound, deleted, lost, exclusive;  // exclusive: ReadWriteOncePod
} KubeClaim;

typedef struct KubeVolume {
    KubeEntry   entry;
    KubeMemory  memory;
    NodeTerms   nodes;
    Labels      labels;
    const char *driver, *handle;
} KubeVolume;

typedef struct KubeClass {
    KubeEntry  entry;
    KubeMemory memory;
    bool       waits;  // WaitForFirstConsumer
} KubeClass;

typedef struct CsiLimit {
    const char *driver;
    int64_t     most;
} CsiLimit;

typedef struct KubeCsiNode {
    KubeEntry  entry;
    KubeMemory memory;
    CsiLimit  *limits;
    uint32_t   n;
} KubeCsiNode;

typedef struct KubeBudget {
    KubeEntry       entry;
    KubeMemory      memory;
    const KubeWord *namespace_word;
    LabelSelector   labels;
    int64_t         allowed;
} KubeBudget;

typedef struct KubePodGroup {
    KubeEntry  entry;
    KubeMemory memory;
    int64_t    min;
    TimeNs     timeout;
} KubePodGroup;

typedef struct KubeResourceClaim {
    KubeEntry  entry;
    KubeMemory memory;
    NodeTerms  nodes;
    bool       allocated, full;  // full: as many pods as a claim can serve have it
} KubeResourceClaim;

struct FitPlan;

struct KubeState {
    KubeStateOptions options;  // strings in `memory`
    KubeMemory       memory;
    KubeWords        words;
    LabelSelector    scope;
    KubeTable        tables[KUBE_KINDS];
    KubeTable        repel;
    const KubeWord  *resources[KUBE_RESOURCES];  // names
    uint32_t         n_resources;
    KubePod        **pods;
    KubeNode       **nodes;  // in scope
    uint32_t         n_pods, room_pods, n_nodes, room_nodes;
    uint32_t         n_waiting;        // pods with `waits`
    uint64_t         version, change;  // change: with every change
    struct FitPlan  *plan;
};

// kube_account.c: what is counted where.
void      kube_attach(KubeState *s, KubePod *p, KubeNode *n);
void      kube_detach(KubeState *s, KubePod *p);
bool      kube_pod_over(const KubePod *p);            // Succeeded or Failed
KubeNode *kube_host(KubeState *s, const char *name);  // makes an unknown one if there is none
void      kube_host_drop(KubeState *s, KubeNode *n);  // frees one that is unknown and without pods
// The index of a resource; KUBE_RESOURCES: it is new and there are `most` already.
uint32_t kube_resource(KubeState *s, const char *name, uint32_t most);

// kube_pod.c: NULL if the object has no name. kube_pod_settle takes over what its namespace says.
KubePod *kube_pod_read(KubeState *s, const json_t *object);
void     kube_pod_free(KubePod *p);
void     kube_pod_settle(const KubeState *s, KubePod *p);
void     kube_fungible_read(const json_t *annotations, Fungible *out, const char **bad);

// kube_node.c
void kube_node_put(KubeState *s, const json_t *object);
void kube_node_remove(KubeState *s, KubeNode *n);
void kube_node_free(KubeNode *n);

// kube_objects.c: all other kinds.
void kube_object_put(KubeState *s, KubeKind k, const json_t *object);
void kube_object_remove(KubeState *s, KubeKind k, KubeEntry *e);

// kube_state.c
bool        kube_key(KubeKind k, const json_t *object, char *out, size_t room);
const char *kube_text(const json_t *object, const char *key);  // NULL: absent or no text
const char *kube_meta(const json_t *object, const char *key);  // of metadata
void       *kube_grow(void *array, uint32_t n, uint32_t *room, size_t size);

// kube_fit_plan.c
struct FitPlan *kube_plan_create(void);
void            kube_plan_free(struct FitPlan *f);
