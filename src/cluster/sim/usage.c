#include "cluster/sim/cluster_sim_int.h"

static void add(ClusterUse *to, const ClusterUse *x, double times) {
    to->gpus += times * x->gpus;
    to->cores += times * x->cores;
    to->memory += times * x->memory;
    to->waiting += times * x->waiting;
}

void usage_open(Usage *c, TimeNs origin) {
    *c = (Usage){.origin = origin, .until = origin, .span = INT64_C(60) * CLUSTER_SECOND};
}

static void widen(Usage *c) {
    for (uint32_t i = 0; i < CLUSTER_SPANS / 2; i++) {
        ClusterUse x = c->sums[2 * i];
        add(&x, &c->sums[2 * i + 1], 1);
        c->sums[i] = x;
    }
    for (uint32_t i = CLUSTER_SPANS / 2; i < CLUSTER_SPANS; i++) c->sums[i] = (ClusterUse){0};
    c->span *= 2;
}

void usage_go(Usage *c, TimeNs to) {
    while (to - c->origin > c->span * CLUSTER_SPANS) widen(c);
    while (c->until < to) {
        uint32_t i = (uint32_t)((c->until - c->origin) / c->span);
        TimeNs   end = c->origin + (i + 1) * c->span;
        if (end > to) end = to;
        add(&c->sums[i], &c->now, (double)(end - c->until));
        c->until = end;
        c->n = i + 1;
    }
}

ClusterUse usage_close(Usage *c, ClusterUse *at, uint32_t *n, TimeNs *span) {
    ClusterUse all = {0}, mean = {0};
    double     ns = (double)(c->until - c->origin);
    for (uint32_t i = 0; i < c->n; i++) {
        TimeNs from = c->origin + i * c->span, to = from + c->span;
        double width = (double)((to < c->until ? to : c->until) - from);
        at[i] = (ClusterUse){0};
        if (width > 0) add(&at[i], &c->sums[i], 1 / width);
        add(&all, &c->sums[i], 1);
    }
    if (ns > 0) add(&mean, &all, 1 / ns);
    *n = c->n;
    *span = c->span;
    return mean;
}
