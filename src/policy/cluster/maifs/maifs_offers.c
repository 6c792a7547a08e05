// Offers of all agents with their payoffs, the claims on them, and running tasks to migrate.
#include <math.h>
#include <string.h>

#include "policy/cluster/maifs/maifs.h"

// An offer without victims and co-runners keeps a small payoff: a network cannot starve tasks.
static float payoff_of(const Offer *o, float f) {
    float pay = o->gain + o->own * f, least = 0.02f * o->gain;
    bool  free = o->victims == 0 && o->corunners == 0;
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
    for (uint32_t i = 0; i < n; i++) f[i] = payoff_of(&m->offers[first + i], f[i]);
}

// A running task does not migrate to its own server, and loses its utility there.
static void subtract_stay(Maifs *m, uint32_t server) {
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
    m->offering.params.evict = !m->migrating && !m->free_only;
    m->offering.params.evict_margin = (float)m->cfg->evict_margin * m->stances[server].victims;
    m->offering.params.restart_weight = (float)m->cfg->restart_weight * m->stances[server].victims;
    n = offer_make(&m->offering, &m->plans[server], m->requests, m->n_requests, out);
    if (!m->migrating) n += maifs_gang_offers(m, server, out + n);
    m->n_offers[server] = n;
    m->changed[server] = true;
    if (m->migrating) subtract_stay(m, server);
    price(m, server);
    maifs_hold(m, server);
}

static bool explores(Maifs *m) {
    return m->loaded->epsilon > 0 && rng_unit64(&m->rng) < m->loaded->epsilon;
}

// An agent's offer with the largest payoff to each request. It holds until the agent offers anew;
// tasks that are taken meanwhile need no GPUs any more.
static void best_offers(Maifs *m, uint32_t server) {
    size_t first = server * maifs_each(m), row = (size_t)server * m->n_requests;
    for (uint32_t k = 0; k < m->n_requests; k++) m->offer_payoff[row + k] = -INFINITY;
    memset(m->give + row, 0, m->n_requests * sizeof *m->give);
    for (uint32_t i = 0; i < m->n_offers[server]; i++) {
        const Offer *o = &m->offers[first + i];
        size_t       k = row + o->request;
        float        payoff = m->payoffs[first + i];
        if (maifs_taken(m, o->task) || !(payoff > m->offer_payoff[k])) continue;
        m->offer_payoff[k] = payoff;
        m->give[k] = o->give;
        m->best[k] = i;
    }
}

// Training: an exploring agent claims a random request.
static void explore(Maifs *m, uint32_t server) {
    size_t   row = (size_t)server * m->n_requests;
    uint32_t n = 0, pick = CLUSTER_NONE, liked = CLUSTER_NONE;
    m->liked[server] = CLUSTER_NONE;
    if (!explores(m)) return;
    for (uint32_t k = 0; k < m->n_requests; k++) {
        if (m->give[row + k] == 0 || m->need[k] == 0) continue;
        if (rng_below(&m->rng, ++n) == 0) pick = k;
        if (liked == CLUSTER_NONE || m->claim_payoff[row + k] > m->claim_payoff[row + liked])
            liked = k;
    }
    if (pick == CLUSTER_NONE) return;
    m->n_explored++;
    m->liked[server] = m->best[row + liked];
    for (uint32_t k = 0; k < m->n_requests; k++)
        if (k != pick) m->claim_payoff[row + k] = -INFINITY;
    m->claim_payoff[row + pick] = fabsf(m->claim_payoff[row + pick]) + 1e-9f;
}

// Pair payoffs are constant during a decision: computed once per possible claim.
static void pair_server(Maifs *m, uint32_t server) {
    uint32_t n = 0, rank = m->net.rank;
    size_t   row = (size_t)server * m->n_requests, half = m->n_requests * (size_t)rank;
    float   *left = m->pairs, *right = m->pairs + half;
    for (uint32_t k = 0; k < m->n_requests; k++)
        if (m->give[row + k] != 0 && !m->paired[row + k])
            m->at[n++] = (MaifsOfferAt){server, m->row[m->requests[k].task]};
    if (n == 0) return;
    maifs_net_pair(&m->net, m->loaded->w, m->cache, n, m->at, left, right);
    for (uint32_t k = 0; k < m->n_requests; k++) {
        float own = m->utilities[m->requests[k].task].value;
        if (m->give[row + k] == 0 || m->paired[row + k]) continue;
        m->paired[row + k] = true;
        for (uint32_t r = 0; r < rank; r++) {
            m->left[(row + k) * rank + r] = *left++ * own;
            m->right[(row + k) * rank + r] = *right++;
        }
    }
}

static bool has_pairs(const Maifs *m) { return maifs_has_net(m) && m->net.rank > 0; }

void maifs_grant_pairs(Maifs *m, uint32_t server, uint32_t request) {
    uint32_t rank = m->net.rank;
    size_t   at = ((size_t)server * m->n_requests + request) * rank;
    if (!has_pairs(m)) return;
    for (uint32_t r = 0; r < rank; r++) {
        m->granted[r] += (double)m->left[at + r];
        m->granted[rank + r] += (double)m->right[at + r];
    }
}

// Re-prices a server's claims: their pairs with what earlier rounds granted.
static void add_granted(Maifs *m, uint32_t server) {
    uint32_t rank = m->net.rank;
    size_t   row = (size_t)server * m->n_requests;
    for (uint32_t k = 0; k < m->n_requests; k++) {
        const float *left = m->left + (row + k) * rank, *right = m->right + (row + k) * rank;
        double       sum = 0;
        if (m->give[row + k] == 0) continue;
        for (uint32_t r = 0; r < rank; r++)
            sum += (double)left[r] * m->granted[rank + r] + (double)right[r] * m->granted[r];
        m->claim_payoff[row + k] += (float)(sum / 2);
    }
}

// The payoffs that coordination sees.
static void set_claims(Maifs *m, uint32_t server) {
    size_t row = (size_t)server * m->n_requests;
    if (m->changed[server] || m->loaded->recompute) best_offers(m, server);
    memcpy(m->claim_payoff + row, m->offer_payoff + row, m->n_requests * sizeof *m->claim_payoff);
    m->changed[server] = false;
    m->idle[server] = 0;
    explore(m, server);
    if (!has_pairs(m) || m->n_offers[server] == 0) return;
    pair_server(m, server);
    if (m->n_starts > 0) add_granted(m, server);
}

void maifs_claim(Maifs *m) {
    CoordProblem p = {.agents = m->setup->n_servers,
                      .jobs = m->n_requests,
                      .payoff = m->claim_payoff,
                      .idle = m->idle,
                      .give = m->give,
                      .need = m->need};
    for (uint32_t k = 0; k < m->n_requests; k++) {
        uint32_t task = m->requests[k].task;
        m->need[k] = maifs_taken(m, task) ? 0
                                          : (uint16_t)task_utility_units(&m->utilities[task],
                                                                         m->utilities[task].gpus);
    }
    for (uint32_t i = 0; i < p.agents; i++) set_claims(m, i);
    if (has_pairs(m)) {
        p.rank = m->net.rank;
        p.left = m->left;
        p.right = m->right;
    }
    coord_decide(m->coord, &p, m->claims);
    m->agreed += coord_stats(m->coord)->value;
    m->baseline += coord_stats(m->coord)->baseline;
}

// Utility lost by taking a task away from a server.
static float stay_at(const Maifs *m, const ServerPlan *plan, uint32_t task) {
    VictimSet go = {{0}};
    Headroom  f;
    for (uint32_t g = 0; g < plan->n; g++)
        if (plan->at[g].task == task) victim_set_put(&go, g, true);
    server_plan_headroom(plan, &go, m->utilities, &f);
    return (float)(plan->utility - headroom_utility(&f, f.cores_milli, f.memory_mib));
}

// From all of its servers, its restart included.
static float stay_of(const Maifs *m, uint32_t task) {
    const TaskUtility *w = &m->utilities[task];
    const ClusterTask *t = &m->view->tasks[task];
    float              sum = w->value * w->restart_s * (float)m->cfg->restart_weight / w->left_s +
                (float)m->cfg->evict_margin * w->value;
    for (uint32_t i = 0; i < t->n_slices; i++)
        sum += stay_at(m, &m->plans[t->slices[i].server], task);
    return sum;
}

// Running tasks by the utility they miss compared with their highest level alone.
bool maifs_open_moves(Maifs *m) {
    uint32_t most = (uint32_t)m->cfg->migrations;
    m->n_window = 0;
    for (uint32_t i = 0; i < m->setup->n_servers && most > 0; i++) {
        const ServerPlan *plan = &m->plans[i];
        for (uint32_t g = 0; g < plan->n; g++) {
            const Resident    *x = &plan->at[g];
            const TaskUtility *w = &m->utilities[x->task];
            uint32_t           k = m->n_window;
            if (x->incoming || x->firm || x->sliced || w->class == CLUSTER_NONE) continue;
            float missing = w->value * (w->levels[w->n_levels - 1].rate - resident_rate(x, w));
            if (!(missing > (float)m->cfg->evict_margin * w->value)) continue;
            if (k == most && missing <= m->density[m->window[k - 1]]) continue;
            m->density[x->task] = missing;
            m->stay[x->task] = stay_of(m, x->task);
            if (k < most)
                m->n_window++;
            else
                k--;
            for (; k > 0 && m->density[m->window[k - 1]] < missing; k--)
                m->window[k] = m->window[k - 1];
            m->window[k] = x->task;
        }
    }
    return m->n_window > 0;
}
