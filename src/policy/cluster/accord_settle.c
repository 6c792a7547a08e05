// Claims by descending score: a job is granted to those who score best until it has what it needs.
// A job that does not get enough is granted to nobody. Losers bid again for what is left.
#include <string.h>

#include "policy/cluster/accord_int.h"
#include "policy/cluster/keys.h"

static uint32_t wish_of(const Accord *a, uint32_t i) {
    uint32_t best = ACCORD_NONE;
    float    score = a->rest[i];
    for (uint32_t e = a->first[i]; e < a->first[i + 1]; e++)
        if (a->score[e] > score && !a->closed[a->job[e]] && !a->vain[e]) {
            best = e;
            score = a->score[e];
        }
    return best;
}

static uint32_t ask_all(Accord *a) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < a->n; i++) {
        if (a->claim[i] != ACCORD_NONE) continue;
        a->wish[i] = wish_of(a, i);
        if (a->wish[i] != ACCORD_NONE) a->keys[n++] = key_falling(a->score[a->wish[i]], i);
    }
    keys_sort(a->keys, n);
    return n;
}

// The jobs that these claim, all open until now.
static void grant(Accord *a, uint32_t n) {
    memset(a->got, 0, a->p->jobs * sizeof *a->got);
    memset(a->worth, 0, a->p->jobs * sizeof *a->worth);
    for (uint32_t x = 0; x < n; x++) {
        uint32_t i = key_tie(a->keys[x]), e = a->wish[i], k = a->job[e];
        if (a->got[k] >= a->p->need[k]) continue;
        a->claim[i] = e;
        a->got[k] += a->give[e];
        a->worth[k] += (double)a->gain[e];
    }
    for (uint32_t x = n; x > 0; x--) {  // the last first: what the others made needless
        uint32_t i = key_tie(a->keys[x - 1]), e = a->claim[i];
        if (e == ACCORD_NONE || a->got[a->job[e]] < a->give[e] + (uint32_t)accord_need(a, e))
            continue;
        a->got[a->job[e]] -= a->give[e];
        a->worth[a->job[e]] -= (double)a->gain[e];
        a->claim[i] = ACCORD_NONE;
    }
}

// Jobs without enough, and those that are a loss in all, are nobody's.
static void void_rest(Accord *a, uint32_t n) {
    for (uint32_t x = 0; x < n; x++) {
        uint32_t i = key_tie(a->keys[x]), e = a->wish[i], k = a->job[e];
        bool     enough = a->got[k] >= a->p->need[k];
        if (enough && (a->worth[k] > 0 || a->p->rank > 0)) {
            a->closed[k] = true;
        } else {
            a->vain[e] = true;
            a->claim[i] = ACCORD_NONE;
        }
    }
}

void accord_arbitrate(Accord *a, uint32_t rebids) {
    memset(a->claim, 0xff, a->n * sizeof *a->claim);
    memset(a->closed, 0, a->p->jobs * sizeof *a->closed);
    memset(a->vain, 0, a->first[a->n] * sizeof *a->vain);
    for (uint32_t round = 0; round <= rebids; round++) {
        uint32_t n = ask_all(a);
        if (n == 0) return;
        grant(a, n);
        void_rest(a, n);
    }
}
