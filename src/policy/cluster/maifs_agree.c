// Offers, and rounds in which agents agree on who takes which task.
#include <math.h>
#include <string.h>

#include "base/check.h"
#include "policy/cluster/maifs.h"

static bool has_net(const Maifs *m) { return m->loaded->w != NULL && !m->mute; }

// What harms nobody is always worth a little, or a network could let tasks wait for ever.
static float pays(const Offer *o, float f) {
    float pay = o->gain + o->own * f, least = 0.02f * o->gain;
    bool  free = o->victims == 0 && o->mates == 0;
    return free && pay < least ? least : pay;
}

static void price(Maifs *m, uint32_t inn) {
    size_t   first = inn * maifs_each(m);
    uint32_t n = m->n_offers[inn];
    float   *f = m->payoffs + first;
    memset(f, 0, n * sizeof *f);
    if (has_net(m)) {
        for (uint32_t i = 0; i < n; i++) {
            const Offer *o = &m->offers[first + i];
            m->at[i] = (MaifsOfferAt){inn, m->row[o->task]};
            maifs_look_offer(&m->inns[inn], &m->wants[o->task], o,
                             m->features + (size_t)i * MAIFS_OFFER);
        }
        maifs_net_price(&m->net, m->loaded->w, m->cache, n, m->at, m->features, f);
    }
    for (uint32_t i = 0; i < n; i++) f[i] = pays(&m->offers[first + i], f[i]);
}

// Who runs does not move to where it is, and loses what it has there.
static void count_stay(Maifs *m, uint32_t inn) {
    Offer   *o = m->offers + inn * maifs_each(m);
    uint32_t n = 0;
    for (uint32_t i = 0; i < m->n_offers[inn]; i++) {
        if (m->view->tasks[o[i].task].slices[0].server == inn) continue;
        o[n] = o[i];
        o[n++].gain -= m->stay[o[i].task];
    }
    m->n_offers[inn] = n;
}

static void make_offers(Maifs *m, uint32_t inn) {
    m->desk.rules.evict = !m->moving;
    m->n_offers[inn] = offer_make(&m->desk, &m->inns[inn], m->window, m->n_window,
                                  m->offers + inn * maifs_each(m));
    if (m->moving) count_stay(m, inn);
    price(m, inn);
}

static uint32_t place_in_window(const Maifs *m, uint32_t task) {
    for (uint32_t k = 0; k < m->n_window; k++)
        if (m->window[k] == task) return k;
    return CLUSTER_NONE;
}

static bool any_of(Maifs *m) {
    return m->loaded->epsilon > 0 && rng_unit64(&m->rng) < m->loaded->epsilon;
}

// What an agent could claim: of each task the offer that pays most.
static void claims_of(Maifs *m, uint32_t inn) {
    size_t first = inn * maifs_each(m), row = (size_t)inn * m->n_window;
    for (uint32_t k = 0; k < m->n_window; k++) {
        m->claim_payoff[row + k] = -INFINITY;
        m->give[row + k] = 0;
    }
    for (uint32_t i = 0; i < m->n_offers[inn]; i++) {
        const Offer *o = &m->offers[first + i];
        uint32_t     k = place_in_window(m, o->task);
        float        pays = m->payoffs[first + i];
        if (k == CLUSTER_NONE || !(pays > m->claim_payoff[row + k])) continue;
        m->claim_payoff[row + k] = pays;
        m->give[row + k] = m->wants[o->task].wide ? o->give : 1;
        m->best[row + k] = i;
    }
}

// Training: an agent likes some task better than all others, whatever it is.
static void stray(Maifs *m, uint32_t inn) {
    size_t   row = (size_t)inn * m->n_window;
    uint32_t n = 0, pick = CLUSTER_NONE;
    if (!any_of(m)) return;
    for (uint32_t k = 0; k < m->n_window; k++)
        if (m->give[row + k] > 0 && rng_below(&m->rng, ++n) == 0) pick = k;
    if (pick == CLUSTER_NONE) return;
    m->n_strayed++;
    for (uint32_t k = 0; k < m->n_window; k++)
        if (k != pick) m->claim_payoff[row + k] = -INFINITY;
    m->claim_payoff[row + pick] = fabsf(m->claim_payoff[row + pick]) + 1e-9f;
}

static void pair_up(Maifs *m) {
    uint32_t n = 0, rank = m->net.rank;
    for (uint32_t i = 0; i < m->setup->n_servers; i++)
        for (uint32_t k = 0; k < m->n_window; k++, n++) {
            m->at[0] = (MaifsOfferAt){i, m->row[m->window[k]]};
            if (m->give[n] == 0) continue;
            maifs_net_pair(&m->net, m->loaded->w, m->cache, 1, m->at, m->left + (size_t)n * rank,
                           m->right + (size_t)n * rank);
            float own = m->wants[m->window[k]].value;
            for (uint32_t r = 0; r < rank; r++) m->left[(size_t)n * rank + r] *= own;
        }
}

static void claim(Maifs *m) {
    AccordProblem p = {.agents = m->setup->n_servers,
                       .jobs = m->n_window,
                       .payoff = m->claim_payoff,
                       .idle = m->idle,
                       .give = m->give,
                       .need = m->need};
    for (uint32_t i = 0; i < p.agents; i++) {
        claims_of(m, i);
        stray(m, i);
        m->idle[i] = 0;
    }
    for (uint32_t k = 0; k < m->n_window; k++) {
        const Want *w = &m->wants[m->window[k]];
        m->need[k] = w->wide ? (uint16_t)w->gpus : 1;
    }
    if (has_net(m) && m->net.rank > 0) {
        pair_up(m);
        p.rank = m->net.rank;
        p.left = m->left;
        p.right = m->right;
    }
    accord_decide(m->accord, &p, m->claims);
}

static void leave(Maifs *m, uint32_t task) {
    const ClusterTask *t = &m->view->tasks[task];
    for (uint32_t i = 0; i < t->n_slices; i++) {
        Inn *h = &m->inns[t->slices[i].server];
        inn_remove(h, task);
        inn_deal(h, m->setup, m->wants);
        h->stale = true;
    }
    m->fate[task] = m->moving ? MAIFS_MOVES : MAIFS_GOES;
    m->evicted[m->n_evicted++] = task;
}

// Makes room; says which GPUs are free then.
static uint64_t clear(Maifs *m, Inn *h, uint32_t task, uint32_t gpus) {
    InnLeave go;
    uint64_t mask = 0;
    uint32_t tasks[INN_GUESTS], n = 0;
    CHECK(offer_victims(&m->desk, h, &m->wants[task], gpus, &go, &mask));
    for (uint32_t i = 0; i < h->n; i++)
        if (inn_leaves(&go, i)) tasks[n++] = h->at[i].task;
    for (uint32_t i = 0; i < n; i++) leave(m, tasks[i]);
    return mask;
}

static void note(Maifs *m, uint32_t inn, const Offer *o) {
    if (!m->loaded->record || !has_net(m)) return;
    MaifsChosen *c = &m->chosen[m->n_chosen++];
    c->at = (MaifsOfferAt){inn, m->row[o->task]};
    c->gain = o->gain;
    c->own = o->own;
    maifs_look_offer(&m->inns[inn], &m->wants[o->task], o, c->features);
}

static void take(Maifs *m, uint32_t inn, const Offer *offer, uint32_t gpus) {
    Inn        *h = &m->inns[inn];
    Offer       o = *offer;
    const Want *w = &m->wants[o.task];
    note(m, inn, &o);
    if (m->moving) leave(m, o.task);
    uint64_t mask = o.mates > 0 ? o.mask : clear(m, h, o.task, gpus);
    Guest    g = {.mask = mask,
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
    h->stale = true;
    m->starts[m->n_starts++] = (MaifsStart){o.task, inn};
    m->fate[o.task] = m->moving ? MAIFS_MOVES : MAIFS_COMES;
}

static const Offer *claimed(const Maifs *m, uint32_t inn) {
    uint32_t k = m->claims[inn];
    return &m->offers[inn * maifs_each(m) + m->best[(size_t)inn * m->n_window + k]];
}

static bool take_gang(Maifs *m, uint32_t k) {
    uint32_t left = m->need[k];
    for (uint32_t i = 0; i < m->setup->n_servers; i++)
        if (m->claims[i] == k && m->inns[i].stale) return false;
    for (uint32_t i = 0; i < m->setup->n_servers && left > 0; i++) {
        if (m->claims[i] != k) continue;
        const Offer *o = claimed(m, i);
        uint32_t     gpus = o->give < left ? o->give : left;
        left -= gpus;
        take(m, i, o, gpus);
    }
    return true;
}

// Gangs first, for they are hardest to fit; a claim on an inn that has changed since has to wait.
static bool carry_out(Maifs *m) {
    bool any = false;
    for (uint32_t k = 0; k < m->n_window; k++) {
        if (!m->wants[m->window[k]].wide) continue;
        for (uint32_t i = 0; i < m->setup->n_servers; i++) {
            if (m->claims[i] != k) continue;
            any = take_gang(m, k) || any;
            break;
        }
    }
    for (uint32_t i = 0; i < m->setup->n_servers; i++) {
        uint32_t k = m->claims[i];
        if (k == ACCORD_NONE || m->wants[m->window[k]].wide || m->inns[i].stale) continue;
        const Offer *o = claimed(m, i);
        if (m->moving && m->inns[m->view->tasks[o->task].slices[0].server].stale) continue;
        take(m, i, o, m->wants[o->task].gpus);
        any = true;
    }
    return any;
}

static void drop_taken(Maifs *m) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < m->n_window; i++)
        if (m->fate[m->window[i]] == MAIFS_STAYS) m->window[n++] = m->window[i];
    m->n_window = n;
}

void maifs_agree(Maifs *m) {
    for (uint32_t i = 0; i < m->setup->n_servers; i++) m->inns[i].stale = true;
    for (uint32_t round = 0; round < MAIFS_ROUNDS && m->n_window > 0; round++) {
        for (uint32_t i = 0; i < m->setup->n_servers; i++) {
            if (m->inns[i].stale) make_offers(m, i);
            m->inns[i].stale = false;
        }
        claim(m);
        if (!carry_out(m)) return;
        drop_taken(m);
    }
}

static float stay_of(const Maifs *m, const Inn *h, uint32_t guest) {
    const Want *w = &m->wants[h->at[guest].task];
    InnLeave    go = {{0}};
    InnFill     f;
    inn_set_leave(&go, guest, true);
    inn_fill(h, &go, m->wants, &f);
    float rest = (float)inn_fill_worth(&f, f.cores_milli, f.memory_mib);
    float redo = w->value * w->restart_s * m->desk.rules.restart / w->left_s;
    return (float)h->worth - rest + redo + m->desk.rules.patience * w->value;
}

// By what they lack of the worth that they could have.
bool maifs_open_moves(Maifs *m) {
    uint32_t most = (uint32_t)m->with->moves;
    m->n_window = 0;
    for (uint32_t i = 0; i < m->setup->n_servers && most > 0; i++) {
        const Inn *h = &m->inns[i];
        for (uint32_t g = 0; g < h->n; g++) {
            const Guest *x = &h->at[g];
            const Want  *w = &m->wants[x->task];
            uint32_t     k = m->n_window;
            if (x->fresh || x->wide || w->class == CLUSTER_NONE) continue;
            float lacks = w->value * (w->rungs[w->n_rungs - 1].rate - inn_rate(x, w));
            if (!(lacks > m->desk.rules.patience * w->value)) continue;
            if (k == most && lacks <= m->dense[m->window[k - 1]]) continue;
            m->dense[x->task] = lacks;
            m->stay[x->task] = stay_of(m, h, g);
            if (k < most)
                m->n_window++;
            else
                k--;
            for (; k > 0 && m->dense[m->window[k - 1]] < lacks; k--)
                m->window[k] = m->window[k - 1];
            m->window[k] = x->task;
        }
    }
    return m->n_window > 0;
}
