// Last touches along the graph: partners exchange what they claim, one of them perhaps nothing, and
// agents turn to open jobs, as long as all together are better off and every job stays served.
#include <string.h>

#include "policy/cluster/accord_int.h"

enum { SWEEPS = 4 };

static uint32_t entry_of(const Accord *a, uint32_t i, uint32_t job) {
    for (uint32_t e = a->first[i]; e < a->first[i + 1]; e++)
        if (a->job[e] == job) return e;
    return ACCORD_NONE;
}

// Of an agent's claim, with what pairs are worth but the one with `but`.
static double worth_of(const Accord *a, uint32_t i, uint32_t entry, uint32_t but) {
    if (entry == ACCORD_NONE) return 0;
    double sum = (double)a->gain[entry];
    for (uint32_t arc = a->arc_first[i]; arc < a->arc_first[i + 1] && a->p->rank > 0; arc++) {
        uint32_t j = a->arcs[arc].to, its = a->claim[j];
        if (j != but && its != ACCORD_NONE) sum += accord_pair(a, i, a->job[entry], j, a->job[its]);
    }
    return sum;
}

// Whether the job has enough, and nobody needless, when its claim `out` becomes `in`.
static bool stays_served(const Accord *a, uint32_t out, uint32_t in) {
    uint32_t need = accord_need(a, out), got = a->give[in], least = got;
    if (a->give[out] >= need) return got >= need;
    for (uint32_t i = 0; i < a->n; i++) {
        uint32_t e = a->claim[i];
        if (e == ACCORD_NONE || e == out || a->job[e] != a->job[out]) continue;
        got += a->give[e];
        least = a->give[e] < least ? a->give[e] : least;
    }
    return got >= need && got - least < need;
}

// The entry of `i` that takes the place of another's claim.
static bool in_place(const Accord *a, uint32_t i, uint32_t claim, uint32_t *entry) {
    *entry = ACCORD_NONE;
    if (claim == ACCORD_NONE) return true;
    *entry = entry_of(a, i, a->job[claim]);
    return *entry != ACCORD_NONE && stays_served(a, claim, *entry);
}

static bool exchange(Accord *a, uint32_t i, uint32_t j) {
    uint32_t mine = a->claim[i], its = a->claim[j], x, y;
    if (mine == its) return false;  // nothing
    if (mine != ACCORD_NONE && its != ACCORD_NONE && a->job[mine] == a->job[its]) return false;
    if (!in_place(a, i, its, &x) || !in_place(a, j, mine, &y)) return false;
    double now = worth_of(a, i, mine, j) + worth_of(a, j, its, i);
    double then = worth_of(a, i, x, j) + worth_of(a, j, y, i);
    if (mine != ACCORD_NONE && its != ACCORD_NONE && a->p->rank > 0) {
        now += accord_pair(a, i, a->job[mine], j, a->job[its]);
        then += accord_pair(a, i, a->job[x], j, a->job[y]);
    }
    if (!(then > now + 1e-9)) return false;
    a->claim[i] = x;
    a->claim[j] = y;
    return true;
}

// One who is in no gang turns to the open job, or to none, that is worth most.
static bool turn(Accord *a, uint32_t i) {
    uint32_t old = a->claim[i], best = old;
    if (old != ACCORD_NONE && a->give[old] < accord_need(a, old)) return false;
    double most = worth_of(a, i, old, ACCORD_NONE) + 1e-9;
    if (most < 0) {
        most = 0;
        best = ACCORD_NONE;
    }
    for (uint32_t e = a->first[i]; e < a->first[i + 1]; e++) {
        if (a->closed[a->job[e]] || a->give[e] < accord_need(a, e)) continue;
        if (a->p->rank == 0 && !((double)a->gain[e] > most)) break;  // none is worth more
        double worth = worth_of(a, i, e, ACCORD_NONE);
        if (!(worth > most)) continue;
        most = worth;
        best = e;
    }
    if (best == old) return false;
    if (old != ACCORD_NONE) a->closed[a->job[old]] = false;
    if (best != ACCORD_NONE) a->closed[a->job[best]] = true;
    a->claim[i] = best;
    return true;
}

void accord_polish(Accord *a) {
    memset(a->closed, 0, a->p->jobs * sizeof *a->closed);
    for (uint32_t i = 0; i < a->n; i++)
        if (a->claim[i] != ACCORD_NONE) a->closed[a->job[a->claim[i]]] = true;
    bool changed = true;
    for (uint32_t sweep = 0; sweep < SWEEPS && changed; sweep++) {
        changed = false;
        for (uint32_t e = 0; e < a->n_edges; e++)
            changed |= exchange(a, a->edges[e].a, a->edges[e].b);
        for (uint32_t i = 0; i < a->n; i++) changed |= turn(a, i);
    }
}
