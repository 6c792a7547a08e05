#include "policy/cluster/rank.h"

uint64_t rank_all(uint32_t gpus) { return gpus >= 64 ? UINT64_MAX : (UINT64_C(1) << gpus) - 1; }

uint64_t rank_lowest(uint64_t mask, uint32_t n) {
    uint64_t out = 0;
    for (; n > 0; n--) {
        out |= mask & -mask;
        mask &= mask - 1;
    }
    return out;
}

static void line_up(const Inn *h, const Want *wants, Rank *r) {
    r->n_line = 0;
    for (uint32_t i = 0; i < h->n; i++) {
        const Guest *g = &h->at[i];
        const Want  *w = &wants[g->task];
        if (g->fresh || g->gpus == 0) continue;
        RankLine x = {inn_worth(g, w) / (float)w->gpus, (uint8_t)i};
        uint32_t k = r->n_line++;
        for (; k > 0 && r->line[k - 1].density > x.density; k--) r->line[k] = r->line[k - 1];
        r->line[k] = x;
    }
}

void rank_open(Rank *r, const Inn *h, const Want *wants) {
    r->n = h->n;
    r->cores_left = h->cores_milli;
    r->memory_left = h->memory_mib;
    for (uint32_t i = 0; i < h->n; i++) {
        const Guest *g = &h->at[i];
        const Want  *w = &wants[g->task];
        bool         level = w->class != CLUSTER_NONE;
        uint32_t     units = want_units(w, g->gpus);
        r->mask[i] = g->mask;
        r->cores_milli[i] = level ? units * w->rungs[0].cores_milli : g->cores_milli;
        r->memory_mib[i] = level ? units * w->rungs[0].memory_mib : g->memory_mib;
        r->cores_left -= r->cores_milli[i];
        r->memory_left -= r->memory_mib[i];
    }
    line_up(h, wants, r);
}

typedef struct Hunt {  // for room, among the guests of a rank
    const Rank *rank;
    InnLeave    leave;
    int64_t     cores_left, memory_left;  // when those go and the task has come
    uint64_t    all;                      // GPUs
    uint32_t    gpus;
} Hunt;

static void send(Hunt *x, uint32_t guest, bool away) {
    int64_t cores = x->rank->cores_milli[guest], memory = x->rank->memory_mib[guest];
    inn_set_leave(&x->leave, guest, away);
    x->cores_left += away ? cores : -cores;
    x->memory_left += away ? memory : -memory;
}

static uint64_t free_then(const Hunt *x) {
    uint64_t used = 0;
    for (uint32_t i = 0; i < x->rank->n; i++)
        if (!inn_leaves(&x->leave, i)) used |= x->rank->mask[i];
    return x->all & ~used;
}

static bool enough(const Hunt *x) {
    return x->cores_left >= 0 && x->memory_left >= 0 &&
           (uint32_t)__builtin_popcountll(free_then(x)) >= x->gpus;
}

bool rank_victims(const Rank *r, const Inn *h, const Want *w, uint32_t gpus, bool evict,
                  InnLeave *out, uint64_t *mask) {
    uint32_t gone = 0, units = want_units(w, gpus);
    Hunt     x = {.rank = r, .all = rank_all(h->gpus), .gpus = gpus};
    if (gpus > h->gpus || h->n + 1 >= INN_GUESTS || h->full) return false;
    x.cores_left = r->cores_left - (int64_t)units * w->rungs[0].cores_milli;
    x.memory_left = r->memory_left - (int64_t)units * w->rungs[0].memory_mib;
    bool fits = enough(&x);
    if (!fits && (!evict || gpus == 0)) return false;
    while (!fits && gone < r->n_line) {
        send(&x, r->line[gone++].guest, true);
        fits = enough(&x);
    }
    if (!fits) return false;
    for (uint32_t i = gone; i-- > 0;) {
        send(&x, r->line[i].guest, false);
        if (!enough(&x)) send(&x, r->line[i].guest, true);
    }
    *out = x.leave;
    *mask = rank_lowest(free_then(&x), gpus);
    return true;
}
