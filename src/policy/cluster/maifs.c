// maifs: an agent per server; places tasks and gives them amounts in one decision
#include "policy/cluster/maifs.h"

#include <string.h>

#include "base/check.h"
#include "policy/policies.h"

static const Setting rows[] = {
#define X(...) SETTING_ROW(MaifsSettings, __VA_ARGS__)
    MAIFS_SETTINGS(X)
#undef X
};

void maifs_carve(Maifs *m, const ClusterSetup *s, const MaifsSettings *with, Carve *from) {
    size_t each = (size_t)with->window * OFFER_EACH;
    m->wants = carve(from, Want, s->n_slots);
    m->inns = carve(from, Inn, s->n_servers);
    m->window = carve(from, uint32_t, with->window);
    m->dense = carve(from, float, s->n_slots);
    m->state = carve(from, uint8_t, s->n_slots);
    m->evicted = carve(from, uint32_t, s->n_slots);
    m->starts = carve(from, MaifsStart, s->gpus + s->n_slots);
    m->offers = carve(from, Offer, s->n_servers * each);
    m->bids = carve(from, MaifsBid, s->n_servers * (size_t)OFFER_EACH);
    m->n_offers = carve(from, uint32_t, s->n_servers);
    m->slices = carve(from, ClusterSlice, 3 * (size_t)s->n_slots + s->gpus);
}

static size_t size(const ClusterSetup *s, const void *settings) {
    Maifs m;
    Carve c = {.used = sizeof m};
    maifs_carve(&m, s, settings, &c);
    return c.used;
}

static void init(void *state, const ClusterSetup *s, const void *settings, const void *loaded) {
    Maifs               *m = state;
    const MaifsSettings *with = settings;
    Carve                c = {.base = state, .used = sizeof *m};
    bool                 fixed = strcmp(with->demand, "fixed") == 0;
    (void)loaded;
    m->setup = s;
    m->with = with;
    m->rules = (WantRules){.fixed = fixed,
                           .urge = (float)with->urge,
                           .margin = (float)with->margin,
                           .age_s = (float)with->age_s};
    maifs_carve(m, s, with, &c);
    m->desk = (OfferDesk){.setup = s,
                          .wants = m->wants,
                          .rules = {.mates = fixed || with->two_step ? 1 : (uint32_t)with->mates,
                                    .patience = (float)with->patience,
                                    .restart = (float)with->restart,
                                    .evict = true,
                                    .blind = with->two_step}};
}

static double work_of(const ClusterView *v, const ClusterTask *t) {
    TimeNs left = cluster_left(v, t);
    return left > 0 ? (double)left / 1e9 * (double)cluster_gpu_milli(&t->job) / 1000 : 0;
}

static void look_at(Maifs *m, const uint32_t *tasks, uint32_t n) {
    for (uint32_t i = 0; i < n; i++) {
        const ClusterTask *t = &m->view->tasks[tasks[i]];
        Want              *w = &m->wants[tasks[i]];
        if (w->job != t->job.id + 1) want_open(w, m->setup, &t->job, &m->rules);
        want_look(w, m->view, t, m->drain_s, &m->rules);
        m->state[tasks[i]] = MAIFS_STAYS;
    }
}

static void open_epoch(Maifs *m, const ClusterView *v) {
    double work = 0;
    m->view = v;
    m->n_evicted = m->n_starts = 0;
    for (uint32_t i = 0; i < v->n_waiting; i++) work += work_of(v, &v->tasks[v->waiting[i]]);
    for (uint32_t i = 0; i < v->n_running; i++) work += work_of(v, &v->tasks[v->running[i]]);
    m->drain_s = work / (double)m->setup->gpus;
    look_at(m, v->running, v->n_running);
    look_at(m, v->waiting, v->n_waiting);
    for (uint32_t i = 0; i < m->setup->n_servers; i++) inn_open(&m->inns[i], v, i, m->wants);
    for (uint32_t i = 0; i < v->n_waiting; i++) {
        const Want *w = &m->wants[v->waiting[i]];
        float       gpus = w->gpus > 0 ? (float)w->gpus * (float)w->milli / 1000 : 0.1f;
        m->dense[v->waiting[i]] = w->value * w->rungs[w->n_rungs - 1].rate / gpus;
    }
}

static bool before(const Maifs *m, uint32_t a, uint32_t b) {
    if (m->dense[a] != m->dense[b]) return m->dense[a] > m->dense[b];
    return m->view->tasks[a].job.id < m->view->tasks[b].job.id;
}

// The densest of those that wait, after the last of the page before.
static void turn_page(Maifs *m, uint32_t last) {
    const ClusterView *v = m->view;
    uint32_t           most = (uint32_t)m->with->window;
    m->n_window = 0;
    for (uint32_t i = 0; i < v->n_waiting; i++) {
        uint32_t t = v->waiting[i], k = m->n_window;
        if (m->state[t] != MAIFS_STAYS || (last != CLUSTER_NONE && !before(m, last, t))) continue;
        if (k == most && !before(m, t, m->window[k - 1])) continue;
        if (k < most)
            m->n_window++;
        else
            k--;
        for (; k > 0 && before(m, t, m->window[k - 1]); k--) m->window[k] = m->window[k - 1];
        m->window[k] = t;
    }
}

static void make_offers(Maifs *m, uint32_t inn) {
    size_t each = (size_t)m->with->window * OFFER_EACH;
    m->n_offers[inn] =
        offer_make(&m->desk, &m->inns[inn], m->window, m->n_window, m->offers + inn * each);
}

static void leave(Maifs *m, uint32_t task) {
    const ClusterTask *t = &m->view->tasks[task];
    for (uint32_t i = 0; i < t->n_slices; i++) {
        Inn *h = &m->inns[t->slices[i].server];
        inn_remove(h, task);
        inn_deal(h, m->setup, m->wants);
        make_offers(m, h->server);
    }
    m->state[task] = MAIFS_GOES;
    m->evicted[m->n_evicted++] = task;
}

static void clear(Maifs *m, Inn *h, const Offer *o) {
    InnLeave go;
    uint64_t mask;
    uint32_t tasks[INN_GUESTS], n = 0;
    if (!offer_victims(&m->desk, h, &m->wants[o->task], o->give, &go, &mask)) return;
    for (uint32_t i = 0; i < h->n; i++)
        if (inn_leaves(&go, i)) tasks[n++] = h->at[i].task;
    for (uint32_t i = 0; i < n; i++) leave(m, tasks[i]);
}

static void drop_from_window(Maifs *m, uint32_t task) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < m->n_window; i++)
        if (m->window[i] != task) m->window[n++] = m->window[i];
    m->n_window = n;
}

static void settle(Maifs *m, uint32_t inn, const Offer *offer) {
    Inn        *h = &m->inns[inn];
    Offer       o = *offer;
    const Want *w = &m->wants[o.task];
    uint32_t    gpus = w->wide ? o.give : w->gpus;
    if (o.victims > 0) clear(m, h, &o);
    Guest g = {.mask = o.mask,
               .task = o.task,
               .cores_milli = want_units(w, gpus) * w->rungs[o.rung].cores_milli,
               .memory_mib = want_units(w, gpus) * w->rungs[o.rung].memory_mib,
               .gpus = (uint8_t)gpus,
               .rung = o.rung,
               .fresh = true,
               .wide = w->wide,
               .share = 1};
    inn_add(h, &g);
    inn_deal(h, m->setup, m->wants);
    m->starts[m->n_starts++] = (MaifsStart){o.task, inn};
    m->state[o.task] = MAIFS_COMES;
    drop_from_window(m, o.task);
    make_offers(m, inn);
}

// The best slices of a gang; the last may be cut.
static float gang_of(const Maifs *m, uint32_t task, MaifsBid *bids, uint32_t *n) {
    size_t   each = (size_t)m->with->window * OFFER_EACH;
    uint32_t left = m->wants[task].gpus, found = 0;
    float    gain = 0;
    for (uint32_t i = 0; i < m->setup->n_servers; i++)
        for (uint32_t k = 0; k < m->n_offers[i]; k++) {
            const Offer *o = &m->offers[i * each + k];
            if (o->task != task) continue;
            uint32_t at = found++;
            for (; at > 0 && bids[at - 1].gain < o->gain; at--) bids[at] = bids[at - 1];
            bids[at] = (MaifsBid){.inn = i, .give = o->give, .gain = o->gain};
        }
    *n = 0;
    for (uint32_t i = 0; i < found && left > 0; i++, ++*n) {
        if (bids[i].give > left) bids[i].give = left;
        left -= bids[i].give;
        gain += bids[i].gain;
    }
    return left > 0 ? 0 : gain;
}

static float best_gang(Maifs *m, uint32_t *task, uint32_t *n) {
    float most = 0;
    for (uint32_t k = 0; k < m->n_window; k++) {
        if (!m->wants[m->window[k]].wide) continue;
        float gain = gang_of(m, m->window[k], m->bids, n);
        if (!(gain > most)) continue;
        most = gain;
        *task = m->window[k];
    }
    return most;
}

static void settle_gang(Maifs *m, uint32_t task, uint32_t n) {
    for (uint32_t i = 0; i < n; i++) {
        Inn     *h = &m->inns[m->bids[i].inn];
        InnLeave go;
        Offer    o = {.task = task,
                      .give = (uint16_t)m->bids[i].give,
                      .rung = (uint8_t)m->wants[task].usual,
                      .victims = 1};
        clear(m, h, &o);
        CHECK(offer_victims(&m->desk, h, &m->wants[task], o.give, &go, &o.mask));
        o.victims = 0;
        settle(m, h->server, &o);
    }
}

static bool best_of(const Maifs *m, uint32_t *inn, const Offer **best) {
    size_t each = (size_t)m->with->window * OFFER_EACH;
    float  most = 0;
    *best = NULL;
    for (uint32_t i = 0; i < m->setup->n_servers; i++)
        for (uint32_t k = 0; k < m->n_offers[i]; k++) {
            const Offer *o = &m->offers[i * each + k];
            if (m->state[o->task] != MAIFS_STAYS || m->wants[o->task].wide || !(o->gain > most))
                continue;
            most = o->gain;
            *best = o;
            *inn = i;
        }
    return *best != NULL;
}

static void agree(Maifs *m) {
    uint32_t     inn = 0, task = 0, n = 0;
    const Offer *o;
    for (uint32_t i = 0; i < m->setup->n_servers; i++) make_offers(m, i);
    for (;;) {
        float gang = best_gang(m, &task, &n);
        bool  single = best_of(m, &inn, &o);
        if (gang > (single ? o->gain : 0)) {
            gang_of(m, task, m->bids, &n);
            settle_gang(m, task, n);
        } else if (single) {
            settle(m, inn, o);
        } else {
            return;
        }
    }
}

static uint32_t decide(void *state, const ClusterView *v, ClusterAction *out, uint32_t max) {
    Maifs   *m = state;
    uint32_t last = CLUSTER_NONE;
    (void)max;
    open_epoch(m, v);
    for (uint32_t page = 0; page < MAIFS_PAGES; page++) {
        turn_page(m, last);
        if (m->n_window == 0) break;
        last = m->window[m->n_window - 1];
        agree(m);
    }
    for (uint32_t i = 0; i < m->setup->n_servers; i++) {
        inn_deal(&m->inns[i], m->setup, m->wants);
        m->inns[i].changed = true;
    }
    uint32_t n = maifs_plan(m, out);
    bool     at_once = v->now - m->again <= 1;
    m->rewoken = at_once ? m->rewoken + 1 : 0;
    m->again = v->now;
    if (m->n_evicted > 0 && m->rewoken < MAIFS_PAGES)
        out[n++] = (ClusterAction){.verb = CLUSTER_WAKE, .at = v->now + 1};
    return n;
}

const ClusterPolicy cluster_policy_maifs = {
    .name = "maifs",
    .about = "an agent per server; places tasks and gives them amounts in one decision",
    .paper = "MAIFS (TPDS 2025), reconstructed",
    .knows = CLUSTER_ORACLE,
    .preempts = true,
    .learned = true,
    .rows = rows,
    .n_rows = sizeof rows / sizeof *rows,
    .settings_size = sizeof(MaifsSettings),
    .state_size = size,
    .init = init,
    .decide = decide,
};
