// Why a pod is pending, in the words that dashboards and autoscalers know.
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kube/kube_fit_int.h"

static const char *const texts[] = {
#define X(id, text) text,
#include "kube/kube_fit_reason.def"
#undef X
};

enum { REASONS = sizeof texts / sizeof *texts, TALLIES = REASONS + KUBE_RESOURCES };

typedef struct FitTally {
    uint32_t    nodes;
    KubeVerdict first;
} FitTally;

typedef struct FitText {
    char  *out;
    size_t room, len;
} FitText;

static void put(FitText *t, const char *fmt, ...) PRINTF(2, 3);
static void put(FitText *t, const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    size_t left = t->len < t->room ? t->room - t->len : 0;
    int    n = vsnprintf(left > 0 ? t->out + t->len : NULL, left, fmt, ap);
    va_end(ap);
    if (n > 0) t->len += (size_t)n;
}

static void count(FitTally *all, const KubeVerdict *v) {
    FitTally *t = &all[v->reason == FIT_INSUFFICIENT ? REASONS + v->resource : v->reason];
    if (t->nodes++ == 0) t->first = *v;
}

// A node may lack several resources; each is told.
static void count_node(const KubeState *s, const KubePod *p, const KubeNode *n, FitTally *all) {
    KubeVerdict v;
    if (kube_fit(s, p, n, NULL, &v)) return;
    if (v.reason != FIT_INSUFFICIENT && v.reason != FIT_PODS) {
        count(all, &v);
        return;
    }
    FitQuery q = {s, s->plan, p, n, &p->info.requests};
    for (uint32_t r = 0; r < s->n_resources; r++) {
        int64_t missing = fit_short_of(&q, r);
        if (missing == 0) continue;
        v = (KubeVerdict){r == KUBE_PODS ? FIT_PODS : FIT_INSUFFICIENT, (KubeResource)r, missing,
                          s->resources[r]->text};
        count(all, &v);
    }
}

static int more_first(const void *a, const void *b) {
    const FitTally *x = a, *y = b;
    if (x->nodes != y->nodes) return x->nodes < y->nodes ? 1 : -1;
    if (x->first.reason != y->first.reason) return x->first.reason < y->first.reason ? -1 : 1;
    return x->first.resource < y->first.resource ? -1 : x->first.resource > y->first.resource;
}

static void put_tally(FitText *t, const FitTally *x, const char *separator) {
    put(t, "%s%u ", separator, x->nodes);
    if (x->first.reason == FIT_INSUFFICIENT)
        put(t, "Insufficient %s", x->first.detail);
    else if (x->first.reason == FIT_UNSUPPORTED)
        put(t, "%s", x->first.detail);
    else
        put(t, "%s", texts[x->first.reason]);
}

static void put_everywhere(FitText *t, const KubeState *s, const KubeVerdict *v) {
    put(t, "0/%u nodes are available: %s.", s->n_nodes,
        v->detail != NULL ? v->detail : texts[v->reason]);
}

static void put_nodes(FitText *t, const KubeState *s, const KubePod *p, KubeVerdict *most) {
    FitTally all[TALLIES] = {0};
    uint32_t fits = 0;
    for (uint32_t i = 0; i < s->n_nodes; i++) {
        KubeVerdict v;
        fits += kube_fit(s, p, s->nodes[i], NULL, &v);
        count_node(s, p, s->nodes[i], all);
    }
    qsort(all, TALLIES, sizeof *all, more_first);
    *most = all[0].nodes > 0 ? all[0].first : (KubeVerdict){0};
    put(t, "%u/%u nodes are available%s", fits, s->n_nodes, all[0].nodes > 0 ? ": " : "");
    for (int i = 0; i < TALLIES && all[i].nodes > 0; i++) put_tally(t, &all[i], i > 0 ? ", " : "");
    put(t, ".");
}

size_t kube_fit_message(const KubeState *s, const KubePod *p, char *out, size_t room,
                        KubeVerdict *most) {
    FitText t = {out, room, 0};
    if (room > 0) out[0] = '\0';
    *most = fit_plan(s, p)->refused;
    if (most->reason != FIT_OK)
        put_everywhere(&t, s, most);
    else if (s->n_nodes == 0)
        put(&t, "no nodes available to schedule pods");
    else
        put_nodes(&t, s, p, most);
    return t.len < room ? t.len : room > 0 ? room - 1 : 0;
}
