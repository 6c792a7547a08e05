// What agents offer, and what they claim of it.
#include <math.h>
#include <string.h>

#include "policy/cluster/maifs.h"

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
    if (maifs_has_net(m)) {
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

void maifs_offer(Maifs *m, uint32_t inn) {
    Offer   *out = m->offers + inn * maifs_each(m);
    uint32_t n;
    m->desk.rules.evict = !m->moving;
    n = offer_make(&m->desk, &m->inns[inn], m->asks, m->n_asks, out);
    if (!m->moving) n += maifs_gang_offers(m, inn, out + n);
    m->n_offers[inn] = n;
    if (m->moving) count_stay(m, inn);
    price(m, inn);
}

static bool any_of(Maifs *m) {
    return m->loaded->epsilon > 0 && rng_unit64(&m->rng) < m->loaded->epsilon;
}

// What an agent could claim: of each task the offer that pays most.
static void claims_of(Maifs *m, uint32_t inn) {
    size_t first = inn * maifs_each(m), row = (size_t)inn * m->n_asks;
    for (uint32_t k = 0; k < m->n_asks; k++) {
        m->claim_payoff[row + k] = -INFINITY;
        m->give[row + k] = 0;
    }
    for (uint32_t i = 0; i < m->n_offers[inn]; i++) {
        const Offer *o = &m->offers[first + i];
        size_t       k = row + o->ask;
        float        pays = m->payoffs[first + i];
        if (maifs_taken(m, o->task) || !(pays > m->claim_payoff[k])) continue;
        m->claim_payoff[k] = pays;
        m->give[k] = o->give;
        m->best[k] = i;
    }
}

// Training: an agent likes some task better than all others, whatever it is.
static void stray(Maifs *m, uint32_t inn) {
    size_t   row = (size_t)inn * m->n_asks;
    uint32_t n = 0, pick = CLUSTER_NONE, liked = CLUSTER_NONE;
    m->liked[inn] = CLUSTER_NONE;
    if (!any_of(m)) return;
    for (uint32_t k = 0; k < m->n_asks; k++) {
        if (m->give[row + k] == 0) continue;
        if (rng_below(&m->rng, ++n) == 0) pick = k;
        if (liked == CLUSTER_NONE || m->claim_payoff[row + k] > m->claim_payoff[row + liked])
            liked = k;
    }
    if (pick == CLUSTER_NONE) return;
    m->n_strayed++;
    m->liked[inn] = m->best[row + liked];
    for (uint32_t k = 0; k < m->n_asks; k++)
        if (k != pick) m->claim_payoff[row + k] = -INFINITY;
    m->claim_payoff[row + pick] = fabsf(m->claim_payoff[row + pick]) + 1e-9f;
}

// What pairs of claims are worth besides does not change in an epoch: once for each that may be.
static void pair_inn(Maifs *m, uint32_t inn) {
    uint32_t n = 0, rank = m->net.rank;
    size_t   row = (size_t)inn * m->n_asks, room = m->n_asks * (size_t)rank;
    float   *left = m->pairs, *right = m->pairs + room;
    for (uint32_t k = 0; k < m->n_asks; k++)
        if (m->give[row + k] != 0 && !m->paired[row + k])
            m->at[n++] = (MaifsOfferAt){inn, m->row[m->asks[k].task]};
    if (n == 0) return;
    maifs_net_pair(&m->net, m->loaded->w, m->cache, n, m->at, left, right);
    for (uint32_t k = 0; k < m->n_asks; k++) {
        float own = m->wants[m->asks[k].task].value;
        if (m->give[row + k] == 0 || m->paired[row + k]) continue;
        m->paired[row + k] = true;
        for (uint32_t r = 0; r < rank; r++) {
            m->left[(row + k) * rank + r] = *left++ * own;
            m->right[(row + k) * rank + r] = *right++;
        }
    }
}

void maifs_claim(Maifs *m) {
    AccordProblem p = {.agents = m->setup->n_servers,
                       .jobs = m->n_asks,
                       .payoff = m->claim_payoff,
                       .idle = m->idle,
                       .give = m->give,
                       .need = m->need};
    for (uint32_t i = 0; i < p.agents; i++) {
        claims_of(m, i);
        stray(m, i);
        m->idle[i] = 0;
    }
    for (uint32_t k = 0; k < m->n_asks; k++) {
        uint32_t task = m->asks[k].task;
        m->need[k] =
            maifs_taken(m, task) ? 0 : (uint16_t)want_units(&m->wants[task], m->wants[task].gpus);
    }
    if (maifs_has_net(m) && m->net.rank > 0) {
        for (uint32_t i = 0; i < p.agents; i++) pair_inn(m, i);
        p.rank = m->net.rank;
        p.left = m->left;
        p.right = m->right;
    }
    accord_decide(m->accord, &p, m->claims);
    m->agreed += accord_tale(m->accord)->value;
    m->plain += accord_tale(m->accord)->plain;
}
