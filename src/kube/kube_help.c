// What would help a pod that does not fit: room on one node, a smaller request, a toleration, the
// end of other pods. Each is tried against the state, never guessed.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kube/kube_why.h"

typedef struct Shortage {  // of the node that lacks least
    const KubeNode *node;
    uint32_t        kinds;  // resources that it is short of
    KubeResource    resource;
    int64_t         lack, free;
    double          part;    // of the request, summed
    bool            beyond;  // the node has less than the request even when it is empty
} Shortage;

typedef struct Refusals {  // nodes that one thing refuses although they have room
    KubeFitReason   reason;
    const KubeNode *node;
    char            detail[160];
    uint32_t        n;
} Refusals;

enum { REFUSALS = 4 };

const char *kube_amount_text(KubeResource r, int64_t amount, char out[KUBE_AMOUNT_TEXT]) {
    double gib = (double)amount / (1 << 30);
    if (r == KUBE_CPU)
        (void)snprintf(out, KUBE_AMOUNT_TEXT, "%g", (double)amount / 1e3);
    else if (r != KUBE_MEMORY && r != KUBE_EPHEMERAL)
        (void)snprintf(out, KUBE_AMOUNT_TEXT, "%lld", (long long)amount);
    else if (gib >= 1)
        (void)snprintf(out, KUBE_AMOUNT_TEXT, "%.4g GiB", gib);
    else
        (void)snprintf(out, KUBE_AMOUNT_TEXT, "%.4g MiB", gib * 1024);
    return out;
}

const char *kube_amount_unit(KubeResource r, int64_t amount) {
    switch (r) {
    case KUBE_CPU: return amount == 1000 ? "core" : "cores";
    case KUBE_MEMORY: return "of memory";
    case KUBE_EPHEMERAL: return "of ephemeral storage";
    case KUBE_PODS: return amount == 1 ? "pod" : "pods";
    case KUBE_GPU: return amount == 1 ? "GPU" : "GPUs";
    default: return "of an extended resource";
    }
}

static int64_t free_of(const KubeNodeInfo *n, uint32_t r) {
    int64_t left = n->allocatable.of[r] - n->used.of[r];
    return left > 0 ? left : 0;
}

static Shortage shortage_on(const KubePodInfo *p, const KubeNode *node) {
    const KubeNodeInfo *n = kube_node_info(node);
    Shortage            s = {.node = node};
    for (uint32_t r = 0; r < KUBE_RESOURCES; r++) {
        int64_t has = free_of(n, r), lack = p->requests.of[r] - has;
        if (lack <= 0) continue;
        s.kinds++;
        s.beyond |= n->allocatable.of[r] < p->requests.of[r];
        s.part += (double)lack / (double)p->requests.of[r];
        if (s.kinds > 1) continue;
        s.resource = (KubeResource)r;
        s.lack = lack;
        s.free = has;
    }
    return s;
}

static bool less(const Shortage *a, const Shortage *b) {
    if (b->node == NULL) return true;
    if (a->beyond != b->beyond) return b->beyond;
    return a->kinds != b->kinds ? a->kinds < b->kinds : a->part < b->part;
}

static void add(json_t *list, const char *kind, const char *node, const char *text) {
    json_t *row = json_pack("{s:s,s:s*,s:s}", "kind", kind, "node", node, "text", text);
    if (row != NULL) (void)json_array_append_new(list, row);
}

// The nodes that the pod's constraints allow are too small: all of it is missing there.
static void say_larger(json_t *list, const Shortage *s) {
    const KubeNodeInfo *n = kube_node_info(s->node);
    int64_t             all = n->allocatable.of[s->resource], asked = s->lack + s->free;
    char                text[512], want[KUBE_AMOUNT_TEXT], has[KUBE_AMOUNT_TEXT];
    (void)snprintf(
        text, sizeof text,
        "a larger node: it asks for %s %s, and the nodes that its constraints allow have "
        "less; %s has %s",
        kube_amount_text(s->resource, asked, want), kube_amount_unit(s->resource, asked), n->name,
        kube_amount_text(s->resource, all, has));
    add(list, "larger", n->name, text);
}

static void say_room(json_t *list, const Shortage *s) {
    const KubeNodeInfo *n = kube_node_info(s->node);
    char text[512], lack[KUBE_AMOUNT_TEXT], has[KUBE_AMOUNT_TEXT], all[KUBE_AMOUNT_TEXT];
    if (s->kinds != 1) return;
    if (s->beyond) {
        say_larger(list, s);
        return;
    }
    (void)snprintf(text, sizeof text,
                   "%s more %s on one node: %s has %s free of %s and nothing else is in the way "
                   "there",
                   kube_amount_text(s->resource, s->lack, lack),
                   kube_amount_unit(s->resource, s->lack), n->name,
                   kube_amount_text(s->resource, s->free, has),
                   kube_amount_text(s->resource, n->allocatable.of[s->resource], all));
    add(list, "room", n->name, text);
}

// The largest request of one resource, below the pod's, with which it fits somewhere now.
static void say_smaller(const KubeState *s, const KubePod *p, KubeResource r, const uint64_t *bits,
                        json_t *list) {
    const KubePodInfo *x = kube_pod_info(p);
    KubeNode *const   *nodes;
    const KubeNode    *at = NULL;
    int64_t            most = 0;
    uint32_t           n = kube_state_nodes(s, &nodes);
    for (uint32_t i = 0; i < n; i++) {
        KubeAmounts a = x->requests;
        KubeVerdict why;
        int64_t     has = free_of(kube_node_info(nodes[i]), r);
        if ((bits[i / 64] >> i % 64 & 1) == 0 || has <= most || has >= x->requests.of[r]) continue;
        a.of[r] = has;
        if (!kube_fit(s, p, nodes[i], &a, &why)) continue;
        most = has;
        at = nodes[i];
    }
    if (at == NULL) return;
    char text[512], small[KUBE_AMOUNT_TEXT], whole[KUBE_AMOUNT_TEXT];
    (void)snprintf(text, sizeof text,
                   "a smaller request: with %s %s instead of %s it fits on %s now",
                   kube_amount_text(r, most, small), kube_amount_unit(r, most),
                   kube_amount_text(r, x->requests.of[r], whole), kube_node_info(at)->name);
    add(list, "request", kube_node_info(at)->name, text);
}

static void note_refusal(Refusals *all, const KubeNode *node, const KubeVerdict *v) {
    const char *detail = v->detail != NULL ? v->detail : "";
    for (uint32_t i = 0; i < REFUSALS; i++) {
        Refusals *r = &all[i];
        if (r->n == 0) {
            *r = (Refusals){.reason = v->reason, .node = node};
            (void)snprintf(r->detail, sizeof r->detail, "%s", detail);
        }
        if (r->reason != v->reason || strncmp(r->detail, detail, sizeof r->detail - 1) != 0)
            continue;
        r->n++;
        return;
    }
}

static const char *remedy(KubeFitReason r) {
    switch (r) {
    case FIT_TAINT: return "if the pod tolerated the taint";
    case FIT_UNSCHEDULABLE: return "if it were uncordoned";
    case FIT_SELECTOR: return "if the node selector or affinity allowed it";
    case FIT_PORTS: return "if the host port were free there";
    case FIT_SPREAD: return "if the topology spread constraint allowed it";
    case FIT_AFFINITY:
    case FIT_ANTI_AFFINITY:
    case FIT_EXISTING_ANTI_AFFINITY: return "if pod affinity allowed it";
    default: return NULL;
    }
}

static void say_refusals(const Refusals *all, json_t *list) {
    for (uint32_t i = 0; i < REFUSALS && all[i].n > 0; i++) {
        const Refusals *r = &all[i];
        const char     *what = remedy(r->reason), *name = kube_node_info(r->node)->name;
        char            text[512], others[48] = "";
        if (what == NULL) continue;
        if (r->n > 1) (void)snprintf(others, sizeof others, " and %u more", r->n - 1);
        (void)snprintf(text, sizeof text, "node %s%s: enough is free, %s%s%s", name, others, what,
                       r->detail[0] != '\0' ? ": " : "", r->detail);
        add(list, "constraint", name, text);
    }
}

// Nodes that could run it if all other pods left.
static void say_later(const KubeState *s, const KubePod *p, json_t *list) {
    KubeNode *const *nodes;
    const KubeNode  *first = NULL;
    uint32_t         n = kube_state_nodes(s, &nodes), fit = 0;
    char             text[512];
    KubeVerdict      why;
    for (uint32_t i = 0; i < n; i++)
        if (kube_fit_ever(s, p, nodes[i], &why) && fit++ == 0) first = nodes[i];
    if (fit == 0)
        (void)snprintf(text, sizeof text,
                       "no node of this cluster could run it even if it were empty: another node, "
                       "a smaller request or fewer constraints are needed");
    else
        (void)snprintf(text, sizeof text,
                       "the end of other pods: %u of %u nodes could run it once they have room, %s "
                       "among them",
                       fit, n, kube_node_info(first)->name);
    add(list, fit == 0 ? "never" : "end", fit == 0 ? NULL : kube_node_info(first)->name, text);
}

static void say_all(const KubeState *s, const KubePod *p, const uint64_t *bits, json_t *list) {
    static const KubeResource tried[] = {KUBE_GPU, KUBE_CPU, KUBE_MEMORY};
    const KubePodInfo        *x = kube_pod_info(p);
    KubeNode *const          *nodes;
    uint32_t                  n = kube_state_nodes(s, &nodes);
    Shortage                  least = {.node = NULL};
    Refusals                  refusals[REFUSALS] = {{.n = 0}};
    for (uint32_t i = 0; i < n; i++) {
        Shortage    lack = shortage_on(x, nodes[i]);
        KubeVerdict why;
        if ((bits[i / 64] >> i % 64 & 1) != 0) {
            if (less(&lack, &least)) least = lack;
        } else if (lack.kinds == 0 && !kube_fit(s, p, nodes[i], NULL, &why)) {
            note_refusal(refusals, nodes[i], &why);
        }
    }
    if (least.node != NULL && least.kinds > 0) say_room(list, &least);
    for (uint32_t i = 0; i < sizeof tried / sizeof *tried; i++)
        if (x->requests.of[tried[i]] > 0) say_smaller(s, p, tried[i], bits, list);
    say_refusals(refusals, list);
    say_later(s, p, list);
}

json_t *kube_help(const KubeState *s, const KubePod *p) {
    KubeNode *const *nodes;
    size_t           words = kube_state_nodes(s, &nodes) / 64 + 1;
    uint64_t        *bits = calloc(words, sizeof *bits);
    json_t          *list = json_array();
    if (bits != NULL && list != NULL) {
        kube_fit_nodes(s, p, bits);
        say_all(s, p, bits, list);
    }
    free(bits);
    return list;
}
