// drl_single: one network for the whole cluster picks the job that starts next
//
// The way of DeepRM and DL2: the state of the servers, summed up, and a window of jobs go into one
// network, which answers with one job or with none; that job gets what it asks for by default, on
// as few servers as possible; again, until the answer is none. Nobody is stopped. There are neither
// agents nor amounts to choose: what maifs is compared with when the question is what those bring.
//
// The network was trained to make jobs complete sooner, at first to pick the least work, as
// docs/cluster-training.md says.
#include "policy/cluster/drl.h"
#include "policy/policies.h"

#define DRL_SETTINGS(X)                                                                            \
    X(weights, string, "", 0, 4095, "a file of weights, or none (default: what came along)")

typedef struct DrlSettings {
#define X(...) SETTING_FIELD(__VA_ARGS__)
    DRL_SETTINGS(X)
#undef X
} DrlSettings;

static const Setting rows[] = {
#define X(...) SETTING_ROW(DrlSettings, __VA_ARGS__)
    DRL_SETTINGS(X)
#undef X
};

typedef struct Drl {
    const DrlLoaded *loaded;
    Floor            floor;
    DrlLook          look;
    uint8_t         *skip;  // [n_slots] what this plan starts
    float            says[DRL_OUT];
    float            cache[4 * DRL_HIDDEN_MAX];
} Drl;

static void lay_out(Drl *d, const ClusterSetup *s, Carve *from) {
    floor_carve(&d->floor, s, from);
    d->skip = carve(from, uint8_t, s->n_slots);
}

static Err load(const ClusterSetup *s, const void *settings, Arena *a, const void **loaded) {
    (void)s;
    DrlLoaded *l = arena_new(a, DrlLoaded, 1);
    *loaded = l;
    return drl_load(((const DrlSettings *)settings)->weights, a, l);
}

static size_t state_size(const ClusterSetup *s, const void *settings) {
    (void)settings;
    Drl   d = {0};
    Carve c = {.used = sizeof d};
    lay_out(&d, s, &c);
    return c.used;
}

static void init(void *state, const ClusterSetup *s, const void *settings, const void *loaded) {
    (void)settings;
    Drl  *d = state;
    Carve c = {.base = state, .used = sizeof *d};
    lay_out(d, s, &c);
    floor_init(&d->floor, s);
    d->loaded = loaded;
}

static bool any(const DrlLook *look) {
    for (uint32_t i = 0; i < look->n; i++)
        if (look->can[i]) return true;
    return false;
}

// Without a network the first that has a place is taken.
static uint32_t choose(Drl *d, const ClusterView *v) {
    const DrlLoaded *l = d->loaded;
    for (uint32_t i = 0; i < DRL_OUT; i++) d->says[i] = i < DRL_WINDOW ? 1 : 0;
    if (l->w != NULL) drl_net_forward(l->net, l->w, 1, d->look.x, d->says, d->cache);
    return l->choose != NULL ? l->choose(l->self, v, &d->look, d->says)
                             : drl_best(&d->look, d->says);
}

static uint32_t decide(void *state, const ClusterView *v, ClusterAction *out, uint32_t max) {
    Drl     *d = state;
    uint32_t n = 0;
    (void)max;
    if (v->n_waiting == 0) return 0;
    floor_open(&d->floor, v);
    for (;;) {
        drl_look(&d->floor, v, d->skip, &d->look);
        if (!any(&d->look)) break;
        uint32_t k = choose(d, v);
        if (k >= d->look.n || !floor_place(&d->floor, d->look.task[k], &out[n])) break;
        d->skip[d->look.task[k]] = 1;
        n++;
    }
    for (uint32_t i = 0; i < n; i++) d->skip[out[i].task] = 0;
    return n;
}

const ClusterPolicy cluster_policy_drl_single = {
    .name = "drl_single",
    .about = "one network for the whole cluster picks the job that starts next",
    .paper = "after DeepRM (HotNets 2016) and DL2 (TPDS 2021)",
    .knows = CLUSTER_ORACLE,
    .learned = true,
    .rows = rows,
    .n_rows = sizeof rows / sizeof *rows,
    .settings_size = sizeof(DrlSettings),
    .load = load,
    .state_size = state_size,
    .init = init,
    .decide = decide,
};
