// cotenant's live engine under the policy that the contender is named after.
#include <string.h>

#include "base/settings.h"
#include "bench/tenants/contender.h"
#include "bench/tenants/open_tenant.h"
#include "node/live/node_live.h"
#include "node/prepared_model.h"
#include "policy/policies.h"

enum { ENGINE_TENANTS = 64 };

typedef struct Stage {  // a tenant of the mix
    PreparedModel prepared;
    OpenTenant   *open;   // NULL: has no open dimension
    uint32_t      first;  // of its tenants in the engine
    int64_t       longest;
} Stage;

typedef struct Ours {
    Host       host;
    Stage      stages[MIX_TENANTS];
    uint32_t   n;                        // stages
    NodeTenant tenants[ENGINE_TENANTS];  // of the engine
    uint32_t   mix_tenant[ENGINE_TENANTS];
    NodeLive  *engine;
    NodeRun    run;  // valid for the engine until the next run
    void      *settings, *alone_settings;
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
    TRY(network_read(file, 1, a, n));
    s->inputs = n->inputs;
    return ERR_OK;
}

static Err prepare(Ours *o, uint32_t i, const ContenderOptions *t, Arena *a) {
    PrepareOptions so = {.tune_seconds = t->tune_seconds};
    Stage         *s = &o->stages[i];
    s->longest = t->longest[i];
    if (s->longest == 0) {
        TRY(prepared_model_load(&s->prepared, t->files[i], &o->host, &so));
        return use_same_inputs(&s->prepared, t->files[i], a);
    }
    s->open = arena_new(a, OpenTenant, 1);
    return open_tenant_make(s->open, t->files[i], s->longest, &o->host, &so, a);
}

static Err join(Ours *o, const PreparedModel *p, const char *name, uint32_t mix_tenant) {
    LiveTenant lt = prepared_model_tenant(p, name, PATIENT_NS, 1);
    uint32_t   n = o->run.setup.n_tenants;
    if (n == ENGINE_TENANTS) return err_set(ERR_LIMIT, "%s: too many tenants", name);
    o->tenants[n] = lt.tenant;
    o->mix_tenant[n] = mix_tenant;
    o->run.setup.n_tenants++;
    return node_live_add(o->engine, &lt);
}

static Err join_stage(Ours *o, uint32_t i, const char *name) {
    Stage *s = &o->stages[i];
    s->first = o->run.setup.n_tenants;
    if (s->open == NULL) return join(o, &s->prepared, name, i);
    for (uint32_t k = 0; k < s->open->n_rounded; k++) TRY(join(o, &s->open->rounded[k], name, i));
    return ERR_OK;
}

Err ours_open(const Contender *c, const ContenderOptions *t, Arena *a, void **state) {
    Ours             *o = arena_new(a, Ours, 1);
    const NodePolicy *p = policies_node_find(c->name);
    if (p == NULL) return err_set(ERR_ARG, "there is no policy '%s'", c->name);
    TRY(host_open(&o->host, 0, t->store));
    o->n = t->n;
    for (uint32_t i = 0; i < t->n; i++) TRY(prepare(o, i, t, a));
    host_quiet(&o->host);
    TRY(node_live_create(&o->engine, &(NodeLiveOptions){.cores = o->host.machine.n_cores}));
    o->run = (NodeRun){.setup = {&o->host.machine, o->tenants, 0}, .policy = p};
    for (uint32_t i = 0; i < t->n; i++) TRY(join_stage(o, i, t->names[i]));
    o->settings = default_settings(p, a);
    o->alone_settings = default_settings(alone_policy(), a);
    *state = o;
    return ERR_OK;
}

// The tenant of the engine and the program for a request of that length.
static uint32_t choose_program(const Stage *s, int64_t length, NodeInput *in) {
    if (s->open == NULL) return s->first;
    const OpenLength *l = &s->open->lengths[length];
    in->inputs = l->inputs;
    if (l->own) in->program = &l->prepared.program;
    return s->first + l->rounded;
}

Err ours_alone(void *state, uint32_t tenant, TimeNs *took) {
    Ours             *o = state;
    const NodePolicy *p = o->run.policy;
    const Stage      *s = &o->stages[tenant];
    NodeInput         in = {0};
    Arrival           one = {0, choose_program(s, s->longest, &in)};
    NodeResult        r;
    Arena             a;
    TRY(arena_init(&a, 1 << 24));
    for (uint32_t i = 0; i < o->run.setup.n_tenants; i++) o->tenants[i].qos_ns = PATIENT_NS;
    o->run.arrivals = (Arrivals){&one, 1};
    o->run.inputs = &in;
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

static void choose_programs(Ours *o, const Trial *trial, const Arrivals *from, Arena *a) {
    Arrival   *at = arena_new(a, Arrival, from->n);
    NodeInput *in = arena_new(a, NodeInput, from->n);
    for (uint32_t i = 0; i < from->n; i++) {
        const Stage *s = &o->stages[from->at[i].tenant];
        int64_t      length = s->longest > 0 ? trial_length(trial, i, s->longest) : 0;
        at[i] = (Arrival){from->at[i].at, choose_program(s, length, &in[i])};
    }
    o->run.arrivals = (Arrivals){at, from->n};
    o->run.inputs = in;
}

static RequestOutcome outcome_of(const Ours *o, const Trial *trial, const NodeAnswer *x) {
    uint32_t tenant = o->mix_tenant[x->tenant];
    bool     late = x->finish - x->arrival > trial->qos_ns[tenant];
    return (RequestOutcome){.arrival = x->arrival,
                            .finish = x->finish,
                            .tenant = tenant,
                            .answered =
                                x->outcome == OUTCOME_MET || (x->outcome == OUTCOME_LATE && late)};
}

Err ours_serve(void *state, const Trial *trial, const Arrivals *arrivals, Arena *a,
               RequestOutcome *served, double *conflict_rate) {
    Ours      *o = state;
    NodeResult r;
    for (uint32_t i = 0; i < o->run.setup.n_tenants; i++)
        o->tenants[i].qos_ns = trial->qos_ns[o->mix_tenant[i]];
    choose_programs(o, trial, arrivals, a);
    o->run.seed = trial->seed;
    o->run.skip = trial->skip;
    o->run.give_up = GIVE_UP;
    o->run.settings = o->settings;
    TRY(node_live_run(o->engine, &o->run, a, &r));
    for (uint32_t i = 0; i < r.n; i++) served[i] = outcome_of(o, trial, &r.answers[i]);
    *conflict_rate = r.blocks > 0 ? (double)r.conflicts / (double)r.blocks : 0;
    return ERR_OK;
}
