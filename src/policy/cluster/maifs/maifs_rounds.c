// Negotiation rounds: from claims to residents, evictions and shared gangs.
#include <math.h>
#include <string.h>

#include "base/err.h"
#include "policy/cluster/maifs/maifs.h"

static void evict(Maifs *m, uint32_t task) {
    const ClusterTask *t = &m->view->tasks[task];
    for (uint32_t i = 0; i < t->n_slices; i++) {
        ServerPlan *plan = &m->plans[t->slices[i].server];
        server_plan_remove(plan, task);
        server_plan_allocate(plan, m->setup, m->utilities);
        plan->stale = true;
    }
    ClusterJob as = maifs_job(m, task);
    m->outcome[task] = m->migrating ? MAIFS_MIGRATED : MAIFS_EVICTED;
    tenant_quota_give(&m->tenants, &as);
    m->evicted[m->n_evicted++] = task;
}

// Evicts the victims for a task and returns its GPUs.
static uint64_t evict_for(Maifs *m, ServerPlan *plan, uint32_t task, uint32_t gpus) {
    VictimSet victims;
    uint64_t  mask = 0;
    uint32_t  tasks[SERVER_PLAN_RESIDENTS], n = 0;
    CHECK(offer_victims(&m->offering, plan, &m->utilities[task], gpus, &victims, &mask));
    for (uint32_t i = 0; i < plan->n; i++)
        if (victim_set_has(&victims, i)) tasks[n++] = plan->at[i].task;
    for (uint32_t i = 0; i < n; i++) evict(m, tasks[i]);
    return mask;
}

static OfferSample sample_of(const Maifs *m, uint32_t server, const Offer *o) {
    OfferSample d = {.at = {server, m->row[o->task]}, .gain = o->gain, .own = o->own};
    maifs_features_offer(&m->plans[server], &m->utilities[o->task], o, d.features);
    return d;
}

static void record_sample(Maifs *m, uint32_t server, const Offer *o) {
    if (!m->loaded->record || !maifs_has_net(m) || m->liked[server] == CLUSTER_NONE) return;
    MaifsExplored *c = &m->chosen[m->n_chosen++];
    c->took = sample_of(m, server, o);
    c->liked = sample_of(m, server, &m->offers[server * maifs_each(m) + m->liked[server]]);
}

// Half-size slices are offered if the gang keeps CUT_KEEP of its rate and can reach CUT_GAIN with
// more cores.
static const float CUT_KEEP = 0.8f, CUT_GAIN = 1.2f;

static const Offer *claimed(const Maifs *m, uint32_t server, uint32_t k) {
    return &m->offers[server * maifs_each(m) + m->best[(size_t)server * m->n_requests + k]];
}

static void place_claim(Maifs *m, uint32_t server, const Offer *o, uint32_t gpus,
                        const JointClaim *joint) {
    ServerPlan        *plan = &m->plans[server];
    const TaskUtility *w = &m->utilities[o->task];
    record_sample(m, server, o);
    maifs_grant_pairs(m, server, o->request);
    uint64_t mask = o->corunners > 0 ? o->mask : evict_for(m, plan, o->task, gpus);
    Resident g = {.mask = mask,
                  .task = o->task,
                  .cores_milli = task_utility_units(w, gpus) * w->levels[joint->level].cores_milli,
                  .memory_mib = task_utility_units(w, gpus) * w->levels[joint->level].memory_mib,
                  .gpus = (uint8_t)gpus,
                  .level = joint->level,
                  .cap = UTILITY_LEVELS,
                  .incoming = true,
                  .sliced = joint->servers > 1,
                  .spread_factor = server_plan_spread(m->setup, w, joint->servers)};
    server_plan_add(plan, &g);
    server_plan_allocate(plan, m->setup, m->utilities);
    plan->stale = true;
    m->starts[m->n_starts++] = (MaifsStart){o->task, server};
}

// All claims on a request together.
static JointClaim joint_claim_of(const Maifs *m, uint32_t k) {
    JointClaim d = {.level = UTILITY_LEVELS, .holder = CLUSTER_NONE};
    uint32_t   task = m->requests[k].task;
    for (uint32_t i = 0; i < m->setup->n_servers; i++) {
        if (m->claims[i] != k) continue;
        const Offer *o = claimed(m, i, k);
        if (o->level < d.level) d.level = o->level;
        d.holder = o->holder;
        d.servers++;
        d.payoff += m->claim_payoff[(size_t)i * m->n_requests + k];
        d.stale = d.stale || m->plans[i].stale;
    }
    if (d.holder != CLUSTER_NONE) d.stale = d.stale || !maifs_can_join(m, task, d.holder);
    for (uint32_t i = 0; d.servers > 0 && m->migrating && i < m->view->tasks[task].n_slices; i++)
        d.stale = d.stale || m->plans[m->view->tasks[task].slices[i].server].stale;
    return d;
}

// Utility of the victims' slices on servers without a claim on this request.
static float lost_elsewhere(const Maifs *m, uint32_t k) {
    uint32_t counted[SERVER_PLAN_RESIDENTS], n = 0;
    float    sum = 0;
    for (uint32_t i = 0; i < m->setup->n_servers; i++) {
        const ServerPlan *plan = &m->plans[i];
        VictimSet         victims;
        uint64_t          mask;
        if (m->claims[i] != k) continue;
        CHECK(offer_victims(&m->offering, plan, &m->utilities[m->requests[k].task],
                            claimed(m, i, k)->give, &victims, &mask));
        for (uint32_t g = 0; g < plan->n; g++) {
            const Resident    *x = &plan->at[g];
            const TaskUtility *w = &m->utilities[x->task];
            uint32_t           seen = 0;
            if (!victim_set_has(&victims, g) || !x->sliced) continue;
            while (seen < n && counted[seen] != x->task) seen++;
            if (seen == n && n < SERVER_PLAN_RESIDENTS) {
                counted[n++] = x->task;
                sum += resident_utility(x, w);
            }
            sum -= resident_utility(x, w) * resident_fraction(x, w);
        }
    }
    return sum;
}

// The claiming server with the largest payoff; CLUSTER_NONE: none is left.
static uint32_t best_claimant(const Maifs *m, uint32_t k) {
    uint32_t best = CLUSTER_NONE;
    for (uint32_t i = 0; i < m->setup->n_servers; i++) {
        size_t at = (size_t)i * m->n_requests + k;
        if (m->claims[i] != k) continue;
        if (best == CLUSTER_NONE ||
            m->claim_payoff[at] > m->claim_payoff[(size_t)best * m->n_requests + k])
            best = i;
    }
    return best;
}

// In descending payoff; the last server gives only the GPUs still missing.
static void place_all(Maifs *m, uint32_t k, const JointClaim *joint) {
    uint32_t task = m->requests[k].task, left = m->need[k];
    if (m->migrating) evict(m, task);
    if (joint->holder != CLUSTER_NONE) maifs_join(m, task, joint->holder);
    while (left > 0 && joint->holder == CLUSTER_NONE) {
        uint32_t i = best_claimant(m, k);
        CHECK(i != CLUSTER_NONE);
        const Offer *o = claimed(m, i, k);
        uint32_t     units = o->give < left ? o->give : left;
        left -= units;
        m->claims[i] = COORD_NONE;
        place_claim(m, i, o, m->utilities[task].gpus > 0 ? units : 0, joint);
    }
    ClusterJob as = maifs_job(m, task);
    m->outcome[task] = m->migrating ? MAIFS_MIGRATED : MAIFS_STARTED;
    tenant_quota_take(&m->tenants, &as);
}

// The same task has a request with the other slice size and a larger payoff.
static bool outbid(const Maifs *m, uint32_t k, const JointClaim *joint) {
    for (uint32_t o = k > 0 ? k - 1 : k; o < m->n_requests && o <= k + 1; o++) {
        if (o == k || m->requests[o].task != m->requests[k].task) continue;
        JointClaim other = joint_claim_of(m, o);
        if (other.servers > 0 && !other.stale && other.payoff > joint->payoff) return true;
    }
    return false;
}

// Gangs first, as they are hardest to fit. Claims on servers that changed wait for the next round.
static bool place_claims(Maifs *m) {
    bool any = false;
    for (uint32_t pass = 0; pass < 2; pass++)
        for (uint32_t k = 0; k < m->n_requests; k++) {
            JointClaim d = joint_claim_of(m, k);
            if (d.servers == 0 || d.stale || (d.servers > 1) == (pass > 0)) continue;
            ClusterJob as = maifs_job(m, m->requests[k].task);
            if (!m->migrating && !tenant_quota_fits(&m->tenants, &as)) continue;
            if (maifs_taken(m, m->requests[k].task) || outbid(m, k, &d)) continue;
            if (d.servers > 1 && d.payoff <= lost_elsewhere(m, k)) continue;
            place_all(m, k, &d);
            any = true;
        }
    return any;
}

static bool worth_slicing(const Maifs *m, const TaskUtility *w, uint32_t slice) {
    float left = server_plan_spread(m->setup, w, (w->gpus + slice - 1) / slice);
    return m->slices_too && !w->settles && left > CUT_KEEP &&
           w->levels[w->n_levels - 1].rate * left > CUT_GAIN;
}

// One request per task, and one for half-size slices where those may give each GPU more cores.
static void make_requests(Maifs *m) {
    m->n_requests = 0;
    for (uint32_t i = 0; i < m->n_window; i++) {
        const TaskUtility *w = &m->utilities[m->window[i]];
        uint32_t           gpus = w->gpus < m->setup->most_gpus ? w->gpus : m->setup->most_gpus;
        m->requests[m->n_requests++] = (OfferRequest){m->window[i], gpus};
        if (gpus >= 2 && worth_slicing(m, w, (gpus + 1) / 2))
            m->requests[m->n_requests++] = (OfferRequest){m->window[i], (gpus + 1) / 2};
    }
}

void maifs_negotiate(Maifs *m) {
    uint32_t rounds = m->cfg->epoch_s > 0 ? 1 : MAIFS_ROUNDS;
    make_requests(m);
    memset(m->paired, 0, (size_t)m->setup->n_servers * m->n_requests);
    for (uint32_t i = 0; i < m->setup->n_servers; i++) m->plans[i].stale = true;
    for (uint32_t round = 0; round < rounds; round++) {
        for (uint32_t i = 0; i < m->setup->n_servers; i++) {
            if (m->plans[i].stale) maifs_offer(m, i);
            m->plans[i].stale = false;
        }
        maifs_claim(m);
        if (!place_claims(m)) return;
    }
}

static bool alone(const ServerPlan *plan, const Resident *x) {
    for (uint32_t g = 0; g < plan->n; g++)
        if (plan->at[g].task != x->task && (plan->at[g].mask & x->mask) != 0) return false;
    return true;
}

// Utility that servers lose when a task gets its lowest level beside a gang; INFINITY: it does not
// fit.
static float utility_lost_beside(const Maifs *m, uint32_t holder, const TaskUtility *w) {
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
        lost += (float)(plan->utility - headroom_utility(&f, cores, memory));
    }
    return lost;
}

// The task may run on all servers of a holder.
static bool may_join(const Maifs *m, uint32_t task, uint32_t holder) {
    const ClusterTask *t = &m->view->tasks[holder];
    for (uint32_t i = 0; i < t->n_slices; i++)
        if (!cluster_server_fits(m->setup, &m->view->tasks[task].job, t->slices[i].server))
            return false;
    return true;
}

static bool offer_beside(const Maifs *m, const Resident *x, uint32_t request, Offer *out) {
    uint32_t           task = m->requests[request].task;
    const TaskUtility *w = &m->utilities[task], *b = &m->utilities[x->task];
    if (w->gpus != b->gpus || w->settles || b->settled || w->class == CLUSTER_NONE ||
        b->class == CLUSTER_NONE || (w->types != 0 && w->types != b->types) ||
        (w->servers != NULL && !may_join(m, task, x->task)))
        return false;
    float mine = (float)profile_pair(m->setup->profiles, w->class, b->class);
    float its = (float)profile_pair(m->setup->profiles, b->class, w->class);
    float rate = w->levels[0].rate * mine *
                 server_plan_spread(m->setup, w, m->view->tasks[x->task].n_slices);
    float harm = resident_utility(x, b) * (1 - its), own = w->value * rate;
    if (!(mine > 0) || !(its > 0) || own <= harm) return false;
    *out = (Offer){.mask = x->mask,
                   .task = task,
                   .request = request,
                   .holder = x->task,
                   .give = (uint16_t)w->gpus,
                   .corunners = 1,
                   .gain = own - harm - utility_lost_beside(m, x->task, w),
                   .own = own,
                   .lost = harm,
                   .rate = rate};
    return out->gain > 0;
}

uint32_t maifs_gang_offers(Maifs *m, uint32_t server, Offer *out) {
    const ServerPlan *plan = &m->plans[server];
    uint32_t          n = 0;
    if (m->offering.params.gpu_tasks < 2 || plan->full) return 0;
    for (uint32_t g = 0; g < plan->n; g++) {
        const Resident *x = &plan->at[g];
        if (!x->sliced || x->incoming || m->view->tasks[x->task].slices[0].server != server)
            continue;
        for (uint32_t k = 0; k < m->n_requests; k++)
            if (!maifs_taken(m, m->requests[k].task) && n < OFFER_EACH &&
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
                             .incoming = true,
                             .sliced = true,
                             .spread_factor = server_plan_spread(m->setup, w, t->n_slices)};
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
    return m->outcome[holder] == MAIFS_KEPT &&
           isfinite(utility_lost_beside(m, holder, &m->utilities[task]));
}
