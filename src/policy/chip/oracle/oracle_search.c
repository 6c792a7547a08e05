// Steps are those of oracle.c.
#include "policy/chip/oracle/oracle_int.h"

#include <string.h>

#include "policy/chip/relmas/relmas_price.h"

enum { PASSES = 8 };

void oracle_admit_carve(OracleAdmit *a, const ChipRequest *requests, uint32_t n, Carve *from) {
    *a = (OracleAdmit){.requests = requests, .n = n};
    a->work = carve(from, float, n);
    a->left = carve(from, float, n);
    a->pending = carve(from, uint32_t, n);
    a->rejected = carve(from, uint8_t, n);
}

static void remove_at(OracleAdmit *a, uint32_t at, uint32_t *n) {
    memmove(a->pending + at, a->pending + at + 1, (--*n - at) * sizeof *a->pending);
}

static void insert(OracleAdmit *a, uint32_t request, uint32_t *n) {
    uint32_t at = (*n)++;
    for (; at > 0 && a->requests[a->pending[at - 1]].deadline > a->requests[request].deadline; at--)
        a->pending[at] = a->pending[at - 1];
    a->pending[at] = request;
    a->left[request] = a->work[request];
}

static void serve(OracleAdmit *a, double amount, uint32_t *n) {
    uint32_t done = 0;
    for (; done < *n; done++) {
        float *left = &a->left[a->pending[done]];
        if ((double)*left > amount) {
            *left -= (float)amount;
            break;
        }
        amount -= (double)*left;
    }
    *n -= done;
    memmove(a->pending, a->pending + done, *n * sizeof *a->pending);
}

// The request with the most work left among the first end + 1.
static uint32_t largest(const OracleAdmit *a, uint32_t end) {
    uint32_t most = 0;
    for (uint32_t i = 1; i <= end; i++)
        if (a->left[a->pending[i]] > a->left[a->pending[most]]) most = i;
    return most;
}

// True if a rejected request had been started.
static bool reject_late(OracleAdmit *a, TimeNs now, double speed, uint32_t *n) {
    double sum = 0;
    bool   wasted = false;
    for (uint32_t i = 0; i < *n;) {
        sum += (double)a->left[a->pending[i]];
        if (sum <= speed * (double)(a->requests[a->pending[i]].deadline - now)) {
            i++;
            continue;
        }
        uint32_t at = largest(a, i), request = a->pending[at];
        sum -= (double)a->left[request];
        wasted = wasted || a->left[request] < a->work[request];
        a->rejected[request] = 1;
        remove_at(a, at, n);
    }
    return wasted;
}

static bool pass(OracleAdmit *a, double speed) {
    TimeNs   now = 0;
    uint32_t n = 0;
    bool     wasted = false;
    for (uint32_t i = 0; i < a->n; i++) {
        if (a->rejected[i]) continue;
        serve(a, speed * (double)(a->requests[i].arrival - now), &n);
        now = a->requests[i].arrival;
        insert(a, i, &n);
        wasted = reject_late(a, now, speed, &n) || wasted;
    }
    return wasted;
}

void oracle_admit(OracleAdmit *a, double speed) {
    memset(a->rejected, 0, a->n);
    for (uint32_t i = 0; i < PASSES; i++)
        if (!pass(a, speed)) break;
}

enum { SEGMENT = 24 };  // requests of a segment of the trace

void oracle_search_carve(OracleSearch *s, const ChipSetup *setup, Carve *from) {
    const ChipFuture *f = setup->future;
    *s = (OracleSearch){.setup = setup, .rng = setup->rng};
    oracle_admit_carve(&s->admit, f->requests, f->n, from);
    s->verdicts = carve(from, uint8_t, f->n);
    s->in_time = carve(from, uint8_t, f->n);
    s->best_verdicts = carve(from, uint8_t, f->n);
    s->best_in_time = carve(from, uint8_t, f->n);
}

const ChipPolicy *oracle_candidate_policy(const OracleCandidate *c) {
    return c->is_list ? &oracle_list_scheduler : oracle_filter(c->filter.inner);
}

const void *oracle_candidate_settings(const OracleCandidate *c) {
    return c->is_list ? (const void *)&c->list : &c->filter;
}

static void set_verdicts(OracleCandidate *c, const uint8_t *verdicts) {
    c->list.verdicts = verdicts;
    c->filter.verdicts = verdicts;
}

static uint32_t simulate(OracleSearch *s, OracleCandidate *candidate) {
    const ChipFuture *f = s->setup->future;
    uint32_t          met = 0;
    set_verdicts(candidate, s->verdicts);
    f->simulate_with(f->engine, oracle_candidate_policy(candidate),
                     oracle_candidate_settings(candidate), s->in_time);
    for (uint32_t i = f->skip; i < f->n; i++) met += s->in_time[i];
    return met;
}

// Simulates a candidate with s->verdicts. True if it is better than all before.
static bool try_candidate(OracleSearch *s, OracleCandidate candidate) {
    if (s->left == 0) return false;
    s->left--;
    uint32_t met = simulate(s, &candidate);
    if (s->any && met <= s->best) return false;
    s->any = true;
    s->best = met;
    s->candidate = candidate;
    set_verdicts(&s->candidate, s->best_verdicts);
    memcpy(s->best_verdicts, s->verdicts, s->admit.n);
    memcpy(s->best_in_time, s->in_time, s->admit.n);
    return true;
}

// The work of a network with every layer on its cheapest kind.
static float work_of(const ChipModel *m, const RelmasPrice *p) {
    float sum = 0;
    for (uint32_t l = 0; l < m->n_layers; l++) {
        const ChipCost *c = chip_cost(m, l, 0);
        uint32_t        fastest = m->fastest[l];
        float           least = relmas_price_work(p, &c[fastest], fastest);
        for (uint32_t k = 0; k < m->n_kinds; k++) {
            float work = relmas_price_work(p, &c[k], k);
            if (work < least) least = work;
        }
        sum += least;
    }
    return sum;
}

static void set_work(OracleSearch *s) {
    float       by_tenant[CHIP_TENANTS] = {0};
    RelmasPrice price = relmas_price_find(s->setup);
    for (uint32_t i = 0; i < s->setup->n_tenants; i++)
        by_tenant[i] = work_of(s->setup->tenants[i].model, &price);
    for (uint32_t i = 0; i < s->admit.n; i++)
        s->admit.work[i] = by_tenant[s->admit.requests[i].tenant];
}

static void try_online(OracleSearch *s, const OracleFilter *online, uint32_t n) {
    memset(s->verdicts, ORACLE_REQUIRED, s->admit.n);
    for (uint32_t i = 0; i < n; i++) {
        s->left++;
        try_candidate(s, (OracleCandidate){.filter = online[i]});
    }
}

// Step 2.
static OracleListParams try_lists(OracleSearch *s) {
    static const OracleListParams lists[] = {
        {.safety_factor = 1.0, .patience = 1.5, .speed = 0.3, .price = 0.4},
        {.safety_factor = 1.5, .patience = 1.5, .speed = 0.3, .price = 0.4},
        {.safety_factor = 2.0, .patience = 1.6, .speed = 0.3, .price = 0.8, .size = 1.0},
    };
    OracleListParams best = lists[0];
    uint32_t         most = 0;
    memset(s->verdicts, ORACLE_REQUIRED, s->admit.n);
    for (uint32_t i = 0; i < sizeof lists / sizeof *lists && s->left > 0; i++) {
        uint32_t met = 0;
        try_candidate(s, (OracleCandidate){.is_list = true, .list = lists[i]});
        for (uint32_t r = 0; r < s->admit.n; r++) met += s->in_time[r];
        if (met <= most) continue;
        most = met;
        best = lists[i];
    }
    return best;
}

// Step 3.
static void try_fewer(OracleSearch *s, OracleListParams list) {
    static const double speeds[] = {0.95, 0.85, 1.0, 0.75};
    list.safety_factor = 1.0;
    for (uint32_t i = 0; i < sizeof speeds / sizeof *speeds; i++) {
        oracle_admit(&s->admit, speeds[i]);
        for (uint32_t r = 0; r < s->admit.n; r++)
            s->verdicts[r] = s->admit.rejected[r] ? ORACLE_OPTIONAL : ORACLE_REQUIRED;
        try_candidate(s, (OracleCandidate){.is_list = true, .list = list});
    }
}

// Step 4: one parameter of the list scheduler less or more; kept if better.
static void vary(OracleSearch *s, size_t offset) {
    static const double factors[] = {0.75, 1.3};
    for (uint32_t i = 0; i < sizeof factors / sizeof *factors; i++) {
        OracleCandidate candidate = s->candidate;
        double         *x = (double *)((char *)&candidate.list + offset);
        *x *= factors[i];
        memcpy(s->verdicts, s->best_verdicts, s->admit.n);
        if (*x > 0 && try_candidate(s, candidate)) return;
    }
}

static void require_met(OracleSearch *s, uint32_t first, uint32_t end) {
    for (uint32_t r = first; r < end; r++)
        s->verdicts[r] = s->best_in_time[r] ? ORACLE_REQUIRED : ORACLE_OPTIONAL;
}

// Requires one more request: of a few drawn at random the one with the least work.
static void add_one(OracleSearch *s, uint32_t first, uint32_t end) {
    enum { TRIES = 6 };
    uint32_t best = end;
    for (uint32_t i = 0; i < TRIES; i++) {
        uint32_t r = first + (uint32_t)rng_below(&s->rng, end - first);
        if (s->verdicts[r] == ORACLE_REQUIRED) continue;
        if (best == end || s->admit.work[r] < s->admit.work[best]) best = r;
    }
    if (best < end) s->verdicts[best] = ORACLE_REQUIRED;
}

static bool gained(const OracleSearch *s, uint32_t first, uint32_t end) {
    uint32_t now = 0, before = 0;
    for (uint32_t i = first; i < end && i < s->admit.n; i++) {
        now += s->in_time[i];
        before += s->best_in_time[i];
    }
    return now > before;
}

// Step 4: requires one more request in every other segment; then only in those where it helped.
static void add_some(OracleSearch *s) {
    uint32_t n = s->admit.n, shift = (uint32_t)rng_below(&s->rng, 2 * SEGMENT);
    require_met(s, 0, n);
    for (uint32_t first = shift; first + SEGMENT <= n; first += 2 * SEGMENT)
        add_one(s, first, first + SEGMENT);
    if (s->left == 0 || try_candidate(s, s->candidate)) return;
    for (uint32_t first = shift; first + SEGMENT <= n; first += 2 * SEGMENT)
        if (!gained(s, first, first + 2 * SEGMENT)) require_met(s, first, first + SEGMENT);
    try_candidate(s, s->candidate);
}

static void improve(OracleSearch *s) {
    static const size_t params[] = {
        offsetof(OracleListParams, price), offsetof(OracleListParams, speed),
        offsetof(OracleListParams, patience), offsetof(OracleListParams, size),
        offsetof(OracleListParams, safety_factor)};
    const uint32_t n_params = sizeof params / sizeof *params;
    for (uint32_t i = 0; s->left > 0; i++) {
        if (s->candidate.is_list && i < n_params) vary(s, params[i]);
        add_some(s);
    }
}

void oracle_search_run(OracleSearch *s, const OracleFilter *online, uint32_t n,
                       uint32_t simulations) {
    set_work(s);
    try_online(s, online, n);
    s->left = simulations;
    try_fewer(s, try_lists(s));
    improve(s);
}
