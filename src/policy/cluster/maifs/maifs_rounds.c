// Rounds in which agents agree on who takes which task, and what becomes of it.
#include <math.h>
#include <string.h>

#include "base/err.h"
#include "policy/cluster/maifs/maifs.h"

static void leave(Maifs *m, uint32_t task) {
    const ClusterTask *t = &m->view->tasks[task];
    for (uint32_t i = 0; i < t->n_slices; i++) {
        ServerPlan *plan = &m->plans[t->slices[i].server];
        server_plan_remove(plan, task);
        server_plan_allocate(plan, m->setup, m->utilities);
        plan->stale = true;
    }
    m->fate[task] = m->moving ? MAIFS_MOVES : MAIFS_GOES;
    m->evicted[m->n_evicted++] = task;
}

// Makes room; says which GPUs are free then.
static uint64_t clear(Maifs *m, ServerPlan *plan, uint32_t task, uint32_t gpus) {
    VictimSet go;
    uint64_t  mask = 0;
    uint32_t  tasks[SERVER_PLAN_RESIDENTS], n = 0;
    CHECK(offer_victims(&m->offering, plan, &m->utilities[task], gpus, &go, &mask));
    for (uint32_t i = 0; i < plan->n; i++)
        if (victim_set_has(&go, i)) tasks[n++] = plan->at[i].task;
    for (uint32_t i = 0; i < n; i++) leave(m, tasks[i]);
    return mask;
}

static OfferSample deal_of(const Maifs *m, uint32_t server, const Offer *o) {
    OfferSample d = {.at = {server, m->row[o->task]}, .gain = o->gain, .own = o->own};
    maifs_features_offer(&m->plans[server], &m->utilities[o->task], o, d.features);
    return d;
}

static void note(Maifs *m, uint32_t server, const Offer *o) {
    if (!m->loaded->record || !maifs_has_net(m) || m->liked[server] == CLUSTER_NONE) return;
    MaifsExplored *c = &m->chosen[m->n_chosen++];
    c->took = deal_of(m, server, o);
    c->liked = deal_of(m, server, &m->offers[server * maifs_each(m) + m->liked[server]]);
}

// A gang is cut smaller if that costs it little of its rate, and if it can gain much by it.
static const float CUT_KEEP = 0.8f, CUT_GAIN = 1.2f;

static const Offer *claimed(const Maifs *m, uint32_t server, uint32_t k) {
    return &m->offers[server * maifs_each(m) + m->best[(size_t)server * m->n_asks + k]];
}

static void take(Maifs *m, uint32_t server, const Offer *o, uint32_t gpus, const JointClaim *pact) {
    ServerPlan        *plan = &m->plans[server];
    const TaskUtility *w = &m->utilities[o->task];
    note(m, server, o);
    uint64_t mask = o->mates > 0 ? o->mask : clear(m, plan, o->task, gpus);
    Resident g = {.mask = mask,
                  .task = o->task,
                  .cores_milli = task_utility_units(w, gpus) * w->levels[pact->level].cores_milli,
                  .memory_mib = task_utility_units(w, gpus) * w->levels[pact->level].memory_mib,
                  .gpus = (uint8_t)gpus,
                  .level = pact->level,
                  .cap = UTILITY_LEVELS,
                  .fresh = true,
                  .sliced = pact->plans > 1,
                  .spread = server_plan_spread(m->setup, w, pact->plans)};
    server_plan_add(plan, &g);
    server_plan_allocate(plan, m->setup, m->utilities);
    plan->stale = true;
    m->starts[m->n_starts++] = (MaifsStart){o->task, server};
}

// What the claims on a task come to; worth nothing when some server has changed since.
static JointClaim pact_of(const Maifs *m, uint32_t k) {
    JointClaim d = {.level = UTILITY_LEVELS, .holder = CLUSTER_NONE};
    uint32_t   task = m->asks[k].task;
    for (uint32_t i = 0; i < m->setup->n_servers; i++) {
        if (m->claims[i] != k) continue;
        const Offer *o = claimed(m, i, k);
        if (o->level < d.level) d.level = o->level;
        d.holder = o->holder;
        d.plans++;
        d.pays += m->claim_payoff[(size_t)i * m->n_asks + k];
        d.late = d.late || m->plans[i].stale;
    }
    if (d.holder != CLUSTER_NONE) d.late = d.late || !maifs_can_join(m, task, d.holder);
    if (d.plans > 0 && m->moving)
        d.late = d.late || m->plans[m->view->tasks[task].slices[0].server].stale;
    return d;
}

// What gangs that have to go for a gang have on servers that are no part of it.
static float lost_elsewhere(const Maifs *m, uint32_t k) {
    uint32_t gone[SERVER_PLAN_RESIDENTS], n = 0;
    float    sum = 0;
    for (uint32_t i = 0; i < m->setup->n_servers; i++) {
        const ServerPlan *plan = &m->plans[i];
        VictimSet         go;
        uint64_t          mask;
        if (m->claims[i] != k) continue;
        CHECK(offer_victims(&m->offering, plan, &m->utilities[m->asks[k].task],
                            claimed(m, i, k)->give, &go, &mask));
        for (uint32_t g = 0; g < plan->n; g++) {
            const Resident    *x = &plan->at[g];
            const TaskUtility *w = &m->utilities[x->task];
            uint32_t           seen = 0;
            if (!victim_set_has(&go, g) || !x->sliced) continue;
            while (seen < n && gone[seen] != x->task) seen++;
            if (seen == n && n < SERVER_PLAN_RESIDENTS) {
                gone[n++] = x->task;
                sum += resident_utility(x, w);
            }
            sum -= resident_utility(x, w) * resident_fraction(x, w);
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
static void take_all(Maifs *m, uint32_t k, const JointClaim *pact) {
    uint32_t task = m->asks[k].task, left = m->need[k];
    if (m->moving) leave(m, task);
    if (pact->holder != CLUSTER_NONE) maifs_join(m, task, pact->holder);
    while (left > 0 && pact->holder == CLUSTER_NONE) {
        uint32_t i = keenest(m, k);
        CHECK(i != CLUSTER_NONE);
        const Offer *o = claimed(m, i, k);
        uint32_t     units = o->give < left ? o->give : left;
        left -= units;
        m->claims[i] = COORD_NONE;
        take(m, i, o, m->utilities[task].gpus > 0 ? units : 0, pact);
    }
    m->fate[task] = m->moving ? MAIFS_MOVES : MAIFS_COMES;
}

// The same task whole and in slices: what pays more.
static bool outbid(const Maifs *m, uint32_t k, const JointClaim *pact) {
    for (uint32_t o = k > 0 ? k - 1 : k; o < m->n_asks && o <= k + 1; o++) {
        if (o == k || m->asks[o].task != m->asks[k].task) continue;
        JointClaim other = pact_of(m, o);
        if (other.plans > 0 && !other.late && other.pays > pact->pays) return true;
    }
    return false;
}

// Gangs first, for they are hardest to fit; a claim on an server that has changed since has to
// wait.
static bool carry_out(Maifs *m) {
    bool any = false;
    for (uint32_t turn = 0; turn < 2; turn++)
        for (uint32_t k = 0; k < m->n_asks; k++) {
            JointClaim d = pact_of(m, k);
            if (d.plans == 0 || d.late || (d.plans > 1) == (turn > 0)) continue;
            if (maifs_taken(m, m->asks[k].task) || outbid(m, k, &d)) continue;
            if (d.plans > 1 && d.pays <= lost_elsewhere(m, k)) continue;
            take_all(m, k, &d);
            any = true;
        }
    return any;
}

static bool pays_to_cut(const Maifs *m, const TaskUtility *w, uint32_t slice) {
    float left = server_plan_spread(m->setup, w, (w->gpus + slice - 1) / slice);
    return m->slices_too && left > CUT_KEEP && w->levels[w->n_levels - 1].rate * left > CUT_GAIN;
}

// Whole, and in slices of half the size where that may give each GPU more cores.
static void ask(Maifs *m) {
    m->n_asks = 0;
    for (uint32_t i = 0; i < m->n_window; i++) {
        const TaskUtility *w = &m->utilities[m->window[i]];
        uint32_t           gpus = w->gpus < m->setup->most_gpus ? w->gpus : m->setup->most_gpus;
        m->asks[m->n_asks++] = (OfferAsk){m->window[i], gpus};
        if (gpus >= 2 && pays_to_cut(m, w, (gpus + 1) / 2))
            m->asks[m->n_asks++] = (OfferAsk){m->window[i], (gpus + 1) / 2};
    }
}

void maifs_negotiate(Maifs *m) {
    ask(m);
    memset(m->paired, 0, (size_t)m->setup->n_servers * m->n_asks);
    for (uint32_t i = 0; i < m->setup->n_servers; i++) m->plans[i].stale = true;
    for (uint32_t round = 0; round < MAIFS_ROUNDS; round++) {
        for (uint32_t i = 0; i < m->setup->n_servers; i++) {
            if (m->plans[i].stale) maifs_offer(m, i);
            m->plans[i].stale = false;
        }
        maifs_claim(m);
        if (!carry_out(m)) return;
    }
}

// Gangs that share the GPUs of another gang, slice by slice.

static bool alone(const ServerPlan *plan, const Resident *x) {
    for (uint32_t g = 0; g < plan->n; g++)
        if (plan->at[g].task != x->task && (plan->at[g].mask & x->mask) != 0) return false;
    return true;
}

// The worth that plans lose when a task gets its lowest level offer_beside a gang; INFINITY: no
// room.
static float room_beside(const Maifs *m, uint32_t holder, const TaskUtility *w) {
    const ClusterTask *t = &m->view->tasks[holder];
    float              lost = 0;
    for (uint32_t i = 0; i < t->n_slices; i++) {
        const ServerPlan *plan = &m->plans[t->slices[i].server];
        const Resident   *x = server_plan_find(plan, holder);
        Headroom          f;
        if (x == NULL || plan->full || plan->n + 1 >= SERVER_PLAN_RESIDENTS || !alone(plan, x))
            return INFINITY;
        server_plan_headroom(plan, NULL, m->utilities, &f);
        int64_t cores = f.cores_milli - (int64_t)x->gpus * w->levels[0].cores_milli;
        int64_t memory = f.memory_mib - (int64_t)x->gpus * w->levels[0].memory_mib;
        if (cores < 0 || memory < 0) return INFINITY;
        lost += (float)(plan->worth - headroom_utility(&f, cores, memory));
    }
    return lost;
}

static bool offer_beside(const Maifs *m, const Resident *x, uint32_t ask, Offer *out) {
    uint32_t           task = m->asks[ask].task;
    const TaskUtility *w = &m->utilities[task], *b = &m->utilities[x->task];
    if (w->gpus != b->gpus || w->class == CLUSTER_NONE || b->class == CLUSTER_NONE ||
        (w->types != 0 && w->types != b->types))
        return false;
    float mine = (float)profile_pair(m->setup->profiles, w->class, b->class);
    float its = (float)profile_pair(m->setup->profiles, b->class, w->class);
    float rate = w->levels[0].rate * mine *
                 server_plan_spread(m->setup, w, m->view->tasks[x->task].n_slices);
    float harm = resident_utility(x, b) * (1 - its), own = w->value * rate;
    if (!(mine > 0) || !(its > 0) || own <= harm) return false;
    *out = (Offer){.mask = x->mask,
                   .task = task,
                   .ask = ask,
                   .holder = x->task,
                   .give = (uint16_t)w->gpus,
                   .mates = 1,
                   .gain = own - harm - room_beside(m, x->task, w),
                   .own = own,
                   .lost = harm,
                   .rate = rate};
    return out->gain > 0;
}

uint32_t maifs_gang_offers(Maifs *m, uint32_t server, Offer *out) {
    const ServerPlan *plan = &m->plans[server];
    uint32_t          n = 0;
    if (m->offering.params.mates < 2 || plan->full) return 0;
    for (uint32_t g = 0; g < plan->n; g++) {
        const Resident *x = &plan->at[g];
        if (!x->sliced || x->fresh || m->view->tasks[x->task].slices[0].server != server) continue;
        for (uint32_t k = 0; k < m->n_asks; k++)
            if (!maifs_taken(m, m->asks[k].task) && n < OFFER_EACH &&
                offer_beside(m, x, k, &out[n]))
                n++;
    }
    return n;
}

void maifs_join(Maifs *m, uint32_t task, uint32_t holder) {
    const ClusterTask *t = &m->view->tasks[holder];
    const TaskUtility *w = &m->utilities[task];
    for (uint32_t i = 0; i < t->n_slices; i++) {
        ServerPlan     *plan = &m->plans[t->slices[i].server];
        const Resident *x = server_plan_find(plan, holder);
        Resident        g = {.mask = x->mask,
                             .task = task,
                             .cores_milli = x->gpus * w->levels[0].cores_milli,
                             .memory_mib = x->gpus * w->levels[0].memory_mib,
                             .gpus = x->gpus,
                             .cap = UTILITY_LEVELS,
                             .fresh = true,
                             .sliced = true,
                             .spread = server_plan_spread(m->setup, w, t->n_slices)};
        server_plan_add(plan, &g);
        server_plan_allocate(plan, m->setup, m->utilities);
        plan->stale = true;
        m->starts[m->n_starts++] = (MaifsStart){task, plan->server};
    }
}

bool maifs_can_join(const Maifs *m, uint32_t task, uint32_t holder) {
    const ClusterTask *t = &m->view->tasks[holder];
    for (uint32_t i = 0; i < t->n_slices; i++)
        if (m->plans[t->slices[i].server].stale) return false;
    return m->fate[holder] == MAIFS_STAYS && isfinite(room_beside(m, holder, &m->utilities[task]));
}
