// Rounds in which agents agree on who takes which task, and what becomes of it.
#include <math.h>
#include <string.h>

#include "base/check.h"
#include "policy/cluster/maifs.h"

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

static MaifsDeal deal_of(const Maifs *m, uint32_t inn, const Offer *o) {
    MaifsDeal d = {.at = {inn, m->row[o->task]}, .gain = o->gain, .own = o->own};
    maifs_look_offer(&m->inns[inn], &m->wants[o->task], o, d.features);
    return d;
}

static void note(Maifs *m, uint32_t inn, const Offer *o) {
    if (!m->loaded->record || !maifs_has_net(m) || m->liked[inn] == CLUSTER_NONE) return;
    MaifsChosen *c = &m->chosen[m->n_chosen++];
    c->took = deal_of(m, inn, o);
    c->liked = deal_of(m, inn, &m->offers[inn * maifs_each(m) + m->liked[inn]]);
}

// A gang is cut smaller if that costs it little of its rate, and if it can gain much by it.
static const float CUT_KEEP = 0.8f, CUT_GAIN = 1.2f;

static const Offer *claimed(const Maifs *m, uint32_t inn, uint32_t k) {
    return &m->offers[inn * maifs_each(m) + m->best[(size_t)inn * m->n_asks + k]];
}

static void take(Maifs *m, uint32_t inn, const Offer *o, uint32_t gpus, const MaifsPact *pact) {
    Inn        *h = &m->inns[inn];
    const Want *w = &m->wants[o->task];
    note(m, inn, o);
    uint64_t mask = o->mates > 0 ? o->mask : clear(m, h, o->task, gpus);
    Guest    g = {.mask = mask,
                  .task = o->task,
                  .cores_milli = want_units(w, gpus) * w->rungs[pact->rung].cores_milli,
                  .memory_mib = want_units(w, gpus) * w->rungs[pact->rung].memory_mib,
                  .gpus = (uint8_t)gpus,
                  .rung = pact->rung,
                  .cap = WANT_RUNGS,
                  .fresh = true,
                  .sliced = pact->inns > 1,
                  .spread = inn_spread(m->setup, w, pact->inns)};
    inn_add(h, &g);
    inn_deal(h, m->setup, m->wants);
    h->stale = true;
    m->starts[m->n_starts++] = (MaifsStart){o->task, inn};
}

// What the claims on a task come to; worth nothing when some inn has changed since.
static MaifsPact pact_of(const Maifs *m, uint32_t k) {
    MaifsPact d = {.rung = WANT_RUNGS, .host = CLUSTER_NONE};
    uint32_t  task = m->asks[k].task;
    for (uint32_t i = 0; i < m->setup->n_servers; i++) {
        if (m->claims[i] != k) continue;
        const Offer *o = claimed(m, i, k);
        if (o->rung < d.rung) d.rung = o->rung;
        d.host = o->host;
        d.inns++;
        d.pays += m->claim_payoff[(size_t)i * m->n_asks + k];
        d.late = d.late || m->inns[i].stale;
    }
    if (d.host != CLUSTER_NONE) d.late = d.late || !maifs_can_join(m, task, d.host);
    if (d.inns > 0 && m->moving)
        d.late = d.late || m->inns[m->view->tasks[task].slices[0].server].stale;
    return d;
}

// What gangs that have to go for a gang have on servers that are no part of it.
static float lost_elsewhere(const Maifs *m, uint32_t k) {
    uint32_t gone[INN_GUESTS], n = 0;
    float    sum = 0;
    for (uint32_t i = 0; i < m->setup->n_servers; i++) {
        const Inn *h = &m->inns[i];
        InnLeave   go;
        uint64_t   mask;
        if (m->claims[i] != k) continue;
        CHECK(offer_victims(&m->desk, h, &m->wants[m->asks[k].task], claimed(m, i, k)->give, &go,
                            &mask));
        for (uint32_t g = 0; g < h->n; g++) {
            const Guest *x = &h->at[g];
            const Want  *w = &m->wants[x->task];
            uint32_t     seen = 0;
            if (!inn_leaves(&go, g) || !x->sliced) continue;
            while (seen < n && gone[seen] != x->task) seen++;
            if (seen == n && n < INN_GUESTS) {
                gone[n++] = x->task;
                sum += inn_worth(x, w);
            }
            sum -= inn_worth(x, w) * inn_part(x, w);
        }
    }
    return sum;
}

// Of those who claim it, who gains most; CLUSTER_NONE: nobody is left.
static uint32_t keenest(const Maifs *m, uint32_t k) {
    uint32_t best = CLUSTER_NONE;
    for (uint32_t i = 0; i < m->setup->n_servers; i++) {
        size_t at = (size_t)i * m->n_asks + k;
        if (m->claims[i] != k) continue;
        if (best == CLUSTER_NONE ||
            m->claim_payoff[at] > m->claim_payoff[(size_t)best * m->n_asks + k])
            best = i;
    }
    return best;
}

// Who gains least gives only what is still lacking.
static void take_all(Maifs *m, uint32_t k, const MaifsPact *pact) {
    uint32_t task = m->asks[k].task, left = m->need[k];
    if (m->moving) leave(m, task);
    if (pact->host != CLUSTER_NONE) maifs_join(m, task, pact->host);
    while (left > 0 && pact->host == CLUSTER_NONE) {
        uint32_t i = keenest(m, k);
        CHECK(i != CLUSTER_NONE);
        const Offer *o = claimed(m, i, k);
        uint32_t     units = o->give < left ? o->give : left;
        left -= units;
        m->claims[i] = ACCORD_NONE;
        take(m, i, o, m->wants[task].gpus > 0 ? units : 0, pact);
    }
    m->fate[task] = m->moving ? MAIFS_MOVES : MAIFS_COMES;
}

// The same task whole and in slices: what pays more.
static bool outbid(const Maifs *m, uint32_t k, const MaifsPact *pact) {
    for (uint32_t o = k > 0 ? k - 1 : k; o < m->n_asks && o <= k + 1; o++) {
        if (o == k || m->asks[o].task != m->asks[k].task) continue;
        MaifsPact other = pact_of(m, o);
        if (other.inns > 0 && !other.late && other.pays > pact->pays) return true;
    }
    return false;
}

// Gangs first, for they are hardest to fit; a claim on an inn that has changed since has to wait.
static bool carry_out(Maifs *m) {
    bool any = false;
    for (uint32_t turn = 0; turn < 2; turn++)
        for (uint32_t k = 0; k < m->n_asks; k++) {
            MaifsPact d = pact_of(m, k);
            if (d.inns == 0 || d.late || (d.inns > 1) == (turn > 0)) continue;
            if (maifs_taken(m, m->asks[k].task) || outbid(m, k, &d)) continue;
            if (d.inns > 1 && d.pays <= lost_elsewhere(m, k)) continue;
            take_all(m, k, &d);
            any = true;
        }
    return any;
}

static bool pays_to_cut(const Maifs *m, const Want *w, uint32_t slice) {
    float left = inn_spread(m->setup, w, (w->gpus + slice - 1) / slice);
    return m->slices_too && left > CUT_KEEP && w->rungs[w->n_rungs - 1].rate * left > CUT_GAIN;
}

// Whole, and in slices of half the size where that may give each GPU more cores.
static void ask(Maifs *m) {
    m->n_asks = 0;
    for (uint32_t i = 0; i < m->n_window; i++) {
        const Want *w = &m->wants[m->window[i]];
        uint32_t    gpus = w->gpus < m->setup->most_gpus ? w->gpus : m->setup->most_gpus;
        m->asks[m->n_asks++] = (OfferAsk){m->window[i], gpus};
        if (gpus >= 2 && pays_to_cut(m, w, (gpus + 1) / 2))
            m->asks[m->n_asks++] = (OfferAsk){m->window[i], (gpus + 1) / 2};
    }
}

void maifs_agree(Maifs *m) {
    ask(m);
    memset(m->paired, 0, (size_t)m->setup->n_servers * m->n_asks);
    for (uint32_t i = 0; i < m->setup->n_servers; i++) m->inns[i].stale = true;
    for (uint32_t round = 0; round < MAIFS_ROUNDS; round++) {
        for (uint32_t i = 0; i < m->setup->n_servers; i++) {
            if (m->inns[i].stale) maifs_offer(m, i);
            m->inns[i].stale = false;
        }
        maifs_claim(m);
        if (!carry_out(m)) return;
    }
}
