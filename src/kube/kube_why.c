#include "kube/kube_why.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

enum { MESSAGE = 1024, NEAR = 4096 };

typedef struct Tally {  // nodes by what refuses them
    uint32_t        n;
    const KubeNode *node;
    char            detail[160];
    int64_t         lack;  // the least, of a resource
} Tally;

static const char *const reasons[] = {
#define X(id, text) text,
#include "kube/kube_fit_reason.def"
#undef X
};
enum { REASONS = sizeof reasons / sizeof *reasons };

static const char *resource_name(const KubeState *s, KubeResource r) {
    const char *name = kube_state_resource(s, r);
    return name != NULL ? name : "a resource";
}

static void tally(Tally *t, const KubeNode *n, const KubeVerdict *v) {
    if (t->n++ == 0) {
        t->node = n;
        t->lack = v->short_of;
        if (v->detail != NULL) (void)snprintf(t->detail, sizeof t->detail, "%s", v->detail);
    }
    if (v->short_of < t->lack) {
        t->node = n;
        t->lack = v->short_of;
    }
}

static json_t *tally_row(const KubeState *s, KubeFitReason reason, KubeResource r, const Tally *t) {
    char text[192], lack[KUBE_AMOUNT_TEXT];
    // The reason's text has one %s, or none.
    if (reason == FIT_INSUFFICIENT)
        (void)snprintf(text, sizeof text, "Insufficient %s", resource_name(s, r));
    else
        (void)snprintf(text, sizeof text, "%s", reasons[reason]);
    json_t *row = json_pack("{s:s,s:I,s:s}", "reason", text, "nodes", (json_int_t)t->n, "example",
                            kube_node_info(t->node)->name);
    if (row != NULL && reason != FIT_INSUFFICIENT && t->detail[0] != '\0')
        (void)json_object_set_new(row, "detail", json_string(t->detail));
    if (row != NULL && reason == FIT_INSUFFICIENT && t->lack > 0)
        (void)json_object_set_new(row, "least_short_of",
                                  json_string(kube_amount_text(r, t->lack, lack)));
    return row;
}

static uint32_t nodes_of(const json_t *row) {
    return (uint32_t)json_integer_value(json_object_get(row, "nodes"));
}

// Sorted by nodes, most first; equal ones stay in the order of the reasons.
static void insert(json_t *rows, json_t *row) {
    size_t i = 0;
    if (row == NULL) return;
    while (i < json_array_size(rows) && nodes_of(json_array_get(rows, i)) >= nodes_of(row)) i++;
    (void)json_array_insert_new(rows, i, row);
}

// *fits: nodes that would take it now.
static json_t *count_nodes(const KubeState *s, const KubePod *p, uint32_t *fits) {
    KubeNode *const *nodes;
    uint32_t         n = kube_state_nodes(s, &nodes);
    Tally           *all = calloc((size_t)REASONS * KUBE_RESOURCES, sizeof *all);
    json_t          *rows = json_array();
    *fits = 0;
    for (uint32_t i = 0; all != NULL && i < n; i++) {
        KubeVerdict v = {.reason = FIT_OK};
        if (kube_fit(s, p, nodes[i], NULL, &v)) {
            ++*fits;
            continue;
        }
        uint32_t r = v.reason == FIT_INSUFFICIENT ? (uint32_t)v.resource : 0;
        tally(&all[(size_t)v.reason * KUBE_RESOURCES + r], nodes[i], &v);
    }
    for (uint32_t i = 0; all != NULL && i < REASONS * KUBE_RESOURCES; i++)
        if (all[i].n > 0)
            insert(rows, tally_row(s, (KubeFitReason)(i / KUBE_RESOURCES),
                                   (KubeResource)(i % KUBE_RESOURCES), &all[i]));
    free(all);
    return rows;
}

static const char *state_of(const KubePodInfo *p, bool assumed) {
    if (p->phase == POD_SUCCEEDED || p->phase == POD_FAILED) return "ended";
    if (p->terminating) return "being deleted";
    if (p->node != NULL) return p->phase == POD_RUNNING ? "running" : "bound";
    if (assumed) return "binding";
    if (p->gated) return "gated";
    return p->unsupported != NULL ? "refused" : "waiting";
}

static void put_text(json_t *to, const char *key, const char *text) {
    if (text != NULL && text[0] != '\0') (void)json_object_set_new(to, key, json_string(text));
}

static void put_real(json_t *to, const char *key, double x) {
    (void)json_object_set_new(to, key, json_real(x));
}

static void put_int(json_t *to, const char *key, uint64_t x) {
    (void)json_object_set_new(to, key, json_integer((json_int_t)x));
}

static json_t *queue_of(const KubeWait *w) {
    json_t *q = json_object();
    put_text(q, "name", w->queue);
    put_text(q, "last_attempt", w->verdict);
    put_text(q, "policy", w->policy);
    put_int(q, "attempts", w->attempts);
    put_real(q, "waited_s", (double)w->waited / 1e9);
    if (w->retry_in > 0) put_real(q, "retry_in_s", (double)w->retry_in / 1e9);
    if (w->place > 0) {
        put_int(q, "place", w->place);
        put_int(q, "of", w->of);
    }
    return q;
}

static json_t *beliefs_of(const KubeWait *w) {
    json_t *b = json_object();
    put_text(b, "class", w->class_name);
    put_text(b, "progress_from", w->reports);
    if (w->left >= 0) put_real(b, "work_left_s", (double)w->left / 1e9);
    if (w->left_sd > 0) put_real(b, "work_left_log_sd", w->left_sd);
    if (w->rate > 0) put_real(b, "rate", w->rate);
    if (w->rate_sd > 0) put_real(b, "rate_log_sd", w->rate_sd);
    if (w->measured > 0) put_real(b, "measured_rate", w->measured);
    return b;
}

static void put_waiting(const KubeState *s, const KubePod *p, const KubeWait *w, json_t *to) {
    KubeNode *const *nodes;
    KubeVerdict      most = {.reason = FIT_OK};
    char             message[MESSAGE] = "";
    uint32_t         fits;
    json_t          *rows = count_nodes(s, p, &fits);
    (void)kube_fit_message(s, p, message, sizeof message, &most);
    put_int(to, "nodes", kube_state_nodes(s, &nodes));
    put_int(to, "nodes_that_fit", fits);
    if (fits > 0)
        (void)snprintf(message, sizeof message, "it fits on %u node(s) now%s%s", fits,
                       w->verdict != NULL ? "; " : "", w->verdict != NULL ? w->verdict : "");
    put_text(to, "message", message);
    if (fits == 0)
        put_text(to, "reason",
                 json_string_value(json_object_get(json_array_get(rows, 0), "reason")));
    (void)json_object_set_new(to, "refused_by", rows);
    if (fits == 0) (void)json_object_set_new(to, "would_help", kube_help(s, p));
}

static void put_gang(const KubePodInfo *p, const KubeWait *w, json_t *to) {
    uint32_t least = w->gang_least > 0 ? w->gang_least : p->group_min;
    if (p->group == NULL) return;
    json_t *g = json_object();
    put_text(g, "name", p->group);
    put_int(g, "pods", w->gang_pods);
    put_int(g, "start_together", least);
    if (w->gang_pods < least)
        put_text(g, "waits_for", "pods of the gang that do not exist, are gated or were deleted");
    (void)json_object_set_new(to, "gang", g);
}

json_t *kube_why(const KubeState *s, const KubePod *p, const KubeWait *w) {
    const KubePodInfo *x = kube_pod_info(p);
    const KubeNode    *assumed = kube_state_assumed(s, p);
    const char        *state = state_of(x, assumed != NULL);
    json_t *all = json_pack("{s:s,s:s,s:s,s:s}", "namespace", x->namespace_name, "pod", x->name,
                            "uid", x->uid, "state", state);
    if (all == NULL) return NULL;
    put_text(all, "node",
             x->node != NULL   ? x->node
             : assumed != NULL ? kube_node_info(assumed)->name
                               : NULL);
    put_text(all, "nominated_node", x->nominated);
    put_text(all, "scheduler", x->scheduler);
    put_text(all, "tenant", x->tenant);
    put_text(all, "unsupported", x->unsupported);
    put_text(all, "last_resize", x->refused);
    (void)json_object_set_new(all, "ours", json_boolean(x->ours));
    (void)json_object_set_new(all, "priority", json_integer(x->priority));
    put_gang(x, w, all);
    if (strcmp(state, "waiting") == 0 || strcmp(state, "refused") == 0) put_waiting(s, p, w, all);
    if (w->queue != NULL) (void)json_object_set_new(all, "queue", queue_of(w));
    if (w->policy != NULL) (void)json_object_set_new(all, "beliefs", beliefs_of(w));
    return all;
}

const char *kube_why_meant(const KubeState *s, const char *namespace_name, const char *name) {
    const char    **known = calloc(NEAR, sizeof *known);
    KubePod *const *pods;
    const char     *near = NULL;
    uint32_t        n = kube_state_pods(s, &pods), k = 0;
    for (uint32_t i = 0; known != NULL && i < n && k < NEAR; i++) {
        const KubePodInfo *p = kube_pod_info(pods[i]);
        if (strcmp(p->namespace_name, namespace_name) == 0) known[k++] = p->name;
    }
    if (k > 0) near = text_nearest(name, known, k);
    free(known);
    return near;
}
