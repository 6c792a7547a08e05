// Gangs that share the GPUs of another gang, slice by slice.
#include <math.h>

#include "policy/cluster/maifs.h"

static bool alone(const Inn *h, const Guest *x) {
    for (uint32_t g = 0; g < h->n; g++)
        if (h->at[g].task != x->task && (h->at[g].mask & x->mask) != 0) return false;
    return true;
}

// The worth that inns lose when a task gets its lowest rung beside a gang; INFINITY: no room.
static float room_beside(const Maifs *m, uint32_t host, const Want *w) {
    const ClusterTask *t = &m->view->tasks[host];
    float              lost = 0;
    for (uint32_t i = 0; i < t->n_slices; i++) {
        const Inn   *h = &m->inns[t->slices[i].server];
        const Guest *x = inn_guest(h, host);
        InnFill      f;
        if (x == NULL || h->full || h->n + 1 >= INN_GUESTS || !alone(h, x)) return INFINITY;
        inn_fill(h, NULL, m->wants, &f);
        int64_t cores = f.cores_milli - (int64_t)x->gpus * w->rungs[0].cores_milli;
        int64_t memory = f.memory_mib - (int64_t)x->gpus * w->rungs[0].memory_mib;
        if (cores < 0 || memory < 0) return INFINITY;
        lost += (float)(h->worth - inn_fill_worth(&f, cores, memory));
    }
    return lost;
}

static bool beside(const Maifs *m, const Guest *x, uint32_t ask, Offer *out) {
    uint32_t    task = m->asks[ask].task;
    const Want *w = &m->wants[task], *b = &m->wants[x->task];
    if (w->gpus != b->gpus || w->class == CLUSTER_NONE || b->class == CLUSTER_NONE ||
        (w->types != 0 && w->types != b->types))
        return false;
    float mine = (float)profile_pair(m->setup->profiles, w->class, b->class);
    float its = (float)profile_pair(m->setup->profiles, b->class, w->class);
    float rate =
        w->rungs[0].rate * mine * inn_spread(m->setup, w, m->view->tasks[x->task].n_slices);
    float harm = inn_worth(x, b) * (1 - its), own = w->value * rate;
    if (!(mine > 0) || !(its > 0) || own <= harm) return false;
    *out = (Offer){.mask = x->mask,
                   .task = task,
                   .ask = ask,
                   .host = x->task,
                   .give = (uint16_t)w->gpus,
                   .mates = 1,
                   .gain = own - harm - room_beside(m, x->task, w),
                   .own = own,
                   .lost = harm,
                   .rate = rate};
    return out->gain > 0;
}

uint32_t maifs_gang_offers(Maifs *m, uint32_t inn, Offer *out) {
    const Inn *h = &m->inns[inn];
    uint32_t   n = 0;
    if (m->desk.rules.mates < 2 || h->full) return 0;
    for (uint32_t g = 0; g < h->n; g++) {
        const Guest *x = &h->at[g];
        if (!x->sliced || x->fresh || m->view->tasks[x->task].slices[0].server != inn) continue;
        for (uint32_t k = 0; k < m->n_asks; k++)
            if (!maifs_taken(m, m->asks[k].task) && n < OFFER_EACH && beside(m, x, k, &out[n])) n++;
    }
    return n;
}

void maifs_join(Maifs *m, uint32_t task, uint32_t host) {
    const ClusterTask *t = &m->view->tasks[host];
    const Want        *w = &m->wants[task];
    for (uint32_t i = 0; i < t->n_slices; i++) {
        Inn         *h = &m->inns[t->slices[i].server];
        const Guest *x = inn_guest(h, host);
        Guest        g = {.mask = x->mask,
                          .task = task,
                          .cores_milli = x->gpus * w->rungs[0].cores_milli,
                          .memory_mib = x->gpus * w->rungs[0].memory_mib,
                          .gpus = x->gpus,
                          .cap = WANT_RUNGS,
                          .fresh = true,
                          .sliced = true,
                          .spread = inn_spread(m->setup, w, t->n_slices)};
        inn_add(h, &g);
        inn_deal(h, m->setup, m->wants);
        h->stale = true;
        m->starts[m->n_starts++] = (MaifsStart){task, h->server};
    }
}

bool maifs_can_join(const Maifs *m, uint32_t task, uint32_t host) {
    const ClusterTask *t = &m->view->tasks[host];
    for (uint32_t i = 0; i < t->n_slices; i++)
        if (m->inns[t->slices[i].server].stale) return false;
    return m->fate[host] == MAIFS_STAYS && isfinite(room_beside(m, host, &m->wants[task]));
}
