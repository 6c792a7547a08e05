// maifs: one agent per server; places tasks and chooses their amounts in one decision
//
// 1. Observe: plans of all servers, utilities of all tasks, and the network's values.
// 2. Negotiate, one window of waiting tasks after another: offers, coordination, placement.
// 3. Migrate: the same with running tasks that would gain elsewhere.
// 4. Elastic tasks: their numbers of GPUs are divided before step 2, running ones grow after it.
// 5. Allocate cores and memory on every server and write the difference as actions.
#include "policy/cluster/maifs/maifs.h"

#include <string.h>

#include "policy/embedded_weights.h"
#include "policy/policies.h"

static const Setting rows[] = {
#define X(...) SETTING_ROW(MaifsSettings, __VA_ARGS__)
    MAIFS_SETTINGS(X)
#undef X
};

static const MaifsLoaded by_rules = {.w = NULL};

static bool is(const char *word, const char *one) { return strcmp(word, one) == 0; }

static CoordParams coord_params(const ClusterSetup *s, const MaifsSettings *cfg) {
    CoordParams r = coord_default_params();
    r.seed = rng_fork(s->rng, 1).s;
    coord_parts_of(cfg->coordination, &r.parts);
    return r;
}

// Where agents decide at once, each may find a task.
static uint32_t most_window(const ClusterSetup *s, const MaifsSettings *cfg) {
    uint32_t window = (uint32_t)cfg->window;
    if (cfg->epoch_s == 0 || s->n_servers <= window) return window;
    return s->n_servers < MAIFS_WINDOW ? s->n_servers : MAIFS_WINDOW;
}

static void carve_network(Maifs *m, const ClusterSetup *s, size_t requests, Carve *from) {
    size_t jobs = s->n_slots, pairs = s->n_servers * requests * m->net.rank;
    m->servers = carve(from, float, (size_t)s->n_servers *MAIFS_SERVER);
    m->jobs = carve(from, float, jobs *MAIFS_JOB);
    m->u = carve(from, float, jobs);
    m->row = carve(from, uint32_t, jobs);
    m->seen = carve(from, uint32_t, jobs);
    m->cache = carve(from, float, maifs_net_cache(&m->net, s->n_servers, s->n_slots));
    m->left = carve(from, float, pairs);
    m->right = carve(from, float, pairs);
    m->pairs = carve(from, float, 2 * requests * m->net.rank);
    m->paired = carve(from, bool, s->n_servers *requests);
    m->chosen = carve(from, MaifsExplored, jobs + s->gpus);
}

static void carve_offers(Maifs *m, const ClusterSetup *s, size_t requests, Carve *from) {
    size_t each = (requests + 1) * OFFER_EACH, claims = s->n_servers * requests;
    m->requests = carve(from, OfferRequest, requests);
    m->window = carve(from, uint32_t, requests);
    m->offers = carve(from, Offer, s->n_servers * each);
    m->payoffs = carve(from, float, s->n_servers *each);
    m->n_offers = carve(from, uint32_t, s->n_servers);
    m->features = carve(from, float, each *MAIFS_OFFER);
    m->at = carve(from, MaifsOfferAt, each);
    m->offer_payoff = carve(from, float, claims);
    m->claim_payoff = carve(from, float, claims);
    m->give = carve(from, uint16_t, claims);
    m->best = carve(from, uint32_t, claims);
    m->need = carve(from, uint16_t, requests);
    m->idle = carve(from, float, s->n_servers);
    m->claims = carve(from, uint32_t, s->n_servers);
    m->changed = carve(from, bool, s->n_servers);
    m->liked = carve(from, uint32_t, s->n_servers);
}

static Maifs *carve_all(const ClusterSetup *s, const MaifsSettings *cfg, Carve *from) {
    Maifs       none = {0}, *m = carve(from, Maifs, 1), *to = m == NULL ? &none : m;
    CoordParams params = coord_params(s, cfg);
    uint32_t    window = most_window(s, cfg), moves = (uint32_t)cfg->migrations;
    size_t      requests = 2 * (size_t)(window > moves ? window : moves);
    to->most_window = window;
    to->net = maifs_net_of(cfg);
    to->utilities = carve(from, TaskUtility, s->n_slots);
    to->plans = carve(from, ServerPlan, s->n_servers);
    to->outcome = carve(from, uint8_t, s->n_slots);
    to->density = carve(from, float, s->n_slots);
    to->slowest = carve(from, float, 2 * (size_t)s->n_slots);
    to->stay = carve(from, float, s->n_slots);
    to->each = (requests + 1) * OFFER_EACH;
    to->probes = carve(from, MaifsProbe, s->n_slots);
    to->stances = carve(from, Stance, s->n_servers);
    to->scene = carve(from, float, (size_t)s->n_servers *STANCE_FEATURES);
    to->stance_hidden = carve(from, float, (size_t)s->n_servers *STANCE_HIDDEN);
    to->stance_logits = carve(from, float, (size_t)s->n_servers *STANCES);
    to->min_level = carve(from, uint8_t, s->n_slots);
    to->evicted = carve(from, uint32_t, s->n_slots);
    to->starts = carve(from, MaifsStart, s->gpus + s->n_slots);
    to->slices = carve(from, ClusterSlice, 3 * (size_t)s->n_slots + MAIFS_HELD * s->gpus);
    carve_network(to, s, requests, from);
    carve_offers(to, s, requests, from);
    to->offering.space = offer_carve(from);
    tenant_quota_carve(&to->tenants, s, from);
    gpu_split_carve(&to->split, s, from);
    to->coord = coord_carve(s->n_servers, (uint32_t)requests, &params, from);
    return m;
}

MaifsNet maifs_net_of(const MaifsSettings *cfg) {
    MaifsNet n = maifs_net_default();
    n.attention = cfg->attention;
    return n;
}

static Err check_words(const MaifsSettings *cfg) {
    const char *demand = cfg->demand;
    uint32_t    parts;
    if (!coord_parts_of(cfg->coordination, &parts))
        return err_set(ERR_ARG, "coordination=%.40s: there are %s", cfg->coordination,
                       coord_words());
    if (!is(demand, "fungible") && !is(demand, "fixed"))
        return err_set(ERR_ARG, "demand=%.40s: there are fungible and fixed", demand);
    return ERR_OK;
}

static Err load(const ClusterSetup *s, const void *settings, Arena *a, const void **loaded) {
    (void)s;
    const MaifsSettings *cfg = settings;
    MaifsLoaded         *l = arena_new(a, MaifsLoaded, 1);
    *loaded = l;
    TRY(check_words(cfg));
    TRY(maifs_weights_load(cfg->weights, a, l));
    return maifs_stance_load(cfg->stance, a, l);
}

static size_t size(const ClusterSetup *s, const void *settings) {
    Carve c = {0};
    carve_all(s, settings, &c);
    return c.used;
}

static void init(void *state, const ClusterSetup *s, const void *settings, const void *loaded) {
    const MaifsSettings *cfg = settings;
    Carve                c = {.base = state};
    Maifs               *m = carve_all(s, cfg, &c);
    bool                 fixed = is(cfg->demand, "fixed");
    m->setup = s;
    m->cfg = cfg;
    m->slices_too = cfg->slices && !fixed && !cfg->two_step;
    m->loaded = loaded != NULL ? loaded : &by_rules;
    m->rng = s->rng;
    m->params = (UtilityParams){.fixed = fixed,
                                .uncertain_boost = (float)cfg->uncertain_boost,
                                .critical_gang_power = (float)cfg->critical_gang_power,
                                .margin = (float)cfg->margin,
                                .spread = cfg->spread,
                                .last_alone = cfg->last_alone,
                                .pace = (float)cfg->pace,
                                .unknown_left_s = (float)cfg->unknown_left_s};
    m->offering = (OfferContext){
        .setup = s,
        .utilities = m->utilities,
        .space = m->offering.space,
        .params = {.gpu_tasks = fixed || cfg->two_step ? 1 : (uint32_t)cfg->gpu_tasks,
                   .evict_margin = (float)cfg->evict_margin,
                   .restart_weight = (float)cfg->restart_weight,
                   .evict = true,
                   .ignore_levels = cfg->two_step}};
    offer_context_init(&m->offering);
}

static bool before(const Maifs *m, uint32_t a, uint32_t b) {
    if (m->density[a] != m->density[b]) return m->density[a] > m->density[b];
    return m->view->tasks[a].job.id < m->view->tasks[b].job.id;
}

// The next window: waiting tasks by utility density, after the last one of the window before.
static bool next_window(Maifs *m, uint32_t *last) {
    const ClusterView *v = m->view;
    uint32_t           most = m->most_window;
    m->n_window = 0;
    for (uint32_t i = 0; i < v->n_waiting; i++) {
        uint32_t t = v->waiting[i], k = m->n_window;
        if (m->outcome[t] != MAIFS_KEPT || (*last != CLUSTER_NONE && !before(m, *last, t)))
            continue;
        if (!m->by_rules && m->row[t] == CLUSTER_NONE) continue;
        ClusterJob as = maifs_job(m, t);
        if (!tenant_quota_fits(&m->tenants, &as)) continue;
        if (k == most && !before(m, t, m->window[k - 1])) continue;
        if (k < most)
            m->n_window++;
        else
            k--;
        for (; k > 0 && before(m, t, m->window[k - 1]); k--) m->window[k] = m->window[k - 1];
        m->window[k] = t;
    }
    if (m->n_window > 0) *last = m->window[m->n_window - 1];
    return m->n_window > 0;
}

// Evicted tasks may fit elsewhere, so the policy decides again at once, a limited number of times.
static bool look_again(Maifs *m) {
    TimeNs now = m->view->now;
    m->rewoken = now - m->decided_at <= 1 ? m->rewoken + 1 : 0;
    m->decided_at = now;
    return m->n_evicted > 0 && m->rewoken < MAIFS_PAGES;
}

static bool some_wait(const Maifs *m) {
    for (uint32_t i = 0; i < m->view->n_waiting; i++)
        if (m->outcome[m->view->waiting[i]] == MAIFS_KEPT) return true;
    return false;
}

static bool any_free(const Maifs *m) {
    for (uint32_t i = 0; i < m->setup->n_servers; i++)
        if ((uint32_t)__builtin_popcountll(m->plans[i].used) < m->plans[i].gpus) return true;
    return false;
}

static void place_waiting(Maifs *m) {
    uint32_t last = CLUSTER_NONE;
    for (uint32_t w = 0; w < MAIFS_PAGES && next_window(m, &last); w++) {
        maifs_negotiate(m);
        if (m->cfg->epoch_s > 0 || !any_free(m)) break;
    }
}

// The next decision: at once after evictions; else while tasks wait or are probed.
static uint32_t wake(Maifs *m, ClusterAction *out) {
    TimeNs now = m->view->now;
    TimeNs again = now + (look_again(m) ? 1 : (TimeNs)m->cfg->period_s * CLUSTER_SECOND);
    bool   done = m->n_evicted == 0 && m->look_at == 0 && !some_wait(m) && !m->setup->elastic;
    if (m->look_at > 0 && m->look_at < again) again = m->look_at;
    if (done) return 0;
    *out = (ClusterAction){.verb = CLUSTER_WAKE, .at = again};
    return 1;
}

// If the network leaves an idle cluster idle, its payoffs are ignored.
static uint32_t decide_now(Maifs *m, const ClusterView *v, ClusterAction *out) {
    maifs_observe(m, v);
    m->ignore_net = false;
    maifs_divide(m);
    m->free_only = m->split.n > 0;
    if (m->free_only) place_waiting(m);
    if (maifs_fit_smaller(m, false)) place_waiting(m);
    m->free_only = false;
    (void)maifs_fit_smaller(m, true);
    place_waiting(m);
    m->ignore_net = v->n_running == 0 && m->n_starts == 0;
    if (m->ignore_net) place_waiting(m);
    m->migrating = maifs_open_moves(m);
    if (m->migrating) maifs_negotiate(m);
    m->migrating = false;
    maifs_grow(m);
    maifs_allocate(m);
    return maifs_plan(m, out);
}

static uint32_t decide(void *state, const ClusterView *v, ClusterAction *out, uint32_t max) {
    Maifs *m = state;
    TimeNs epoch = (TimeNs)m->cfg->epoch_s * CLUSTER_SECOND;
    (void)max;
    if (epoch == 0) {
        uint32_t n = decide_now(m, v, out);
        return n + wake(m, out + n);
    }
    uint32_t n = v->now % epoch == 0 ? decide_now(m, v, out) : 0;
    if (v->n_waiting == 0 && v->n_running == 0) return n;
    out[n++] = (ClusterAction){.verb = CLUSTER_WAKE, .at = (v->now / epoch + 1) * epoch};
    return n;
}

const ClusterPolicy cluster_policy_maifs = {
    .name = "maifs",
    .about = "one agent per server; places tasks and chooses their amounts in one decision",
    .paper = "MAIFS (TPDS 2025), reconstructed",
    .knows = CLUSTER_ORACLE,
    .preempts = true,
    .learned = true,
    .rows = rows,
    .n_rows = sizeof rows / sizeof *rows,
    .settings_size = sizeof(MaifsSettings),
    .load = load,
    .state_size = size,
    .init = init,
    .decide = decide,
};

char *maifs_weights_facts(Arena *a) {
    MaifsNet n = maifs_net_default();
    return arena_printf(a,
                        "policy=maifs\nserver=%d\njob=%d\noffer=%d\nqueue=%d\nwidth=%u\nheads=%u\n"
                        "rounds=%u\nhidden=%u\nrank=%u\n",
                        MAIFS_SERVER, MAIFS_JOB, MAIFS_OFFER, MAIFS_QUEUE, n.width, n.heads,
                        n.rounds, n.hidden, n.rank);
}

Err maifs_weights_load(const char *what, Arena *a, MaifsLoaded *out) {
    MaifsNet    n = maifs_net_default();
    WeightsFile w;
    *out = (MaifsLoaded){.w = NULL};
    if (strcmp(what, "none") == 0) return ERR_OK;
    TRY(embedded_weights_load(what, "maifs", "cluster", maifs_weights_facts(a), a, &w));
    if (w.params.n != maifs_net_params(&n))
        return err_set(ERR_INVALID,
                       "weights of maifs %s: %zu numbers, its network has %zu; train with "
                       "'cotenant cluster train'",
                       what, w.params.n, maifs_net_params(&n));
    out->w = w.params.at;
    return ERR_OK;
}

Err maifs_stance_load(const char *what, Arena *a, MaifsLoaded *out) {
    WeightsFile w;
    out->stance = NULL;
    if (strcmp(what, "none") == 0) return ERR_OK;
    TRY(embedded_weights_load(what, "stance", "cluster", STANCE_FACTS, a, &w));
    if (w.params.n != STANCE_PARAMS)
        return err_set(ERR_INVALID, "weights of stances %s: %zu numbers, their network has %d",
                       what, w.params.n, STANCE_PARAMS);
    out->stance = w.params.at;
    return ERR_OK;
}
