#include "learn/act.h"
#include "policy/cluster/drl.h"

static const double UNKNOWN_S = 3600;

static double left_s(const ClusterView *v, const ClusterTask *t) {
    TimeNs left = cluster_left(v, t);
    return left < 0 ? UNKNOWN_S : (double)left / (double)CLUSTER_SECOND;
}

static double service(const ClusterView *v, const ClusterTask *t) {
    return left_s(v, t) * (double)cluster_gpu_milli(&t->job);
}

static float squash(double seconds) { return act_log((float)(seconds > 0 ? seconds : 0) + 1) / 12; }
static float part(double of, double all) { return (float)(all > 0 ? of / all : 0); }

static void line_up(const ClusterView *v, const uint8_t *skip, DrlLook *out) {
    double key[DRL_WINDOW];
    out->n = 0;
    for (uint32_t i = 0; i < v->n_waiting; i++) {
        uint32_t slot = v->waiting[i], at = out->n;
        double   k = service(v, &v->tasks[slot]);
        if (skip[slot] != 0 || (at == DRL_WINDOW && !(k < key[at - 1]))) continue;
        if (at < DRL_WINDOW)
            out->n++;
        else
            at--;
        for (; at > 0 && k < key[at - 1]; at--) {
            key[at] = key[at - 1];
            out->task[at] = out->task[at - 1];
        }
        key[at] = k;
        out->task[at] = slot;
    }
}

static bool has_place(Floor *f, uint32_t task) {
    ClusterAction act;
    if (!floor_place(f, task, &act)) return false;
    floor_leave(f, &(ClusterTask){.slices = act.slices, .n_slices = act.n_slices});
    f->n_slices -= act.n_slices;
    return true;
}

static void tell_cluster(const Floor *f, const ClusterView *v, float *x) {
    const ClusterSetup *s = v->setup;
    uint64_t            cores = 0, memory = 0;
    uint32_t            most = 0, idle = 0, half = 0;
    double              next = 0, sum = 0;
    for (uint32_t i = 0; i < s->n_servers; i++) {
        cores += f->cores[i];
        memory += f->memory[i];
        most = f->gpus[i] > most ? f->gpus[i] : most;
        idle += f->gpus[i] == s->servers[i].gpus;
        half += f->gpus[i] * 2 >= s->servers[i].gpus;
    }
    for (uint32_t i = 0; i < v->n_running; i++) {
        double left = left_s(v, &v->tasks[v->running[i]]);
        next = i == 0 || left < next ? left : next;
        sum += left;
    }
    const float all[DRL_STATE] = {part(f->n_free, (double)s->gpus),
                                  part((double)cores, (double)s->cores_milli),
                                  part((double)memory, (double)s->memory_mib),
                                  part(most, s->most_gpus),
                                  part(idle, s->n_servers),
                                  part(half, s->n_servers),
                                  squash(v->n_waiting),
                                  squash(v->n_running),
                                  part(v->n_running, (double)s->gpus),
                                  squash(next),
                                  squash(v->n_running > 0 ? sum / v->n_running : 0),
                                  1};
    for (uint32_t i = 0; i < DRL_STATE; i++) x[i] = all[i];
}

static void tell_job(const Floor *f, const ClusterView *v, const ClusterTask *t, bool can,
                     float *x) {
    double gpus = (double)cluster_gpu_milli(&t->job) / CLUSTER_WHOLE;
    double wait = (double)(v->now - t->since) / (double)CLUSTER_SECOND;
    x[0] = 1;
    x[1] = squash(left_s(v, t));
    x[2] = squash(gpus);
    x[3] = squash(wait);
    x[4] = can ? 1 : 0;
    x[5] = part(gpus, gpus + f->n_free);
}

void drl_look(Floor *f, const ClusterView *v, const uint8_t *skip, DrlLook *out) {
    *out = (DrlLook){0};
    line_up(v, skip, out);
    tell_cluster(f, v, out->x);
    for (uint32_t i = 0; i < out->n; i++) {
        out->can[i] = has_place(f, out->task[i]);
        tell_job(f, v, &v->tasks[out->task[i]], out->can[i],
                 out->x + DRL_STATE + (size_t)i * DRL_JOB);
    }
    out->can[DRL_WINDOW] = v->n_running > 0 || f->n_slices > 0;
}

uint32_t drl_best(const DrlLook *look, const float *says) {
    uint32_t best = DRL_WINDOW;
    for (uint32_t i = DRL_OUT; i-- > 0;)
        if (look->can[i] && (!look->can[best] || says[i] >= says[best])) best = i;
    return best;
}
