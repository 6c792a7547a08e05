#include "policy/cluster/maifs/coordination.h"

#include <math.h>
#include <string.h>

#include "base/err.h"
#include "policy/cluster/maifs/coord_int.h"

static void carve_entries(Coordination *a, uint32_t agents, uint32_t jobs, Carve *from) {
    size_t entries = (size_t)agents * jobs;
    a->agent_ids = carve(from, uint32_t, agents);
    a->first = carve(from, uint32_t, agents + 1);
    a->job = carve(from, uint16_t, entries);
    a->give = carve(from, uint16_t, entries);
    a->gain = carve(from, float, entries);
    a->score = carve(from, float, entries);
    a->incomplete = carve(from, bool, entries);
    a->factors = carve(from, float, entries * 2 * COORD_RANK);
    a->idle_score = carve(from, float, agents);
    a->reach = carve(from, float, agents);
    a->gang_first = carve(from, uint32_t, jobs + 1);
    a->gang_agent = carve(from, uint32_t, entries);
    a->gang_entry = carve(from, uint32_t, entries);
    a->single_first = carve(from, uint32_t, agents + 1);
    a->single_entry = carve(from, uint32_t, entries);
    a->single_job = carve(from, uint16_t, entries);
    a->single_gain = carve(from, float, entries);
}

static size_t largest(size_t a, size_t b) { return a > b ? a : b; }

// Without messages there is no graph.
static void carve_graph(Coordination *a, size_t agents, size_t jobs, Carve *from) {
    if (!coord_has(a, COORD_MESSAGES)) agents = 0;
    size_t choices = agents * CHOICES, near = agents * a->params.degree;
    a->n_choices = carve(from, uint32_t, agents);
    a->choice = carve(from, uint32_t, choices);
    a->sum = carve(from, float, choices);
    a->chance = carve(from, float, choices);
    a->rival_first = carve(from, uint32_t, jobs + 1);
    a->rival = carve(from, uint32_t, choices);
    a->n_near = carve(from, uint32_t, agents);
    a->near = carve(from, uint32_t, near);
    a->edges = carve(from, CoordEdge, near / 2);
    a->arc_first = carve(from, uint32_t, agents + 1);
    a->arcs = carve(from, CoordArc, near);
    a->message = carve(from, float, near *CHOICES);
    a->match = carve(from, CoordMatch, near * CHOICES);
    a->at_job = carve(from, uint8_t, jobs);
}

static void carve_claims(Coordination *a, uint32_t agents, uint32_t jobs, Carve *from) {
    auction_carve(&a->auction, agents, jobs, from);
    a->profit = carve(from, double, agents);
    a->taken = carve(from, bool, agents);
    a->bid = carve(from, uint32_t, agents);
    a->claim = carve(from, uint32_t, agents);
    a->best = carve(from, uint32_t, agents);
    a->pick = carve(from, uint32_t, agents);
    a->got = carve(from, uint32_t, jobs);
    a->worth = carve(from, double, jobs);
    a->closed = carve(from, bool, jobs);
}

Coordination *coord_carve(uint32_t agents, uint32_t jobs, const CoordParams *params, Carve *from) {
    CHECK(jobs <= COORD_JOBS);
    Coordination *at = carve(from, Coordination, 1), made = {.params = *params};
    made.most_agents = agents;
    made.most_jobs = jobs;
    made.rng = (Rng){params->seed};
    made.keys = carve(from, uint64_t, 2 * largest(agents * (size_t)CHOICES, jobs));
    carve_entries(&made, agents, jobs, from);
    carve_graph(&made, agents, jobs, from);
    carve_claims(&made, agents, jobs, from);
    if (at != NULL) *at = made;
    return at;
}

static float finite_or(float x, float other) { return isfinite(x) ? x : other; }

// Not finite: impossible.
static float gain_of(const CoordProblem *p, uint32_t agent, uint32_t job) {
    size_t at = (size_t)agent * p->jobs + job;
    if (p->give[at] == 0 || p->need[job] == 0) return -INFINITY;
    return p->payoff[at] - finite_or(p->idle[agent], 0);
}

// Fast check for a possible claim: most servers are full most of the time.
static bool any_number(const float *payoff, uint32_t n) {
    float    most[8] = {-INFINITY, -INFINITY, -INFINITY, -INFINITY,
                        -INFINITY, -INFINITY, -INFINITY, -INFINITY};
    uint32_t k = 0;
    for (; k + 8 <= n; k += 8)
        for (uint32_t l = 0; l < 8; l++)
            most[l] = payoff[k + l] > most[l] ? payoff[k + l] : most[l];
    for (; k < n; k++) most[0] = payoff[k] > most[0] ? payoff[k] : most[0];
    for (uint32_t l = 0; l < 8; l++)
        if (most[l] > -INFINITY) return true;
    return false;
}

// Agents with a possible claim, largest gain first; sums the units on offer for each job.
static void find_agents(Coordination *a) {
    const CoordProblem *p = a->p;
    uint64_t           *keys = a->keys;
    uint32_t            n = 0;
    float               scale = 0;
    memset(a->got, 0, p->jobs * sizeof *a->got);
    for (uint32_t i = 0; i < p->agents; i++) {
        float best = -INFINITY;
        if (!any_number(p->payoff + (size_t)i * p->jobs, p->jobs)) continue;
        for (uint32_t k = 0; k < p->jobs; k++) {
            float gain = gain_of(p, i, k);
            if (!isfinite(gain)) continue;
            best = gain > best ? gain : best;
            a->got[k] += p->give[(size_t)i * p->jobs + k];
        }
        scale = best > scale ? best : scale;
        if (isfinite(best)) keys[n++] = packed_key_descending(best, i);
    }
    packed_keys_sort(keys, n);
    for (uint32_t i = 0; i < n; i++) a->agent_ids[i] = packed_key_tie(keys[i]);
    a->n = scale > 0 ? n : 0;
    a->scale = scale;
}

static void copy_factors(Coordination *a, uint32_t i, uint32_t entry, size_t at) {
    const CoordProblem *p = a->p;
    float              *to = a->factors + (size_t)entry * 2 * p->rank;
    for (uint32_t r = 0; r < p->rank; r++) {
        to[r] = finite_or(p->left[at * p->rank + r], 0);
        to[p->rank + r] = finite_or(p->right[at * p->rank + r], 0);
        a->reach[i] = fmaxf(a->reach[i], fmaxf(fabsf(to[r]), fabsf(to[p->rank + r])));
    }
}

// An agent's entries. A negative gain is useful only in a gang or with pair payoffs.
static void find_entries(Coordination *a, uint32_t i, uint32_t from) {
    const CoordProblem *p = a->p;
    uint32_t            id = a->agent_ids[i], n = 0, at = from;
    for (uint32_t k = 0; k < p->jobs; k++) {
        float gain = gain_of(p, id, k) / (float)a->scale;
        bool  alone = p->give[(size_t)id * p->jobs + k] >= p->need[k];
        if (!isfinite(gain) || gain < -1e6f || a->got[k] < p->need[k]) continue;
        if (gain > 0 || !alone || p->rank > 0) a->keys[n++] = packed_key_descending(gain, k);
    }
    packed_keys_sort(a->keys, n);
    a->reach[i] = 0;
    for (uint32_t e = 0; e < n; e++, at++) {
        uint32_t k = packed_key_tie(a->keys[e]);
        a->job[at] = (uint16_t)k;
        a->give[at] = p->give[(size_t)id * p->jobs + k];
        a->gain[at] = gain_of(p, id, k) / (float)a->scale;
        copy_factors(a, i, at, (size_t)id * p->jobs + k);
    }
    a->first[i + 1] = at;
}

// Entries that serve a job alone, by agent; all others by job.
static void split_entries(Coordination *a) {
    uint32_t jobs = a->p->jobs, n = 0;
    memset(a->gang_first, 0, (jobs + 1) * sizeof *a->gang_first);
    for (uint32_t i = 0; i < a->n; i++) {
        a->single_first[i] = n;
        for (uint32_t e = a->first[i]; e < a->first[i + 1]; e++)
            if (a->give[e] < coord_need(a, e)) {
                a->gang_first[a->job[e] + 1]++;
            } else {
                a->single_entry[n] = e;
                a->single_job[n] = a->job[e];
                a->single_gain[n++] = a->gain[e];
            }
    }
    a->single_first[a->n] = n;
    for (uint32_t k = 0; k < jobs; k++) a->gang_first[k + 1] += a->gang_first[k];
    a->n_gangs = a->gang_first[jobs];
    if (a->n_gangs == 0) return;
    memset(a->got, 0, jobs * sizeof *a->got);
    for (uint32_t i = 0; i < a->n; i++)
        for (uint32_t e = a->first[i]; e < a->first[i + 1]; e++)
            if (a->give[e] < coord_need(a, e)) {
                uint32_t at = a->gang_first[a->job[e]] + a->got[a->job[e]]++;
                a->gang_agent[at] = i;
                a->gang_entry[at] = e;
            }
}

static void reset_scores(Coordination *a) {
    memcpy(a->score, a->gain, a->first[a->n] * sizeof *a->score);
    memset(a->idle_score, 0, a->n * sizeof *a->idle_score);
}

static void find_claims(Coordination *a) {
    find_agents(a);
    a->first[0] = 0;
    for (uint32_t i = 0; i < a->n; i++) find_entries(a, i, a->first[i]);
    split_entries(a);
    reset_scores(a);
}

static void keep(Coordination *a, CoordMethod method) {
    double value = coord_value(a);
    if (!(value > a->best_value)) return;
    a->best_value = value;
    a->stats.method = method;
    memcpy(a->best, a->claim, a->n * sizeof *a->best);
}

static void run_auction(Coordination *a) {
    Market m = {a->n, a->p->jobs, a->single_first, a->single_job, a->single_gain};
    memset(a->auction.price, 0, a->p->jobs * sizeof *a->auction.price);
    auction_run(&a->auction, &m, NULL, (double)a->params.step);
    for (uint32_t i = 0; i < a->n; i++)
        a->claim[i] =
            a->auction.won[i] == AUCTION_NONE ? COORD_NONE : a->single_entry[a->auction.won[i]];
    keep(a, COORD_AUCTION);
    if (a->n_gangs == 0) return;
    coord_gangs(a);
    keep(a, COORD_GANGS);
}

static double idle_of(const CoordProblem *p) {
    double sum = 0;
    for (uint32_t i = 0; i < p->agents; i++) sum += (double)finite_or(p->idle[i], 0);
    return sum;
}

static void keep_improved(Coordination *a, void (*improve)(Coordination *a)) {
    memcpy(a->claim, a->best, a->n * sizeof *a->claim);
    improve(a);
    keep(a, a->stats.method);
}

// The best of several results; `claim` holds that of plain arbitration.
static void decide_centrally(Coordination *a) {
    keep(a, COORD_ARBITRATED);
    if (coord_has(a, COORD_MESSAGES)) {
        coord_pass_messages(a);
        coord_arbitrate(a, a->params.parts);
        keep(a, COORD_REBID);
        reset_scores(a);
    }
    coord_arbitrate(a, a->params.parts);
    keep(a, COORD_REBID);
    run_auction(a);
    if (a->p->rank > 0 || a->n_edges > 0) keep_improved(a, coord_improve);
    if (a->p->rank > 0) keep_improved(a, coord_reprice);
}

// One result, whatever it is worth.
static void decide_alone(Coordination *a) {
    if (coord_has(a, COORD_MESSAGES)) coord_pass_messages(a);
    coord_arbitrate(a, a->params.parts);
    a->best_value = coord_value(a);
    a->stats.method = coord_has(a, COORD_REBIDS) ? COORD_REBID : COORD_ARBITRATED;
    memcpy(a->best, a->claim, a->n * sizeof *a->best);
}

void coord_decide(Coordination *a, const CoordProblem *p, uint32_t *claims) {
    CHECK(p->agents <= a->most_agents && p->jobs <= a->most_jobs && p->rank <= COORD_RANK);
    a->p = p;
    a->stats = (CoordStats){0};
    a->best_value = 0;
    a->n_edges = 0;
    find_claims(a);
    if (coord_has(a, COORD_MESSAGES)) coord_graph(a);
    memset(a->best, 0xff, a->n * sizeof *a->best);
    coord_arbitrate(a, 0);
    double plain = coord_value(a);
    if (coord_has(a, COORD_CENTRAL))
        decide_centrally(a);
    else
        decide_alone(a);
    for (uint32_t i = 0; i < p->agents; i++) claims[i] = COORD_NONE;
    for (uint32_t i = 0; i < a->n; i++)
        if (a->best[i] != COORD_NONE) claims[a->agent_ids[i]] = a->job[a->best[i]];
    a->stats.agents = a->n;
    a->stats.edges = a->n_edges;
    a->stats.value = idle_of(p) + a->scale * a->best_value;
    a->stats.baseline = idle_of(p) + a->scale * plain;
}

bool coord_parts_of(const char *word, uint32_t *parts) {
    static const struct Kind {
        const char *word;
        uint32_t    parts;
    } kinds[] = {
#define X(word, parts, help) {#word, parts},
#include "policy/cluster/maifs/coord_kind.def"
#undef X
    };
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        if (strcmp(kinds[k].word, word) != 0) continue;
        *parts = kinds[k].parts;
        return true;
    }
    return false;
}

const char *coord_words(void) {
#define X(word, parts, help) ", " #word
    static const char words[] =
#include "policy/cluster/maifs/coord_kind.def"
        ;
#undef X
    return words + 2;
}

const CoordStats *coord_stats(const Coordination *a) { return &a->stats; }
