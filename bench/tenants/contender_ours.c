// cotenant's live engine under the policy that the contender is named after.
#include <string.h>

#include "base/settings.h"
#include "bench/tenants/contender.h"
#include "node/live/node_live.h"
#include "node/prepared_model.h"
#include "policy/policies.h"

typedef struct Ours {
    Host          host;
    PreparedModel stages[MIX_TENANTS];
    NodeTenant    tenants[MIX_TENANTS];
    NodeLive     *engine;
    NodeRun       run;  // valid for the engine until the next run
    void         *settings, *alone_settings;
} Ours;

#define PATIENT_NS 60000000000
#define GIVE_UP    0.25  // share of misses that ends a trial, as for ONNX Runtime

static void *default_settings(const NodePolicy *p, Arena *a) {
    if (p->settings_size == 0) return NULL;
    Settings s = {.rows = p->rows,
                  .n_rows = p->n_rows,
                  .values = arena_alloc(a, 1, p->settings_size, 16),
                  .arena = a};
    settings_default(&s);
    return s.values;
}

// A network alone runs on the number of cores that is fastest for it.
static const NodePolicy *alone_policy(void) { return policies_node_find("prema"); }

static Err use_same_inputs(PreparedModel *s, const char *file, Arena *a) {
    Network *n = arena_new(a, Network, 1);
    TRY(network_read(file, a, n));
    s->inputs = n->inputs;
    return ERR_OK;
}

Err ours_open(const Contender *c, const ContenderOptions *t, Arena *a, void **state) {
    Ours             *o = arena_new(a, Ours, 1);
    const NodePolicy *p = policies_node_find(c->name);
    if (p == NULL) return err_set(ERR_ARG, "there is no policy '%s'", c->name);
    TRY(host_open(&o->host, 0, t->store));
    for (uint32_t i = 0; i < t->n; i++) {
        PrepareOptions so = {.tune_seconds = t->tune_seconds};
        TRY(prepared_model_load(&o->stages[i], t->files[i], &o->host, &so));
        TRY(use_same_inputs(&o->stages[i], t->files[i], a));
        o->tenants[i] =
            (NodeTenant){.model = &o->stages[i].table, .name = t->names[i], .priority = 1};
    }
    host_quiet(&o->host);
    TRY(node_live_create(&o->engine, &(NodeLiveOptions){.cores = o->host.machine.n_cores}));
    for (uint32_t i = 0; i < t->n; i++) {
        LiveTenant lt = prepared_model_tenant(&o->stages[i], t->names[i], PATIENT_NS, 1);
        TRY(node_live_add(o->engine, &lt));
    }
    o->run = (NodeRun){.setup = {&o->host.machine, o->tenants, t->n}, .policy = p};
    o->settings = default_settings(p, a);
    o->alone_settings = default_settings(alone_policy(), a);
    *state = o;
    return ERR_OK;
}

Err ours_alone(void *state, uint32_t tenant, TimeNs *took) {
    Ours             *o = state;
    const NodePolicy *p = o->run.policy;
    Arrival           one = {0, tenant};
    NodeResult        r;
    Arena             a;
    TRY(arena_init(&a, 1 << 24));
    for (uint32_t i = 0; i < o->run.setup.n_tenants; i++) o->tenants[i].qos_ns = PATIENT_NS;
    o->run.arrivals = (Arrivals){&one, 1};
    o->run.skip = 0;
    o->run.give_up = 0;
    o->run.policy = alone_policy();
    o->run.settings = o->alone_settings;
    Err e = node_live_run(o->engine, &o->run, &a, &r);
    if (e == ERR_OK) *took = r.answers[0].finish - r.answers[0].arrival;
    o->run.policy = p;
    arena_finish(&a);
    return e;
}

Err ours_serve(void *state, const Trial *trial, const Arrivals *arrivals, Arena *a,
               RequestOutcome *served, double *conflict_rate) {
    Ours      *o = state;
    NodeResult r;
    for (uint32_t i = 0; i < o->run.setup.n_tenants; i++) o->tenants[i].qos_ns = trial->qos_ns[i];
    o->run.arrivals = *arrivals;
    o->run.seed = trial->seed;
    o->run.skip = trial->skip;
    o->run.give_up = GIVE_UP;
    o->run.settings = o->settings;
    TRY(node_live_run(o->engine, &o->run, a, &r));
    for (uint32_t i = 0; i < r.n; i++) {
        const NodeAnswer *x = &r.answers[i];
        bool              late = x->finish - x->arrival > trial->qos_ns[x->tenant];
        served[i] = (RequestOutcome){.arrival = x->arrival,
                                     .finish = x->finish,
                                     .tenant = x->tenant,
                                     .answered = x->outcome == OUTCOME_MET ||
                                                 (x->outcome == OUTCOME_LATE && late)};
    }
    *conflict_rate = r.blocks > 0 ? (double)r.conflicts / (double)r.blocks : 0;
    return ERR_OK;
}
