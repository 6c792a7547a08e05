// drl_single: one network for the whole cluster picks the job that starts next
//
// After DeepRM and DL2: aggregate state of the servers and a window of jobs enter one network,
// which picks one job or none. The job gets its default demand on as few servers as possible; this
// repeats until the pick is none. There is no preemption, there are no agents and no amounts to
// choose: a baseline that shows what those contribute to maifs.
//
// The network is trained for short completion times, starting from imitation of least work first;
// see docs/cluster-training.md.
#include "learn/activation.h"
#include "policy/cluster/common/cluster_policy.h"
#include "policy/cluster/drl/drl.h"
#include "policy/policies.h"

#define DRL_SETTINGS(X)                                                                            \
    X(weights, string, "", 0, 4095, "weights file, or none (default: the shipped weights)")

typedef struct DrlSettings {
    DRL_SETTINGS(SETTING_FIELD)
} DrlSettings;

static const Setting rows[] = {
#define X(...) SETTING_ROW(DrlSettings, __VA_ARGS__)
    DRL_SETTINGS(X)
#undef X
};

typedef struct Drl {
    const DrlLoaded *loaded;
    FreeResources    free;
    DrlObservation   seen;
    uint8_t         *skip;  // [n_slots] tasks that this plan starts
    float            scores[DRL_OUT];
    float            cache[4 * DRL_HIDDEN_MAX];
} Drl;

static void lay_out(Drl *d, const ClusterSetup *s, Carve *from) {
    placement_carve(&d->free, s, from);
    d->skip = carve(from, uint8_t, s->n_slots);
}

static Err load(const ClusterSetup *s, const void *settings, Arena *a, const void **loaded) {
    (void)s;
    DrlLoaded *l = arena_new(a, DrlLoaded, 1);
    *loaded = l;
    return drl_weights_load(((const DrlSettings *)settings)->weights, a, l);
}

CLUSTER_POLICY_STATE(Drl)

static void init(void *state, const ClusterSetup *s, const void *settings, const void *loaded) {
    (void)settings;
    Drl *d = state_open(state, s);
    d->loaded = loaded;
}

static bool any(const DrlObservation *seen) {
    for (uint32_t i = 0; i < seen->n; i++)
        if (seen->can[i]) return true;
    return false;
}

// Without weights the first job that fits is taken.
static uint32_t choose(Drl *d, const ClusterView *v) {
    const DrlLoaded *l = d->loaded;
    for (uint32_t i = 0; i < DRL_OUT; i++) d->scores[i] = i < DRL_WINDOW ? 1 : 0;
    if (l->w != NULL) drl_net_forward(l->net, l->w, 1, d->seen.x, d->scores, d->cache);
    return l->choose != NULL ? l->choose(l->self, v, &d->seen, d->scores)
                             : drl_best(&d->seen, d->scores);
}

static uint32_t decide(void *state, const ClusterView *v, ClusterAction *out, uint32_t max) {
    Drl     *d = state;
    uint32_t n = 0;
    (void)max;
    if (v->n_waiting == 0) return 0;
    placement_open(&d->free, v);
    for (;;) {
        drl_observe(&d->free, v, d->skip, &d->seen);
        if (!any(&d->seen)) break;
        uint32_t k = choose(d, v);
        if (k >= d->seen.n || !placement_place(&d->free, d->seen.task[k], &out[n])) break;
        d->skip[d->seen.task[k]] = 1;
        n++;
    }
    for (uint32_t i = 0; i < n; i++) d->skip[out[i].task] = 0;
    return n;
}

const ClusterPolicy cluster_policy_drl_single = {
    .name = "drl_single",
    .about = "one network for the whole cluster picks the job that starts next",
    .paper = "after DeepRM (HotNets 2016) and DL2 (TPDS 2021)",
    .knows = CLUSTER_ORACLE,
    .learned = true,
    .rows = rows,
    .n_rows = sizeof rows / sizeof *rows,
    .settings_size = sizeof(DrlSettings),
    .load = load,
    .state_size = state_size,
    .init = init,
    .decide = decide,
};

static const double UNKNOWN_S = 3600;

static double left_s(const ClusterView *v, const ClusterTask *t) {
    TimeNs left = cluster_left(v, t);
    return left < 0 ? UNKNOWN_S : (double)left / (double)CLUSTER_SECOND;
}

static double service(const ClusterView *v, const ClusterTask *t) {
    return left_s(v, t) * (double)cluster_gpu_milli(&t->job);
}

static float squash(double seconds) {
    return repro_log((float)(seconds > 0 ? seconds : 0) + 1) / 12;
}
static float ratio(double of, double all) { return (float)(all > 0 ? of / all : 0); }

static void fill_window(const ClusterView *v, const uint8_t *skip, DrlObservation *out) {
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

// Places and takes back. Unlike placement_fits this leaves the job's class marked on a GPU that it
// would share; the shipped weights were trained with that.
static bool fits(FreeResources *f, uint32_t task) {
    ClusterAction act;
    if (!placement_place(f, task, &act)) return false;
    placement_release(f, &(ClusterTask){.job = f->view->tasks[task].job,
                                        .slices = act.slices,
                                        .n_slices = act.n_slices});
    f->n_slices -= act.n_slices;
    return true;
}

static void describe_cluster(const FreeResources *f, const ClusterView *v, float *x) {
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
    const float all[DRL_STATE] = {ratio(f->n_free, (double)s->gpus),
                                  ratio((double)cores, (double)s->cores_milli),
                                  ratio((double)memory, (double)s->memory_mib),
                                  ratio(most, s->most_gpus),
                                  ratio(idle, s->n_servers),
                                  ratio(half, s->n_servers),
                                  squash(v->n_waiting),
                                  squash(v->n_running),
                                  ratio(v->n_running, (double)s->gpus),
                                  squash(next),
                                  squash(v->n_running > 0 ? sum / v->n_running : 0),
                                  1};
    for (uint32_t i = 0; i < DRL_STATE; i++) x[i] = all[i];
}

static void describe_job(const FreeResources *f, const ClusterView *v, const ClusterTask *t,
                         bool can, float *x) {
    double gpus = (double)cluster_gpu_milli(&t->job) / CLUSTER_WHOLE_GPU;
    double wait = (double)(v->now - t->since) / (double)CLUSTER_SECOND;
    x[0] = 1;
    x[1] = squash(left_s(v, t));
    x[2] = squash(gpus);
    x[3] = squash(wait);
    x[4] = can ? 1 : 0;
    x[5] = ratio(gpus, gpus + f->n_free);
}

void drl_observe(FreeResources *f, const ClusterView *v, const uint8_t *skip, DrlObservation *out) {
    *out = (DrlObservation){0};
    fill_window(v, skip, out);
    describe_cluster(f, v, out->x);
    for (uint32_t i = 0; i < out->n; i++) {
        out->can[i] = fits(f, out->task[i]);
        describe_job(f, v, &v->tasks[out->task[i]], out->can[i],
                     out->x + DRL_STATE + (size_t)i * DRL_JOB);
    }
    out->can[DRL_WINDOW] = v->n_running > 0 || f->n_slices > 0;
}

uint32_t drl_best(const DrlObservation *seen, const float *scores) {
    uint32_t best = DRL_WINDOW;
    for (uint32_t i = DRL_OUT; i-- > 0;)
        if (seen->can[i] && (!seen->can[best] || scores[i] >= scores[best])) best = i;
    return best;
}
