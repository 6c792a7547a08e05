#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "policy/cluster/muri/muri_group.h"

enum { CLASS_BITS = 7, CLASS_MASK = (1 << CLASS_BITS) - 1 };

void muri_match_carve(MuriMatch *m, const ClusterSetup *s, Carve *from) {
    m->setup = s;
    m->units = carve(from, MuriUnit, s->n_slots);
    m->keys = carve(from, uint32_t, MURI_CACHE);
    m->sums = carve(from, float, MURI_CACHE);
    m->kinds = carve(from, MuriKind, MURI_KINDS);
    m->edges = carve(from, MuriEdge, MURI_EDGES);
}

void muri_match_open(MuriMatch *m) {
    m->n_units = 0;
    m->milli = 0;
}

static uint32_t classes_of(uint32_t key, uint32_t *classes) {
    uint32_t n = 0;
    for (; key != 0; key >>= CLASS_BITS) classes[n++] = (key & CLASS_MASK) - 1;
    return n;
}

static uint32_t key_of(uint32_t *classes, uint32_t n) {
    uint32_t key = 0;
    for (uint32_t i = 1; i < n; i++)
        for (uint32_t k = i; k > 0 && classes[k] < classes[k - 1]; k--) {
            uint32_t t = classes[k];
            classes[k] = classes[k - 1];
            classes[k - 1] = t;
        }
    for (uint32_t i = n; i-- > 0;) key = key << CLASS_BITS | (classes[i] + 1);
    return key;
}

// Tasks without a class or with a GPU fraction, and groups of different GPU types or servers, have
// key 0 and are never merged.
void muri_match_add(MuriMatch *m, const ClusterTask *tasks, const uint32_t *slots, uint32_t n) {
    uint32_t          classes[PACK_MOST];
    const ClusterJob *j = &tasks[slots[0]].job;
    bool              known = m->setup->profiles != NULL && j->gpus > 0 && !m->setup->in_rounds;
    MuriUnit         *u = &m->units[m->n_units++];
    *u = (MuriUnit){.n = n, .gpus = j->gpus, .types = j->gpu_types, .servers = j->servers};
    for (uint32_t i = 0; i < n; i++) {
        const ClusterJob *x = &tasks[slots[i]].job;
        u->at[i] = slots[i];
        u->types = u->types == 0       ? x->gpu_types
                   : x->gpu_types == 0 ? u->types
                                       : u->types & x->gpu_types;
        classes[i] = x->class;
        known = known && x->class < m->setup->profiles->n && x->gpu_milli == CLUSTER_WHOLE_GPU &&
                x->gpu_types == j->gpu_types && x->servers == j->servers;
    }
    if (known) u->key = key_of(classes, n);
    m->milli += cluster_gpu_milli(j);
}

// Every task is at its own offset in the cycle of stages; a step lasts as long as its longest
// stage.
static double period(double stage[][PROFILE_STAGES], const uint32_t *offset, uint32_t n) {
    double sum = 0;
    for (uint32_t step = 0; step < PROFILE_STAGES; step++) {
        double longest = 0;
        for (uint32_t i = 0; i < n; i++) {
            double s = stage[i][(step + offset[i]) % PROFILE_STAGES];
            if (s > longest) longest = s;
        }
        sum += longest;
    }
    return sum;
}

double muri_match_turns(const ClusterProfiles *p, const uint32_t *classes, uint32_t n) {
    double   stage[PACK_MOST][PROFILE_STAGES], all = 0, best = 0;
    uint32_t offset[PACK_MOST] = {0};
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t k = 0; k < PROFILE_STAGES; k++) {
            stage[i][k] = p->at[classes[i]].stage_s[k];
            all += stage[i][k];
        }
    for (uint32_t code = 0; code < 1U << 2 * n; code++) {
        uint32_t used = 0;
        for (uint32_t i = 0; i < n; i++) used |= 1U << (offset[i] = code >> 2 * i & 3);
        if ((uint32_t)__builtin_popcount(used) != n || offset[0] != 0) continue;
        double t = period(stage, offset, n);
        if (best == 0 || t < best) best = t;
    }
    return best > 0 ? all / best : 0;
}

static double sum_of(const MuriMatch *m, const uint32_t *classes, uint32_t n) {
    const ClusterSetup *s = m->setup;
    ClusterJob          jobs[PACK_MOST];
    const ClusterJob   *at[PACK_MOST];
    PackSplit           split;
    double              gpus = (double)s->gpus, cores = (double)s->cores_milli / gpus;
    double              mib = (double)s->memory_mib / gpus;
    for (uint32_t i = 0; i < n; i++) {
        jobs[i] = (ClusterJob){.gpus = 1,
                               .gpu_milli = CLUSTER_WHOLE_GPU,
                               .cores_milli = (uint32_t)cores,
                               .memory_mib = (uint32_t)mib,
                               .class = classes[i]};
        at[i] = &jobs[i];
        for (uint32_t k = 0; k < i; k++)
            if (!pack_may(s, &jobs[k], &jobs[i])) return 0;
    }
    if (m->by_stages) return muri_match_turns(s->profiles, classes, n);
    pack_split(s, at, n, cores, mib, NULL, &split);
    return split.sum;
}

double muri_match_sum(MuriMatch *m, uint32_t key) {
    uint32_t classes[PACK_MOST], n = classes_of(key, classes);
    uint32_t h = key * 2654435761U >> 18;
    if (n < 2) return n;
    if (m->keys[h] == key) return m->sums[h];
    m->keys[h] = key;
    m->sums[h] = (float)sum_of(m, classes, n);
    return m->sums[h];
}

static uint32_t joint(uint32_t a, uint32_t b) {
    uint32_t classes[2 * PACK_MOST], n = classes_of(a, classes);
    n += classes_of(b, classes + n);
    return key_of(classes, n);
}

static uint32_t count(uint32_t key) {
    uint32_t classes[PACK_MOST];
    return classes_of(key, classes);
}

// Upper bound of the group's sum: every task with the whole share of cores and memory.
static double upper_bound(const MuriMatch *m, uint32_t key) {
    uint32_t classes[PACK_MOST], others[PACK_MOST], n = classes_of(key, classes);
    double   sum = 0;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t k = 0;
        for (uint32_t o = 0; o < n; o++)
            if (o != i) others[k++] = classes[o];
        sum += profile_share(m->setup->profiles, classes[i], others, k);
    }
    return sum;
}

static void sort_into_kinds(MuriMatch *m) {
    m->n_kinds = 0;
    for (uint32_t i = 0; i < m->n_units; i++) {
        MuriUnit *u = &m->units[i];
        uint32_t  k = 0;
        u->next = CLUSTER_NONE;
        if (u->gone || u->key == 0 || u->n >= m->max_group) continue;
        while (k < m->n_kinds &&
               (m->kinds[k].key != u->key || m->kinds[k].gpus != u->gpus ||
                m->kinds[k].types != u->types || m->kinds[k].servers != u->servers))
            k++;
        if (k == MURI_KINDS) continue;
        MuriKind *x = &m->kinds[k];
        if (k == m->n_kinds)
            m->kinds[m->n_kinds++] = (MuriKind){u->gpus, u->types, u->key, u->servers, i, i};
        else
            m->units[x->last].next = i;
        x->last = i;
    }
}

static int by_worth(const void *a, const void *b) {
    const MuriEdge *x = a, *y = b;
    if (x->worth != y->worth) return x->worth > y->worth ? -1 : 1;
    if (x->a != y->a) return x->a < y->a ? -1 : 1;
    return x->b < y->b ? -1 : x->b > y->b;
}

// A merger is worth the merged group's progress relative to the mean of its parts.
static void draw_edges(MuriMatch *m) {
    m->n_edges = 0;
    for (uint32_t a = 0; a < m->n_kinds; a++)
        for (uint32_t b = 0; b <= a; b++) {
            const MuriKind *x = &m->kinds[a], *y = &m->kinds[b];
            bool alike = x->gpus == y->gpus && x->types == y->types && x->servers == y->servers;
            if (!alike || m->n_edges == MURI_EDGES) continue;
            if (count(x->key) + count(y->key) > m->max_group) continue;
            double   apart = (muri_match_sum(m, x->key) + muri_match_sum(m, y->key)) / 2;
            uint32_t both = joint(x->key, y->key);
            if (!m->by_stages && upper_bound(m, both) < m->min_gain * apart) continue;
            double worth = muri_match_sum(m, both) / apart;
            if (worth > 0 && worth >= m->min_gain) m->edges[m->n_edges++] = (MuriEdge){a, b, worth};
        }
    qsort(m->edges, m->n_edges, sizeof *m->edges, by_worth);
}

static MuriUnit *take(MuriMatch *m, MuriKind *k) {
    MuriUnit *u = &m->units[k->first];
    k->first = u->next;
    return u;
}

// The later unit joins the earlier.
static void merge(MuriMatch *m, MuriUnit *a, MuriUnit *b) {
    MuriUnit *to = a < b ? a : b, *from = a < b ? b : a;
    memcpy(to->at + to->n, from->at, from->n * sizeof *from->at);
    to->n += from->n;
    to->key = joint(to->key, from->key);
    from->gone = true;
    m->milli -= (uint64_t)from->gpus * CLUSTER_WHOLE_GPU;
}

static bool merge_along(MuriMatch *m, const MuriEdge *e, uint64_t milli) {
    MuriKind *a = &m->kinds[e->a], *b = &m->kinds[e->b];
    bool      any = false;
    while (m->milli > milli && a->first != CLUSTER_NONE && b->first != CLUSTER_NONE) {
        if (a == b && m->units[a->first].next == CLUSTER_NONE) break;
        MuriUnit *x = take(m, a), *y = take(m, b);
        merge(m, x, y);
        any = true;
    }
    return any;
}

void muri_match_run(MuriMatch *m, uint64_t milli) {
    bool any = true;
    while (any && m->milli > milli) {
        any = false;
        sort_into_kinds(m);
        draw_edges(m);
        for (uint32_t i = 0; i < m->n_edges && m->milli > milli; i++)
            any = merge_along(m, &m->edges[i], milli) || any;
    }
}

void muri_place_carve(MuriPlacer *m, const ClusterSetup *s, Carve *from) {
    m->base = carve(from, ClusterSlice, s->n_servers);
    m->own = carve(from, ClusterSlice, s->n_servers);
}

bool muri_place_together(const ClusterView *v, uint32_t a, uint32_t b) {
    const ClusterTask *x = &v->tasks[a], *y = &v->tasks[b];
    if (x->n_slices == 0 || x->n_slices != y->n_slices || x->slices->mask == 0) return false;
    for (uint32_t i = 0; i < x->n_slices; i++)
        if (x->slices[i].server != y->slices[i].server || x->slices[i].mask != y->slices[i].mask)
            return false;
    return true;
}

uint32_t muri_place_corunners(const ClusterView *v, uint32_t slot, uint32_t corunners[PACK_MOST]) {
    const ClusterTask *t = &v->tasks[slot];
    uint32_t           n = 1;
    corunners[0] = slot;
    if (t->n_slices == 0 || t->slices->gpu_milli == t->job.gpu_milli) return n;
    const ServerState *x = &v->servers[t->slices->server];
    for (uint32_t i = 0; i < x->n_residents && n < PACK_MOST; i++)
        if (x->residents[i] != slot && muri_place_together(v, slot, x->residents[i]))
            corunners[n++] = x->residents[i];
    return n;
}

static double lesser(double a, double b) { return a < b ? a : b; }

// Cores and memory available to each GPU of the group once all its tasks are stopped.
static void available(const MuriPlacer *m, uint32_t n_base, const ClusterJob *const *jobs,
                      uint32_t n, double *cores, double *mib) {
    *cores = *mib = 0;
    for (uint32_t i = 0; i < n; i++) {
        *cores += (double)jobs[i]->cores_milli / jobs[i]->gpus;
        *mib += (double)jobs[i]->memory_mib / jobs[i]->gpus;
    }
    for (uint32_t i = 0; i < n_base; i++) {
        const ClusterSlice *s = &m->base[i];
        *cores = lesser(*cores, (double)m->builder->free.cores[s->server] / s->gpus);
        *mib = lesser(*mib, (double)m->builder->free.memory[s->server] / s->gpus);
    }
}

static void put(MuriPlacer *m, uint32_t slot, uint32_t n_base, uint32_t gpu_milli, double cores,
                double mib) {
    for (uint32_t i = 0; i < n_base; i++) {
        ClusterSlice *s = &m->own[i];
        *s = m->base[i];
        s->gpu_milli = gpu_milli;
        s->cores_milli = plan_builder_amount(s->gpus * cores);
        s->memory_mib = plan_builder_amount(s->gpus * mib);
    }
    (void)plan_builder_put(m->builder, slot, m->own, n_base);
}

// Stops all tasks of the group and splits what they and the servers have.
static void divide(MuriPlacer *m, const uint32_t *slots, uint32_t n, uint32_t n_base,
                   PackSplit *split) {
    const ClusterView *v = m->builder->view;
    const ClusterJob  *jobs[PACK_MOST];
    double             weight[PACK_MOST], cores, mib;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t has = 0;
        jobs[i] = &v->tasks[slots[i]].job;
        weight[i] = 1 / (1 + (double)cluster_left(v, &v->tasks[slots[i]]));
        (void)plan_builder_slices(m->builder, slots[i], &has);
        if (has > 0) plan_builder_stop(m->builder, slots[i]);
    }
    available(m, n_base, jobs, n, &cores, &mib);
    pack_split(v->setup, jobs, n, cores, mib, m->by_need ? weight : NULL, split);
}

static bool too_slow(const MuriPlacer *m, const PackSplit *split, uint32_t n) {
    for (uint32_t i = 0; n > 1 && i < n; i++)
        if (split->rate[i] < m->min_rate) return true;
    return false;
}

static bool may_have(const MuriPlacer *m, uint32_t slot, uint32_t n_base) {
    const ClusterView *v = m->builder->view;
    for (uint32_t i = 0; i < n_base; i++)
        if (!cluster_server_fits(v->setup, &v->tasks[slot].job, m->base[i].server)) return false;
    return true;
}

// The members that the group may have: those that run elsewhere and may not stop are left alone.
// Returns their number; `bound`: one of them has to stay on the GPUs of the first.
static uint32_t movable(const MuriPlacer *m, const uint32_t *from, uint32_t n, uint32_t n_base,
                        uint32_t *to, bool *bound) {
    uint32_t kept = 0;
    *bound = false;
    for (uint32_t i = 0; i < n; i++) {
        bool together = i == 0 || muri_place_together(m->builder->view, from[0], from[i]);
        bool may_stop = plan_builder_may_stop(m->builder, from[i]);
        if (!together && (!may_stop || !may_have(m, from[i], n_base))) continue;
        *bound = *bound || (!may_stop && i > 0);
        to[kept++] = from[i];
    }
    return kept;
}

void muri_place_group(MuriPlacer *m, const uint32_t *all, uint32_t n) {
    PackSplit           split;
    uint32_t            n_base = 0, slots[PACK_MOST];
    bool                bound;
    const ClusterSlice *s = plan_builder_slices(m->builder, all[0], &n_base);
    CHECK(n_base > 0 && n > 0 && n <= PACK_MOST);
    memcpy(m->base, s, n_base * sizeof *s);
    n = movable(m, all, n, n_base, slots, &bound);
    divide(m, slots, n, n_base, &split);
    if (too_slow(m, &split, n) && bound) {
        for (uint32_t i = 0; i < n; i++)
            if (muri_place_together(m->builder->view, slots[0], slots[i]))
                (void)muri_place_back(m, slots[i]);
        return;
    }
    if (too_slow(m, &split, n)) divide(m, slots, n = 1, n_base, &split);
    for (uint32_t i = 0, part = CLUSTER_WHOLE_GPU / n; i < n; i++)
        put(m, slots[i], n_base, i == 0 ? CLUSTER_WHOLE_GPU - (n - 1) * part : part,
            split.cores_milli[i], split.mib[i]);
}

bool muri_place_back(MuriPlacer *m, uint32_t slot) {
    const ClusterTask *t = &m->builder->view->tasks[slot];
    return t->n_slices > 0 && plan_builder_put(m->builder, slot, t->slices, t->n_slices);
}
