// What agents offer, and what they claim of it.
#include <math.h>
#include <string.h>

#include "policy/cluster/maifs/maifs.h"

// What harms nobody is always worth a little, or a network could let tasks wait for ever.
static float pays(const Offer *o, float f) {
    float pay = o->gain + o->own * f, least = 0.02f * o->gain;
    bool  free = o->victims == 0 && o->mates == 0;
    return free && pay < least ? least : pay;
}

static void price(Maifs *m, uint32_t server) {
    size_t   first = server * maifs_each(m);
    uint32_t n = m->n_offers[server];
    float   *f = m->payoffs + first;
    memset(f, 0, n * sizeof *f);
    if (maifs_has_net(m)) {
        for (uint32_t i = 0; i < n; i++) {
            const Offer *o = &m->offers[first + i];
            m->at[i] = (MaifsOfferAt){server, m->row[o->task]};
            maifs_features_offer(&m->plans[server], &m->utilities[o->task], o,
                                 m->features + (size_t)i * MAIFS_OFFER);
        }
        maifs_net_price(&m->net, m->loaded->w, m->cache, n, m->at, m->features, f);
    }
    for (uint32_t i = 0; i < n; i++) f[i] = pays(&m->offers[first + i], f[i]);
}

// Who runs does not move to where it is, and loses what it has there.
static void count_stay(Maifs *m, uint32_t server) {
    Offer   *o = m->offers + server * maifs_each(m);
    uint32_t n = 0;
    for (uint32_t i = 0; i < m->n_offers[server]; i++) {
        if (m->view->tasks[o[i].task].slices[0].server == server) continue;
        o[n] = o[i];
        o[n++].gain -= m->stay[o[i].task];
    }
    m->n_offers[server] = n;
}

void maifs_offer(Maifs *m, uint32_t server) {
    Offer   *out = m->offers + server * maifs_each(m);
    uint32_t n;
    m->offering.params.evict = !m->moving;
    n = offer_make(&m->offering, &m->plans[server], m->asks, m->n_asks, out);
    if (!m->moving) n += maifs_gang_offers(m, server, out + n);
    m->n_offers[server] = n;
    if (m->moving) count_stay(m, server);
    price(m, server);
}

static bool any_of(Maifs *m) {
    return m->loaded->epsilon > 0 && rng_unit64(&m->rng) < m->loaded->epsilon;
}

// What an agent could claim: of each task the offer that pays most.
static void claims_of(Maifs *m, uint32_t server) {
    size_t first = server * maifs_each(m), row = (size_t)server * m->n_asks;
    for (uint32_t k = 0; k < m->n_asks; k++) {
        m->claim_payoff[row + k] = -INFINITY;
        m->give[row + k] = 0;
    }
    for (uint32_t i = 0; i < m->n_offers[server]; i++) {
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
static void explore(Maifs *m, uint32_t server) {
    size_t   row = (size_t)server * m->n_asks;
    uint32_t n = 0, pick = CLUSTER_NONE, liked = CLUSTER_NONE;
    m->liked[server] = CLUSTER_NONE;
    if (!any_of(m)) return;
    for (uint32_t k = 0; k < m->n_asks; k++) {
        if (m->give[row + k] == 0) continue;
        if (rng_below(&m->rng, ++n) == 0) pick = k;
        if (liked == CLUSTER_NONE || m->claim_payoff[row + k] > m->claim_payoff[row + liked])
            liked = k;
    }
    if (pick == CLUSTER_NONE) return;
    m->n_explored++;
    m->liked[server] = m->best[row + liked];
    for (uint32_t k = 0; k < m->n_asks; k++)
        if (k != pick) m->claim_payoff[row + k] = -INFINITY;
    m->claim_payoff[row + pick] = fabsf(m->claim_payoff[row + pick]) + 1e-9f;
}

// What pairs of claims are worth besides does not change in an epoch: once for each that may be.
static void pair_inn(Maifs *m, uint32_t server) {
    uint32_t n = 0, rank = m->net.rank;
    size_t   row = (size_t)server * m->n_asks, room = m->n_asks * (size_t)rank;
    float   *left = m->pairs, *right = m->pairs + room;
    for (uint32_t k = 0; k < m->n_asks; k++)
        if (m->give[row + k] != 0 && !m->paired[row + k])
            m->at[n++] = (MaifsOfferAt){server, m->row[m->asks[k].task]};
    if (n == 0) return;
    maifs_net_pair(&m->net, m->loaded->w, m->cache, n, m->at, left, right);
    for (uint32_t k = 0; k < m->n_asks; k++) {
        float own = m->utilities[m->asks[k].task].value;
        if (m->give[row + k] == 0 || m->paired[row + k]) continue;
        m->paired[row + k] = true;
        for (uint32_t r = 0; r < rank; r++) {
            m->left[(row + k) * rank + r] = *left++ * own;
            m->right[(row + k) * rank + r] = *right++;
        }
    }
}

void maifs_claim(Maifs *m) {
    CoordProblem p = {.agents = m->setup->n_servers,
                      .jobs = m->n_asks,
                      .payoff = m->claim_payoff,
                      .idle = m->idle,
                      .give = m->give,
                      .need = m->need};
    for (uint32_t i = 0; i < p.agents; i++) {
        claims_of(m, i);
        explore(m, i);
        m->idle[i] = 0;
    }
    for (uint32_t k = 0; k < m->n_asks; k++) {
        uint32_t task = m->asks[k].task;
        m->need[k] = maifs_taken(m, task) ? 0
                                          : (uint16_t)task_utility_units(&m->utilities[task],
                                                                         m->utilities[task].gpus);
    }
    if (maifs_has_net(m) && m->net.rank > 0) {
        for (uint32_t i = 0; i < p.agents; i++) pair_inn(m, i);
        p.rank = m->net.rank;
        p.left = m->left;
        p.right = m->right;
    }
    coord_decide(m->accord, &p, m->claims);
    m->agreed += coord_stats(m->accord)->value;
    m->plain += coord_stats(m->accord)->plain;
}

// Tasks that run and would gain elsewhere.

static float stay_of(const Maifs *m, const ServerPlan *plan, uint32_t guest) {
    const TaskUtility *w = &m->utilities[plan->at[guest].task];
    VictimSet          go = {{0}};
    Headroom           f;
    victim_set_put(&go, guest, true);
    server_plan_headroom(plan, &go, m->utilities, &f);
    float rest = (float)headroom_utility(&f, f.cores_milli, f.memory_mib);
    float redo = w->value * w->restart_s * m->offering.params.restart / w->left_s;
    return (float)plan->worth - rest + redo + m->offering.params.patience * w->value;
}

// By what they lack of the worth that they could have.
bool maifs_open_moves(Maifs *m) {
    uint32_t most = (uint32_t)m->cfg->moves;
    m->n_window = 0;
    for (uint32_t i = 0; i < m->setup->n_servers && most > 0; i++) {
        const ServerPlan *plan = &m->plans[i];
        for (uint32_t g = 0; g < plan->n; g++) {
            const Resident    *x = &plan->at[g];
            const TaskUtility *w = &m->utilities[x->task];
            uint32_t           k = m->n_window;
            if (x->fresh || x->sliced || w->class == CLUSTER_NONE) continue;
            float lacks = w->value * (w->levels[w->n_levels - 1].rate - resident_rate(x, w));
            if (!(lacks > m->offering.params.patience * w->value)) continue;
            if (k == most && lacks <= m->dense[m->window[k - 1]]) continue;
            m->dense[x->task] = lacks;
            m->stay[x->task] = stay_of(m, plan, g);
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
