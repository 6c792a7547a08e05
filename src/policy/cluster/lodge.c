#include "policy/cluster/lodge.h"

#include <string.h>

enum { TRIES = 4 };

void lodge_carve(Lodge *l, const ClusterSetup *s, Carve *from) {
    l->n_classes = s->profiles != NULL ? s->profiles->n : 0;
    l->hosts = carve(from, uint32_t, s->n_slots);
    l->worth = carve(from, double, (size_t)l->n_classes * l->n_classes);
}

static bool can_host(const Lodge *l, uint32_t slot) {
    const ClusterJob   *j = &l->draft->view->tasks[slot].job;
    uint32_t            n = 0;
    const ClusterSlice *s = draft_has(l->draft, slot, &n);
    return n > 0 && j->gpus > 0 && j->class < l->n_classes && j->gpu_milli == CLUSTER_WHOLE &&
           s->gpu_milli == CLUSTER_WHOLE;
}

void lodge_open(Lodge *l, Draft *d) {
    const ClusterView *v = d->view;
    l->draft = d;
    l->n = 0;
    memset(l->hopeless, 0, sizeof l->hopeless);
    if (l->n_classes == 0 || v->setup->in_rounds) return;
    for (uint32_t i = 0; i < v->n_running; i++)
        if (can_host(l, v->running[i])) l->hosts[l->n++] = v->running[i];
}

static uint64_t width(const ClusterJob *j) { return UINT64_C(1) << (j->gpus < 63 ? j->gpus : 63); }

void lodge_add(Lodge *l, uint32_t slot) {
    if (l->n_classes == 0 || l->draft->view->setup->in_rounds || !can_host(l, slot)) return;
    uint64_t w = width(&l->draft->view->tasks[slot].job);
    for (uint32_t c = 0; c < l->n_classes; c++) l->hopeless[c] &= ~w;
    l->hosts[l->n++] = slot;
}

double lodge_worth(Lodge *l, uint32_t a, uint32_t b) {
    const ClusterSetup *s = l->draft->view->setup;
    double             *x = &l->worth[(size_t)a * l->n_classes + b];
    if (*x > 0 || *x < 0) return *x > 0 ? *x : 0;
    double            gpus = (double)s->gpus;
    ClusterJob        one = {.gpus = 1,
                             .gpu_milli = CLUSTER_WHOLE,
                             .cores_milli = (uint32_t)((double)s->cores_milli / gpus),
                             .memory_mib = (uint32_t)((double)s->memory_mib / gpus),
                             .class = a};
    ClusterJob        two = one;
    const ClusterJob *both[2] = {&one, &two};
    PackSplit         split = {.sum = -1};
    two.class = b;
    if (pack_may(s, &one, &two))
        pack_split(s, both, 2, one.cores_milli, one.memory_mib, NULL, &split);
    *x = split.sum;
    return *x > 0 ? *x : 0;
}

typedef struct LodgeOffer {
    uint32_t at;  // in hosts
    double   worth;
} LodgeOffer;

// The best few, the best first; of equals the one that is there longest.
static void offer(LodgeOffer *best, uint32_t at, double worth) {
    uint32_t k = TRIES;
    if (worth <= best[TRIES - 1].worth) return;
    while (k > 0 && worth > best[k - 1].worth) k--;
    memmove(best + k + 1, best + k, (TRIES - 1 - k) * sizeof *best);
    best[k] = (LodgeOffer){at, worth};
}

// What pairs promise before cores and memory are looked at.
static bool hopeful(const Lodge *l, const LodgeRule *r, uint32_t host, uint32_t guest) {
    const ClusterProfiles *p = l->draft->view->setup->profiles;
    double                 a = profile_pair(p, host, guest), b = profile_pair(p, guest, host);
    return a > 0 && b > 0 && a + b >= r->gain && a >= r->slowest && b >= r->slowest;
}

static bool good(const LodgeRule *r, const PackSplit *x) {
    return x->sum >= r->gain && x->rate[0] >= r->slowest && x->rate[1] >= r->slowest;
}

uint32_t lodge_join(Lodge *l, uint32_t guest, const LodgeRule *rule) {
    const ClusterView *v = l->draft->view;
    const ClusterJob  *j = &v->tasks[guest].job;
    LodgeOffer         best[TRIES + 1] = {{0}};
    if (l->n == 0 || j->class >= l->n_classes || j->gpu_milli < CLUSTER_WHOLE || j->gpus == 0)
        return CLUSTER_NONE;
    if ((l->hopeless[j->class] & width(j)) != 0) return CLUSTER_NONE;
    for (uint32_t i = 0; i < l->n; i++) {
        const ClusterJob *host = &v->tasks[l->hosts[i]].job;
        if (host->gpus != j->gpus || (rule->may != NULL && !rule->may(rule->of, host, j))) continue;
        if (hopeful(l, rule, host->class, j->class))
            offer(best, i, lodge_worth(l, host->class, j->class));
    }
    for (uint32_t k = 0; k < TRIES && best[k].worth > 0; k++) {
        uint32_t  host = l->hosts[best[k].at];
        PackSplit split;
        if (!pack_try(l->draft, host, guest, &split) || !good(rule, &split)) continue;
        if (!pack_join(l->draft, host, guest, &split)) continue;
        l->hosts[best[k].at] = l->hosts[--l->n];
        return host;
    }
    if (j->gpu_types == 0) l->hopeless[j->class] |= width(j);
    return CLUSTER_NONE;
}
