#include "kube/kube_extender.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"

enum { SCORE_MOST = 10, TEXT = 512 };

static json_t     *member(const json_t *o, const char *key) { return json_object_get(o, key); }
static const char *text_of_member(const json_t *o, const char *key) {
    const char *text = json_string_value(member(o, key));
    return text != NULL ? text : "";
}

// The pod that a request is about; NULL: `why` says what is wrong with it.
static KubePod *pod_of(const KubeState *s, const char *namespace_name, const char *name,
                       const char *uid, char why[TEXT]) {
    KubePod *p = kube_state_pod(s, namespace_name, name);
    if (p == NULL)
        (void)snprintf(why, TEXT,
                       "cotenant has not seen pod %.200s/%.200s yet, or it is outside its "
                       "namespaces; try again",
                       namespace_name, name);
    else if (strcmp(kube_pod_info(p)->uid, uid) != 0)
        (void)snprintf(why, TEXT, "pod %.200s/%.200s is another one now (uid %.64s); try again",
                       namespace_name, name, kube_pod_info(p)->uid);
    else
        return p;
    return NULL;
}

static KubePod *pod_in(const KubeState *s, const json_t *doc, char why[TEXT]) {
    const json_t *meta = member(member(doc, "Pod"), "metadata");
    return pod_of(s, text_of_member(meta, "namespace"), text_of_member(meta, "name"),
                  text_of_member(meta, "uid"), why);
}

// The names of the nodes of a request, whichever form they have. Node i is NULL if it has no name.
static size_t n_nodes(const json_t *doc) {
    const json_t *names = member(doc, "NodeNames");
    return json_array_size(json_is_array(names) ? names : member(member(doc, "Nodes"), "items"));
}

static const char *node_at(const json_t *doc, size_t i) {
    const json_t *names = member(doc, "NodeNames");
    if (json_is_array(names)) return json_string_value(json_array_get(names, i));
    const json_t *item = json_array_get(member(member(doc, "Nodes"), "items"), i);
    return json_string_value(member(member(item, "metadata"), "name"));
}

static uint32_t index_of(const KubeState *s, const KubeNode *node) {
    KubeNode *const *nodes;
    uint32_t         n = kube_state_nodes(s, &nodes), i = 0;
    while (i < n && nodes[i] != node) i++;
    return i;
}

typedef struct Choice {
    uint64_t *fits;  // bits of the nodes of the request that fit
    KubeNode *node;  // NULL: none
    char      why[EXTENDER_WHY];
} Choice;

// Lower is fuller: GPUs first, then cores.
static bool fuller(const KubeNode *a, const KubeNode *b) {
    const KubeNodeInfo *x = kube_node_info(a), *y = kube_node_info(b);
    for (uint32_t k = 0; k < 2; k++) {
        KubeResource r = k == 0 ? KUBE_GPU : KUBE_CPU;
        int64_t      p = x->allocatable.of[r] - x->used.of[r];
        int64_t      q = y->allocatable.of[r] - y->used.of[r];
        if (p != q) return p < q;
    }
    return false;
}

KubeNode *kube_extender_best(const KubeState *s, const KubePod *p, const uint64_t *allowed) {
    KubeNode *const *nodes;
    KubeNode        *best = NULL;
    int64_t          score = 0;
    uint32_t         n = kube_state_nodes(s, &nodes);
    for (uint32_t i = 0; i < n; i++) {
        if ((allowed[i / 64] >> i % 64 & 1) == 0) continue;
        int64_t own = kube_fit_score(s, p, nodes[i]);
        bool    better = best == NULL || own > score || (own == score && fuller(nodes[i], best));
        if (!better) continue;
        best = nodes[i];
        score = own;
    }
    return best;
}

static bool mark_fits(const KubeState *s, const json_t *doc, const KubePod *p, uint64_t *fits) {
    KubeNode *const *nodes;
    uint32_t         n = kube_state_nodes(s, &nodes);
    bool             some = false;
    for (size_t i = 0; i < n_nodes(doc); i++) {
        const char *name = node_at(doc, i);
        KubeNode   *node = name != NULL ? kube_state_node(s, name) : NULL;
        KubeVerdict why;
        if (node == NULL || !kube_fit(s, p, node, NULL, &why)) continue;
        uint32_t k = index_of(s, node);
        if (k == n) continue;
        fits[k / 64] |= UINT64_C(1) << k % 64;
        some = true;
    }
    return some;
}

// The pod is taken out of the account while nodes are asked whether they have room for it.
static Err choose(const KubeExtender *x, const json_t *doc, KubePod *p, Choice *c) {
    KubeNode *const *nodes;
    const KubeNode  *assumed = kube_state_assumed(x->state, p);
    uint32_t         n = kube_state_nodes(x->state, &nodes);
    KubeNode        *was =
        assumed != NULL ? kube_state_node(x->state, kube_node_info(assumed)->name) : NULL;
    *c = (Choice){.fits = calloc(n / 64 + 1, sizeof *c->fits)};
    if (c->fits == NULL) return err_set(ERR_LIMIT, "no memory for %u nodes", n);
    if (assumed != NULL) kube_state_forget(x->state, p);
    (void)snprintf(c->why, sizeof c->why, "the policy lets it wait");
    if (mark_fits(x->state, doc, p, c->fits)) {
        c->node = x->place != NULL ? x->place(x->self, p, was, c->fits, c->why)
                                   : kube_extender_best(x->state, p, c->fits);
    }
    return ERR_OK;
}

static const char *resource_name(const KubeState *s, KubeResource r) {
    const char *name = kube_state_resource(s, r);
    return name != NULL ? name : "a resource";
}

static const char *verdict_text(const KubeState *s, const KubeVerdict *v, char out[TEXT]) {
    static const char *const reasons[] = {
#define X(id, text) text,
#include "kube/kube_fit_reason.def"
#undef X
    };
    const char *detail = v->detail != NULL ? v->detail : "";
    if (v->reason == FIT_INSUFFICIENT)
        (void)snprintf(out, TEXT, "Insufficient %s", resource_name(s, v->resource));
    else
        (void)snprintf(out, TEXT, "%s%s%.400s", reasons[v->reason], detail[0] != '\0' ? ": " : "",
                       detail);
    return out;
}

// Why a node is not the one; *ever: it may be later. NULL: it is the one.
static const char *refusal(const KubeExtender *x, KubePod *p, const Choice *c, const char *name,
                           char out[TEXT], bool *ever) {
    KubeNode   *node = name != NULL ? kube_state_node(x->state, name) : NULL;
    KubeVerdict why = {.reason = FIT_OK};
    *ever = true;
    if (node == NULL) {
        *ever = false;
        return "unknown to cotenant, or outside its node selector";
    }
    if (node == c->node) return NULL;
    if (!kube_fit(x->state, p, node, NULL, &why)) {
        (void)verdict_text(x->state, &why, out);
        *ever = kube_fit_ever(x->state, p, node, &why);
    } else if (c->node != NULL) {
        (void)snprintf(out, TEXT, "the policy places the pod on %.200s",
                       kube_node_info(c->node)->name);
    } else {
        (void)snprintf(out, TEXT, "%.*s", EXTENDER_WHY, c->why);
    }
    return out;
}

static void set(json_t *to, const char *key, json_t *value) {
    (void)json_object_set_new(to, key, value);
}

static json_t *filter(const KubeExtender *x, const json_t *doc, KubePod *p, const Choice *c) {
    bool    by_name = json_is_array(member(doc, "NodeNames"));
    json_t *names = json_array(), *items = json_array(), *failed = json_object(),
           *never = json_object(), *all = json_object();
    for (size_t i = 0; i < n_nodes(doc); i++) {
        const char *name = node_at(doc, i);
        char        text[TEXT];
        bool        ever;
        const char *why = refusal(x, p, c, name, text, &ever);
        if (name == NULL) continue;
        if (why != NULL) {
            set(ever ? failed : never, name, json_string(why));
            continue;
        }
        (void)json_array_append_new(names, json_string(name));
        if (!by_name)
            (void)json_array_append(items,
                                    json_array_get(member(member(doc, "Nodes"), "items"), i));
    }
    if (by_name) {
        set(all, "Nodes", json_null());
        set(all, "NodeNames", names);
        json_decref(items);
    } else {
        set(all, "Nodes", json_pack("{s:o}", "items", items));
        set(all, "NodeNames", json_null());
        json_decref(names);
    }
    set(all, "FailedNodes", failed);
    set(all, "FailedAndUnresolvableNodes", never);
    set(all, "Error", json_string(""));
    return all;
}

// The part of a node that is in use, of what the pod asks for most: fuller is better.
static int64_t fullness(const KubePodInfo *p, const KubeNode *node) {
    const KubeNodeInfo *n = kube_node_info(node);
    KubeResource        r = p->requests.of[KUBE_GPU] > 0 ? KUBE_GPU : KUBE_CPU;
    int64_t             all = n->allocatable.of[r], used = n->used.of[r];
    if (all <= 0 || used <= 0) return 0;
    return used >= all ? SCORE_MOST - 1 : (int64_t)((double)used / (double)all * (SCORE_MOST - 1));
}

static json_t *prioritize(const KubeExtender *x, const json_t *doc, KubePod *p, const Choice *c) {
    json_t *all = json_array();
    for (size_t i = 0; i < n_nodes(doc); i++) {
        const char *name = node_at(doc, i);
        KubeNode   *node = name != NULL ? kube_state_node(x->state, name) : NULL;
        int64_t     score = 0;
        if (name == NULL) continue;
        uint32_t k = node != NULL ? index_of(x->state, node) : 0;
        if (node != NULL && node == c->node)
            score = SCORE_MOST;
        else if (node != NULL && (c->fits[k / 64] >> k % 64 & 1) != 0)
            score = fullness(kube_pod_info(p), node);
        (void)json_array_append_new(
            all, json_pack("{s:s,s:I}", "Host", name, "Score", (json_int_t)score));
    }
    return all;
}

static Err check_nodes(const json_t *doc) {
    const json_t *names = member(doc, "NodeNames"), *items = member(member(doc, "Nodes"), "items");
    if (json_is_array(names) || json_is_array(items)) return ERR_OK;
    return err_set(ERR_INVALID, "extender request: give NodeNames, or Nodes with items");
}

static Err sorted_out(const KubeExtender *x, KubeExtenderVerb v, const json_t *doc, json_t **out) {
    char     why[TEXT];
    Choice   c;
    KubePod *p = pod_in(x->state, doc, why);
    TRY(check_nodes(doc));
    if (p == NULL && v == EXTENDER_PRIORITIZE) return err_set(ERR_INVALID, "%s", why);
    if (p == NULL) {
        *out = json_pack("{s:n,s:n,s:{},s:{},s:s}", "Nodes", "NodeNames", "FailedNodes",
                         "FailedAndUnresolvableNodes", "Error", why);
        return ERR_OK;
    }
    TRY(choose(x, doc, p, &c));
    *out = v == EXTENDER_FILTER ? filter(x, doc, p, &c) : prioritize(x, doc, p, &c);
    if (x->assumes && c.node != NULL && kube_pod_info(p)->node == NULL)
        kube_state_assume(x->state, p, c.node);
    free(c.fits);
    return ERR_OK;
}

// Preemption: kube-scheduler proposes victims by node; those that would break a gang, are not of
// lower priority, or would not make room are dropped.

static KubePod *pod_by_uid(const KubeState *s, const char *uid) {
    KubePod *const *pods;
    uint32_t        n = kube_state_pods(s, &pods);
    for (uint32_t i = 0; i < n; i++)
        if (strcmp(kube_pod_info(pods[i])->uid, uid) == 0) return pods[i];
    return NULL;
}

static const char *uid_at(const json_t *victims, size_t i) {
    const json_t *pod = json_array_get(member(victims, "Pods"), i);
    const char   *uid = json_string_value(member(pod, "UID"));
    return uid != NULL ? uid : text_of_member(member(pod, "metadata"), "uid");
}

static bool is_victim(const json_t *victims, const char *uid) {
    for (size_t i = 0; i < json_array_size(member(victims, "Pods")); i++)
        if (strcmp(uid_at(victims, i), uid) == 0) return true;
    return false;
}

// Every bound pod of its gang is a victim too.
static bool gang_is_whole(const KubeState *s, const KubePodInfo *p, const json_t *victims) {
    KubePod *const *pods;
    uint32_t        n = kube_state_pods(s, &pods);
    if (p->group == NULL) return true;
    for (uint32_t i = 0; i < n; i++) {
        const KubePodInfo *x = kube_pod_info(pods[i]);
        bool runs = x->node != NULL && x->phase != POD_SUCCEEDED && x->phase != POD_FAILED;
        if (runs && x->group != NULL && strcmp(x->group, p->group) == 0 &&
            strcmp(x->namespace_name, p->namespace_name) == 0 && !is_victim(victims, x->uid))
            return false;
    }
    return true;
}

static bool makes_room(const KubeState *s, const KubePod *p, const KubeNode *node,
                       const KubeAmounts *freed) {
    const KubeNodeInfo *n = kube_node_info(node);
    const KubePodInfo  *x = kube_pod_info(p);
    KubeVerdict         why;
    for (uint32_t r = 0; r < KUBE_RESOURCES; r++)
        if (x->requests.of[r] > n->allocatable.of[r] - n->used.of[r] + freed->of[r]) return false;
    return kube_fit_ever(s, p, node, &why);
}

// The victims of one node as the response has them; NULL: the node is dropped.
static json_t *accepted(const KubeState *s, const KubePod *p, const char *name,
                        const json_t *victims) {
    const KubeNode *node = kube_state_node(s, name);
    KubeAmounts     freed = {{0}};
    json_t         *uids = json_array();
    bool            ok = node != NULL && kube_pod_info(p)->may_preempt;
    for (size_t i = 0; ok && i < json_array_size(member(victims, "Pods")); i++) {
        const char        *uid = uid_at(victims, i);
        const KubePod     *v = pod_by_uid(s, uid);
        const KubePodInfo *x = v != NULL ? kube_pod_info(v) : NULL;
        ok = x != NULL && x->node != NULL && strcmp(x->node, name) == 0 &&
             x->priority < kube_pod_info(p)->priority && gang_is_whole(s, x, victims);
        for (uint32_t r = 0; ok && r < KUBE_RESOURCES; r++) freed.of[r] += x->requests.of[r];
        if (ok) (void)json_array_append_new(uids, json_pack("{s:s}", "UID", uid));
    }
    if (ok && makes_room(s, p, node, &freed))
        return json_pack("{s:o,s:I}", "Pods", uids, "NumPDBViolations",
                         json_integer_value(member(victims, "NumPDBViolations")));
    json_decref(uids);
    return NULL;
}

static Err preempt(const KubeExtender *x, const json_t *doc, json_t **out) {
    json_t     *from = member(doc, "NodeNameToMetaVictims"), *kept = json_object(), *victims;
    const char *name;
    char        why[TEXT];
    KubePod    *p = pod_in(x->state, doc, why);
    if (json_object_size(from) == 0) from = member(doc, "NodeNameToVictims");
    if (p != NULL) {
        json_object_foreach(from, name, victims) {
            json_t *row = accepted(x->state, p, name, victims);
            if (row != NULL) set(kept, name, row);
        }
    }
    *out = json_pack("{s:o}", "NodeNameToMetaVictims", kept);
    return ERR_OK;
}

Err kube_extender_answer(const KubeExtender *x, KubeExtenderVerb v, const char *body, size_t len,
                         char **out) {
    json_t *doc = NULL, *reply = NULL;
    TRY(json_parse("extender request", body, len, &doc));
    Err e = v == EXTENDER_PREEMPT ? preempt(x, doc, &reply) : sorted_out(x, v, doc, &reply);
    json_decref(doc);
    if (e != ERR_OK) return e;
    *out = reply != NULL ? json_dumps(reply, JSON_COMPACT) : NULL;
    json_decref(reply);
    return *out != NULL ? ERR_OK : err_set(ERR_LIMIT, "no memory for an extender's response");
}

static const char *bind_fault(const KubeExtender *x, KubePod *p, KubeNode *n, Arena *a) {
    const KubePodInfo *i = kube_pod_info(p);
    const KubeNode    *assumed = kube_state_assumed(x->state, p);
    KubeVerdict        why;
    char               text[TEXT];
    if (i->terminating) return "the pod is being deleted";
    if (i->gated) return "the pod has scheduling gates";
    if (i->node != NULL) return arena_printf(a, "the pod is bound to %.200s already", i->node);
    if (n == NULL) return "the node is unknown to cotenant, or outside its node selector";
    if (assumed != NULL && assumed != n)
        return arena_printf(a, "the pod's place is %.200s now; try again",
                            kube_node_info(assumed)->name);
    if (assumed != NULL) kube_state_forget(x->state, p);
    bool fits = kube_fit(x->state, p, n, NULL, &why);
    if (assumed != NULL) kube_state_assume(x->state, p, n);
    return fits ? NULL : arena_printf(a, "%s", verdict_text(x->state, &why, text));
}

Err kube_extender_bind(const KubeExtender *x, const char *body, size_t len, Arena *a, KubePod **pod,
                       KubeNode **node, const char **fault) {
    json_t *doc = NULL;
    char    why[TEXT];
    TRY(json_parse("extender request", body, len, &doc));
    KubePod  *p = pod_of(x->state, text_of_member(doc, "PodNamespace"),
                         text_of_member(doc, "PodName"), text_of_member(doc, "PodUID"), why);
    KubeNode *n = kube_state_node(x->state, text_of_member(doc, "Node"));
    *fault = p != NULL ? bind_fault(x, p, n, a) : arena_printf(a, "%s", why);
    *pod = p;
    *node = n;
    json_decref(doc);
    return ERR_OK;
}
