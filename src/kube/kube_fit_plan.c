// The plan of a query: what can refuse this pod at all, and counts that all nodes share.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kube/kube_fit_int.h"

FitPlan *kube_plan_create(void) {
    FitPlan *f = calloc(1, sizeof *f);
    CHECK(f != NULL);
    return f;
}

void kube_plan_free(FitPlan *f) {
    if (f == NULL) return;
    free(f->repelled.at);
    free(f->near.at);
    free(f->apart.at);
    free(f->wishes.at);
    for (uint32_t i = 0; i < f->room_spread; i++) free(f->spread[i].counts.at);
    free(f->spread);
    free(f);
}

static void clear(FitPlan *f, const KubePod *p) {
    topology_clear(&f->repelled);
    topology_clear(&f->near);
    topology_clear(&f->apart);
    topology_clear(&f->wishes);
    if (p->n_spread > f->room_spread) {
        f->spread = realloc(f->spread, p->n_spread * sizeof *f->spread);
        CHECK(f->spread != NULL);
        memset(f->spread + f->room_spread, 0, (p->n_spread - f->room_spread) * sizeof *f->spread);
        f->room_spread = p->n_spread;
    }
    for (uint32_t i = 0; i < f->room_spread; i++) topology_clear(&f->spread[i].counts);
    f->refused = (KubeVerdict){0};
    f->alone = f->always = f->wished = false;
    f->n_checks = 0;
    f->detail[0] = '\0';
}

static void add(FitPlan *f, FitCheck *check, bool others) {
    f->others[f->n_checks] = others;
    f->checks[f->n_checks++] = check;
}

static void refuse_everywhere(const KubeState *s, FitPlan *f) {
    const KubePodInfo *i = &f->pod->info;
    f->always = true;
    if (i->gated)
        (void)fit_refuse(&f->refused, FIT_GATED, NULL);
    else if (i->terminating)
        (void)fit_refuse(&f->refused, FIT_TERMINATING, NULL);
    else if (i->unsupported != NULL)
        (void)fit_refuse(&f->refused, FIT_UNSUPPORTED, i->unsupported);
    else if (f->pod->n_claims > 0)
        f->refused = fit_plan_volumes(s, f, &f->always);
}

// The order of kube-scheduler's filters, so that the first refusal has the reason that it names.
static void choose(FitPlan *f) {
    const KubePod *p = f->pod;
    add(f, fit_check_node, false);
    add(f, fit_check_taints, false);
    if (p->node_selector.n > 0 || p->node_terms.given || p->os != NULL)
        add(f, fit_check_selector, false);
    if (p->n_ports > 0) add(f, fit_check_ports, true);
    add(f, fit_check_resources, false);
    if (p->n_claims > 0) {
        add(f, fit_check_volumes, false);
        add(f, fit_check_limits, true);
    }
    if (p->n_resource_claims > 0) add(f, fit_check_devices, false);
    if (p->n_spread > 0) add(f, fit_check_spread, true);
    if (p->affinity.n > 0) add(f, fit_check_affinity, true);
    if (f->apart.n > 0) add(f, fit_check_apart, true);
    if (f->repelled.n > 0) add(f, fit_check_repelled, true);
}

const FitPlan *fit_plan(const KubeState *s, const KubePod *p) {
    FitPlan *f = s->plan;
    if (f->pod == p && f->change == s->change) return f;
    clear(f, p);
    f->pod = p;
    f->change = s->change;
    refuse_everywhere(s, f);
    fit_plan_others(s, f);
    choose(f);
    return f;
}
