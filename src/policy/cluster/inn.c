#include "policy/cluster/inn.h"

#include <string.h>

#include "base/check.h"
#include "contract/pace.h"

float inn_rate(const Guest *g, const Want *w) { return g->share * w->rungs[g->rung].rate; }
float inn_worth(const Guest *g, const Want *w) { return w->value * inn_rate(g, w); }

float inn_pace(const ClusterSetup *s, const Want *w, uint32_t server) {
    ClusterJob j = {.class = w->class};
    return w->class == CLUSTER_NONE ? 1 : (float)pace_type(s, &j, server);
}

float inn_part(const Guest *g, const Want *w) {
    return g->sliced ? (float)g->gpus / (float)w->gpus : 1;
}

static bool dealt(const Want *w) { return w->class != CLUSTER_NONE; }

static uint8_t rung_of(const Want *w, const ClusterSlice *s) {
    uint32_t n = want_units(w, s->gpus), rung = 0;
    for (uint32_t i = 1; i < w->n_rungs; i++)
        if (w->rungs[i].cores_milli * n <= s->cores_milli &&
            w->rungs[i].memory_mib * n <= s->memory_mib)
            rung = i;
    return (uint8_t)rung;
}

float inn_company(const Inn *h, const ClusterSetup *s, const Want *wants, uint64_t mask,
                  uint32_t task, uint32_t besides) {
    uint32_t classes[INN_GUESTS];
    float    least = 1;
    if (s->profiles == NULL || wants[task].class == CLUSTER_NONE) return 1;
    for (uint64_t m = mask & h->used; m != 0; m &= m - 1) {
        uint32_t n = 0;
        for (uint32_t i = 0; i < h->n; i++) {
            const Guest *g = &h->at[i];
            if ((g->mask & m & -m) == 0 || g->task == task || g->task == besides) continue;
            if (wants[g->task].class != CLUSTER_NONE) classes[n++] = wants[g->task].class;
        }
        double x = profile_share(s->profiles, wants[task].class, classes, n);
        if (x < least) least = (float)x;
    }
    return least;
}

float inn_spread(const ClusterSetup *s, const Want *w, uint32_t servers) {
    if (servers < 2 || w->class == CLUSTER_NONE) return 1;
    const ClusterProfile *p = &s->profiles->at[w->class];
    uint32_t              fewest = (w->gpus + s->most_gpus - 1) / s->most_gpus;
    double                usual = profile_spread(p, w->gpus, fewest);
    return usual > 0 ? (float)(profile_spread(p, w->gpus, servers) / usual) : 1;
}

void inn_count(Inn *h, const Want *wants) {
    h->used = 0;
    h->worth = 0;
    for (uint32_t i = 0; i < h->n; i++) {
        h->used |= h->at[i].mask;
        const Guest *g = &h->at[i];
        h->worth += inn_worth(g, &wants[g->task]) * inn_part(g, &wants[g->task]);
    }
}

static float share_of(const Inn *h, const ClusterSetup *s, const Want *wants, const Guest *g) {
    return g->spread * inn_pace(s, &wants[g->task], h->server) *
           inn_company(h, s, wants, g->mask, g->task, CLUSTER_NONE);
}

static void take_in(Inn *h, const ClusterView *v, uint32_t task, const Want *wants) {
    const ClusterTask *t = &v->tasks[task];
    for (uint32_t i = 0; i < t->n_slices; i++) {
        const ClusterSlice *s = &t->slices[i];
        if (s->server != h->server) continue;
        Guest g = {.mask = s->mask,
                   .task = task,
                   .cores_milli = s->cores_milli,
                   .memory_mib = s->memory_mib,
                   .milli = (uint16_t)s->gpu_milli,
                   .gpus = (uint8_t)s->gpus,
                   .rung = rung_of(&wants[task], s),
                   .sliced = t->n_slices > 1,
                   .cap = WANT_RUNGS,
                   .spread = inn_spread(v->setup, &wants[task], t->n_slices)};
        h->at[h->n++] = g;
    }
}

void inn_open(Inn *h, const ClusterView *v, uint32_t server, const Want *wants) {
    const ClusterServer *x = &v->setup->servers[server];
    const ServerState   *now = &v->servers[server];
    h->server = server;
    h->n = 0;
    h->gpus = x->gpus;
    h->cores_milli = x->cores_milli;
    h->memory_mib = x->memory_mib;
    h->full = now->n_residents >= INN_GUESTS;
    for (uint32_t i = 0; i < now->n_residents && !h->full; i++)
        take_in(h, v, now->residents[i], wants);
    inn_count(h, wants);
    for (uint32_t i = 0; i < h->n; i++) h->at[i].share = share_of(h, v->setup, wants, &h->at[i]);
    inn_count(h, wants);
}

static void sort_steps(InnStep *at, uint32_t n) {
    for (uint32_t i = 1; i < n; i++) {
        InnStep  x = at[i];
        uint32_t k = i;
        for (; k > 0 && at[k - 1].density < x.density; k--) at[k] = at[k - 1];
        at[k] = x;
    }
}

static void add_steps(const Inn *h, uint32_t guest, const Want *w, InnFill *f) {
    const Guest *g = &h->at[guest];
    uint32_t     n = want_units(w, g->gpus);
    float        value = w->value * g->share * inn_part(g, w);
    for (uint32_t r = 1; r < w->n_rungs && r <= g->cap; r++) {
        InnStep s = {.worth = value * (w->rungs[r].rate - w->rungs[r - 1].rate),
                     .cores_milli = n * (w->rungs[r].cores_milli - w->rungs[r - 1].cores_milli),
                     .memory_mib = n * (w->rungs[r].memory_mib - w->rungs[r - 1].memory_mib),
                     .guest = (uint8_t)guest,
                     .rung = (uint8_t)r};
        float   cost = (float)s.cores_milli / (float)(h->cores_milli + 1) +
                     (float)s.memory_mib / (float)(h->memory_mib + 1) + 1e-9f;
        s.density = s.worth / cost;
        if (r > 1 && s.density > f->at[f->n - 1].density)  // rounding: rungs stay in order
            s.density = f->at[f->n - 1].density;
        f->at[f->n++] = s;
    }
}

void inn_fill(const Inn *h, const InnLeave *leave, const Want *wants, InnFill *f) {
    f->worth = 0;
    f->cores_milli = h->cores_milli;
    f->memory_mib = h->memory_mib;
    f->n = 0;
    for (uint32_t i = 0; i < h->n; i++) {
        const Guest *g = &h->at[i];
        const Want  *w = &wants[g->task];
        if (leave != NULL && inn_leaves(leave, i)) continue;
        if (!dealt(w)) {
            f->cores_milli -= g->cores_milli;
            f->memory_mib -= g->memory_mib;
            f->worth += inn_worth(g, w) * inn_part(g, w);
            continue;
        }
        f->cores_milli -= (int64_t)want_units(w, g->gpus) * w->rungs[0].cores_milli;
        f->memory_mib -= (int64_t)want_units(w, g->gpus) * w->rungs[0].memory_mib;
        f->worth += w->value * g->share * w->rungs[0].rate * inn_part(g, w);
        add_steps(h, i, w, f);
    }
    sort_steps(f->at, f->n);
}

// A guest whose next rung does not fit keeps the one it has; others may still go up.
static double deal(const InnFill *f, int64_t cores, int64_t memory, Inn *h) {
    double   worth = f->worth;
    InnLeave stuck = {{0}};
    for (uint32_t i = 0; i < f->n; i++) {
        const InnStep *s = &f->at[i];
        if (inn_leaves(&stuck, s->guest)) continue;
        if (s->cores_milli > cores || s->memory_mib > memory) {
            inn_set_leave(&stuck, s->guest, true);
            continue;
        }
        cores -= s->cores_milli;
        memory -= s->memory_mib;
        worth += s->worth;
        if (h != NULL) h->at[s->guest].rung = s->rung;
    }
    return worth;
}

double inn_fill_worth(const InnFill *f, int64_t cores_milli, int64_t memory_mib) {
    return deal(f, cores_milli, memory_mib, NULL);
}

void inn_remove(Inn *h, uint32_t task) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < h->n; i++)
        if (h->at[i].task != task) h->at[n++] = h->at[i];
    h->n = n;
}

void inn_add(Inn *h, const Guest *g) {
    h->at[h->n++] = *g;
    h->used |= g->mask;
}

// What each has of a GPU: as much as it asks for, or an equal part where that is too much for all.
static uint32_t milli_of(const Inn *h, const Want *wants, const Guest *g) {
    uint32_t milli = wants[g->task].milli;
    for (uint64_t m = g->mask; m != 0; m &= m - 1) {
        uint32_t n = 0, asked = 0;
        for (uint32_t i = 0; i < h->n; i++) {
            if ((h->at[i].mask & m & -m) == 0) continue;
            asked += wants[h->at[i].task].milli;
            n++;
        }
        if (asked > CLUSTER_WHOLE && CLUSTER_WHOLE / n < milli) milli = CLUSTER_WHOLE / n;
    }
    return milli;
}

static void share_out(Inn *h, const ClusterSetup *s, const Want *wants) {
    for (uint32_t i = 0; i < h->n; i++) {
        Guest *g = &h->at[i];
        g->milli = (uint16_t)milli_of(h, wants, g);
        g->share = share_of(h, s, wants, g);
    }
}

void inn_deal(Inn *h, const ClusterSetup *s, const Want *wants) {
    InnFill f;
    inn_count(h, wants);
    share_out(h, s, wants);
    inn_fill(h, NULL, wants, &f);
    CHECK(f.cores_milli >= 0 && f.memory_mib >= 0);
    for (uint32_t i = 0; i < h->n; i++)
        if (dealt(&wants[h->at[i].task])) h->at[i].rung = 0;
    deal(&f, f.cores_milli, f.memory_mib, h);
    for (uint32_t i = 0; i < h->n; i++) {
        Guest      *g = &h->at[i];
        const Want *w = &wants[g->task];
        if (!dealt(w)) continue;
        g->cores_milli = want_units(w, g->gpus) * w->rungs[g->rung].cores_milli;
        g->memory_mib = want_units(w, g->gpus) * w->rungs[g->rung].memory_mib;
    }
    inn_count(h, wants);
}
