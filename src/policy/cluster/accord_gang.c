// Gangs made to measure. The auction of what single claims serve tells what every agent's time is
// worth, and every job; a gang of agents is worth what they gain by it beyond that. The one worth
// most is made first; the agents that are left hold an auction of their own.
#include <math.h>
#include <string.h>

#include "policy/cluster/accord_int.h"

static double net_of(const Accord *a, uint32_t g) {
    return (double)a->gain[a->gang_entry[g]] - a->profit[a->gang_agent[g]];
}

// The free one who gives most for a unit that is still needed; a place in the job's list.
static uint32_t next_of(const Accord *a, uint32_t k, uint32_t left, const bool *in) {
    uint32_t best = ACCORD_NONE;
    double   most = -INFINITY;
    for (uint32_t g = a->gang_first[k]; g < a->gang_first[k + 1]; g++) {
        uint32_t i = a->gang_agent[g], e = a->gang_entry[g];
        if (a->taken[i] || in[g]) continue;
        uint32_t units = a->give[e] < left ? a->give[e] : left;
        double   each = net_of(a, g) / units;
        if (each > most) {
            most = each;
            best = g;
        }
    }
    return best;
}

// Leaves out the ones that cost most among those who are not needed.
static uint32_t thin(const Accord *a, uint32_t *pick, uint32_t n, uint32_t spare, bool *in) {
    for (;;) {
        uint32_t worst = ACCORD_NONE;
        double   least = INFINITY;
        for (uint32_t x = 0; x < n; x++) {
            uint32_t e = a->gang_entry[pick[x]];
            if (a->give[e] > spare || net_of(a, pick[x]) >= least) continue;
            least = net_of(a, pick[x]);
            worst = x;
        }
        if (worst == ACCORD_NONE) return n;
        spare -= a->give[a->gang_entry[pick[worst]]];
        in[pick[worst]] = false;
        memmove(pick + worst, pick + worst + 1, (n - worst - 1) * sizeof *pick);
        n--;
    }
}

// Whether `in` for the member at x leaves enough, and nobody needless.
static bool may_swap(const Accord *a, const uint32_t *pick, uint32_t n, uint32_t x, uint32_t in) {
    uint32_t got = a->give[a->gang_entry[in]], least = got,
             need = accord_need(a, a->gang_entry[in]);
    for (uint32_t y = 0; y < n; y++) {
        uint32_t give = a->give[a->gang_entry[pick[y]]];
        if (y == x) continue;
        got += give;
        least = give < least ? give : least;
    }
    return got >= need && got - least < need;
}

// Members for others who are worth more, one by one.
static void swap(const Accord *a, uint32_t k, uint32_t *pick, uint32_t n, bool *in) {
    for (uint32_t x = 0; x < n; x++)
        for (uint32_t g = a->gang_first[k]; g < a->gang_first[k + 1]; g++) {
            if (in[g] || a->taken[a->gang_agent[g]] || net_of(a, g) <= net_of(a, pick[x])) continue;
            if (!may_swap(a, pick, n, x, g)) continue;
            in[pick[x]] = false;
            in[g] = true;
            pick[x] = g;
        }
}

// The gang for a job; what it is worth beyond what agents and job bring elsewhere, or -INFINITY.
static double gang_of(Accord *a, uint32_t k, uint32_t *pick, uint32_t *n) {
    uint32_t need = a->p->need[k], got = 0;
    double   worth = 0 - a->auction.price[k];
    bool    *in = a->vain;  // by place
    *n = 0;
    memset(in + a->gang_first[k], 0, a->gang_first[k + 1] - a->gang_first[k]);
    while (got < need) {
        uint32_t g = next_of(a, k, need - got, in);
        if (g == ACCORD_NONE) return -INFINITY;
        in[g] = true;
        pick[(*n)++] = g;
        got += a->give[a->gang_entry[g]];
    }
    *n = thin(a, pick, *n, got - need, in);
    swap(a, k, pick, *n, in);
    for (uint32_t x = 0; x < *n; x++) worth += net_of(a, pick[x]);
    return worth;
}

// What a gang is worth only falls while others take agents, so an old figure is a bound: jobs are
// looked at again only while their bound is the largest.
static bool make_best(Accord *a, double *bound) {
    for (;;) {
        uint32_t best = 0, n;
        for (uint32_t k = 1; k < a->p->jobs; k++)
            if (bound[k] > bound[best]) best = k;
        if (!(bound[best] > 0)) return false;
        double worth = gang_of(a, best, a->pick, &n);
        bool   stands = worth >= bound[best];
        bound[best] = stands ? -INFINITY : worth;
        if (!stands) continue;
        for (uint32_t x = 0; x < n; x++) {
            uint32_t i = a->gang_agent[a->pick[x]];
            a->claim[i] = a->gang_entry[a->pick[x]];
            a->taken[i] = true;
        }
        a->closed[best] = true;
        return true;
    }
}

void accord_gangs(Accord *a) {
    Market   m = {a->n, a->p->jobs, a->single_first, a->single_job, a->single_gain};
    double  *bound = a->worth;
    uint32_t n;
    memset(a->claim, 0xff, a->n * sizeof *a->claim);
    memset(a->taken, 0, a->n * sizeof *a->taken);
    memset(a->closed, 0, a->p->jobs * sizeof *a->closed);
    for (uint32_t i = 0; i < a->n; i++) a->profit[i] = auction_profit(&a->auction, &m, i);
    for (uint32_t k = 0; k < a->p->jobs; k++)
        bound[k] = a->gang_first[k] < a->gang_first[k + 1] ? gang_of(a, k, a->pick, &n) : -INFINITY;
    while (make_best(a, bound)) {
    }
    for (uint32_t k = 0; k < a->p->jobs; k++) a->auction.price[k] = a->closed[k] ? INFINITY : 0;
    auction_run(&a->auction, &m, a->taken, (double)a->rules.step);
    for (uint32_t i = 0; i < a->n; i++)
        if (a->auction.won[i] != AUCTION_NONE) a->claim[i] = a->single_entry[a->auction.won[i]];
}
