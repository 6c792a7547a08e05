// Tasks that run and would gain elsewhere.
#include "policy/cluster/maifs.h"

static float stay_of(const Maifs *m, const Inn *h, uint32_t guest) {
    const Want *w = &m->wants[h->at[guest].task];
    InnLeave    go = {{0}};
    InnFill     f;
    inn_set_leave(&go, guest, true);
    inn_fill(h, &go, m->wants, &f);
    float rest = (float)inn_fill_worth(&f, f.cores_milli, f.memory_mib);
    float redo = w->value * w->restart_s * m->desk.rules.restart / w->left_s;
    return (float)h->worth - rest + redo + m->desk.rules.patience * w->value;
}

// By what they lack of the worth that they could have.
bool maifs_open_moves(Maifs *m) {
    uint32_t most = (uint32_t)m->with->moves;
    m->n_window = 0;
    for (uint32_t i = 0; i < m->setup->n_servers && most > 0; i++) {
        const Inn *h = &m->inns[i];
        for (uint32_t g = 0; g < h->n; g++) {
            const Guest *x = &h->at[g];
            const Want  *w = &m->wants[x->task];
            uint32_t     k = m->n_window;
            if (x->fresh || x->sliced || w->class == CLUSTER_NONE) continue;
            float lacks = w->value * (w->rungs[w->n_rungs - 1].rate - inn_rate(x, w));
            if (!(lacks > m->desk.rules.patience * w->value)) continue;
            if (k == most && lacks <= m->dense[m->window[k - 1]]) continue;
            m->dense[x->task] = lacks;
            m->stay[x->task] = stay_of(m, h, g);
            if (k < most)
                m->n_window++;
            else
                k--;
            for (; k > 0 && m->dense[m->window[k - 1]] < lacks; k--)
                m->window[k] = m->window[k - 1];
            m->window[k] = x->task;
        }
    }
    return m->n_window > 0;
}
