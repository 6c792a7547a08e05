#include "policy/chip/oracle_search.h"

#include <string.h>

#include "policy/chip/relmas_price.h"

enum { SEGMENT = 24 };  // requests that are changed, and judged, together

void oracle_search_carve(OracleSearch *s, const ChipSetup *setup, Carve *from) {
    const ChipFuture *f = setup->future;
    *s = (OracleSearch){.setup = setup, .rng = setup->rng};
    oracle_admit_carve(&s->admit, f->requests, f->n, from);
    s->fates = carve(from, uint8_t, f->n);
    s->in_time = carve(from, uint8_t, f->n);
    s->best_fates = carve(from, uint8_t, f->n);
    s->best_in_time = carve(from, uint8_t, f->n);
}

uint32_t oracle_search_rehearse(OracleSearch *s, const ChipPolicy *p, const void *settings) {
    const ChipFuture *f = s->setup->future;
    uint32_t          met = 0;
    f->rehearse(f->engine, p, settings, s->in_time);
    for (uint32_t i = f->skip; i < f->n; i++) met += s->in_time[i];
    return met;
}

// Rehearses what fates say. True when that is better than all before.
static bool try_fates(OracleSearch *s, OraclePlan plan) {
    if (s->left == 0) return false;
    s->left--;
    plan.fates = s->fates;
    uint32_t met = oracle_search_rehearse(s, &oracle_rank, &plan);
    if (met <= s->best && s->plan.fates != NULL) return false;
    s->best = met;
    s->plan = plan;
    s->plan.fates = s->best_fates;
    memcpy(s->best_fates, s->fates, s->admit.n);
    memcpy(s->best_in_time, s->in_time, s->admit.n);
    return true;
}

// The work of a network when every layer runs where it takes least of the package.
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

static void weigh(OracleSearch *s) {
    float       by_tenant[CHIP_TENANTS];
    RelmasPrice price = relmas_price_find(s->setup);
    for (uint32_t i = 0; i < s->setup->n_tenants; i++)
        by_tenant[i] = work_of(s->setup->tenants[i].model, &price);
    for (uint32_t i = 0; i < s->admit.n; i++)
        s->admit.work[i] = by_tenant[s->admit.requests[i].tenant];
}

// All are to be in time, and those that cannot be any more are given up on the way.
static void try_all(OracleSearch *s) {
    static const OraclePlan plans[] = {
        {.ease = 1.0, .patience = 1.5, .speed = 0.3, .price = 0.4},
        {.ease = 1.5, .patience = 1.5, .speed = 0.3, .price = 0.4},
        {.ease = 2.0, .patience = 1.6, .speed = 0.3, .price = 0.8, .size = 1.0},
    };
    memset(s->fates, ORACLE_KEEP, s->admit.n);
    for (uint32_t i = 0; i < sizeof plans / sizeof *plans; i++) try_fates(s, plans[i]);
}

// Some are given up beforehand: as many as must be if the package's work can be packed so well.
static void try_fewer(OracleSearch *s) {
    static const double speeds[] = {0.95, 0.85, 1.0, 0.75};
    OraclePlan          plan = s->plan;
    plan.ease = 1.0;
    for (uint32_t i = 0; i < sizeof speeds / sizeof *speeds; i++) {
        oracle_admit(&s->admit, speeds[i]);
        for (uint32_t r = 0; r < s->admit.n; r++)
            s->fates[r] = s->admit.lost[r] ? ORACLE_SPARE : ORACLE_KEEP;
        try_fates(s, plan);
    }
}

// One number of the plan a little less or more; where it helps, it stays.
static void nudge(OracleSearch *s, size_t offset) {
    static const double factors[] = {0.75, 1.3};
    for (uint32_t i = 0; i < sizeof factors / sizeof *factors; i++) {
        OraclePlan plan = s->plan;
        double    *x = (double *)((char *)&plan + offset);
        *x *= factors[i];
        memcpy(s->fates, s->best_fates, s->admit.n);
        if (*x > 0 && try_fates(s, plan)) return;
    }
}

static void settle(OracleSearch *s, uint32_t first, uint32_t end) {
    for (uint32_t r = first; r < end; r++)
        s->fates[r] = s->best_in_time[r] ? ORACLE_KEEP : ORACLE_SPARE;
}

// One that was not in time is to be: of a few that chance names, the one with the least work.
static void add_one(OracleSearch *s, uint32_t first, uint32_t end) {
    enum { TRIES = 6 };
    uint32_t best = end;
    for (uint32_t i = 0; i < TRIES; i++) {
        uint32_t r = first + (uint32_t)rng_below(&s->rng, end - first);
        if (s->fates[r] == ORACLE_KEEP) continue;
        if (best == end || s->admit.work[r] < s->admit.work[best]) best = r;
    }
    if (best < end) s->fates[best] = ORACLE_KEEP;
}

static bool gained(const OracleSearch *s, uint32_t first, uint32_t end) {
    uint32_t now = 0, before = 0;
    for (uint32_t i = first; i < end && i < s->admit.n; i++) {
        now += s->in_time[i];
        before += s->best_in_time[i];
    }
    return now > before;
}

// Adds one in every other segment; then in those alone where that was of use, to them and to what
// follows.
static void add_some(OracleSearch *s) {
    uint32_t n = s->admit.n, shift = (uint32_t)rng_below(&s->rng, 2 * SEGMENT);
    settle(s, 0, n);
    for (uint32_t first = shift; first + SEGMENT <= n; first += 2 * SEGMENT)
        add_one(s, first, first + SEGMENT);
    if (s->left == 0 || try_fates(s, s->plan)) return;
    for (uint32_t first = shift; first + SEGMENT <= n; first += 2 * SEGMENT)
        if (!gained(s, first, first + 2 * SEGMENT)) settle(s, first, first + SEGMENT);
    try_fates(s, s->plan);
}

void oracle_search_run(OracleSearch *s, uint32_t rehearsals) {
    static const size_t knobs[] = {offsetof(OraclePlan, patience), offsetof(OraclePlan, speed),
                                   offsetof(OraclePlan, price), offsetof(OraclePlan, size),
                                   offsetof(OraclePlan, ease)};
    const uint32_t      n_knobs = sizeof knobs / sizeof *knobs;
    s->left = rehearsals;
    weigh(s);
    try_all(s);
    try_fewer(s);
    for (uint32_t i = 0; s->left > 0; i++) {
        if (i < n_knobs) nudge(s, knobs[i]);
        add_some(s);
    }
}
