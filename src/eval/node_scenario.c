#include "eval/node_scenario.h"

#include "base/err.h"
#include "node/live/node_live.h"
#include "node/node_model.h"
#include "node/prepared_model.h"
#include "node/sim/node_sim.h"

enum { SERVER_CORES = 32 };

static TimeNs alone(const NodeModel *m) {
    return (TimeNs)node_rest(m, m->rest_best, 0, m->n_counts - 1, 0);
}

Err node_scenario_targets(NodeScenario *s, double slack) {
    double one_core = 0;
    for (uint32_t i = 0; i < s->mix.n; i++) {
        const NodeModel *m = &s->models[i];
        TimeNs           qos = s->mix.tenants[i].qos_ns;
        s->tenants[i] = (NodeTenant){.model = m,
                                     .name = s->mix.tenants[i].network,
                                     .qos_ns = qos > 0 ? qos : mix_qos(alone(m), slack),
                                     .priority = 1};
        s->share[i] = s->mix.tenants[i].share;
        one_core += (double)node_rest(m, m->rest_best, 0, 0, 0) / s->mix.n;
    }
    s->setup = (NodeSetup){&s->view, s->tenants, s->mix.n};
    if (!(one_core > 0)) return err_set(ERR_INVALID, "the profiles of this mix have no times");
    s->capacity = s->view.n_cores * 1e9 / one_core;
    return ERR_OK;
}

static Err open_simulated(const NodeScenarioOptions *o, Arena *a, NodeScenario *s) {
    TRY(machine_load(o->machine, a, &s->spec));
    s->machine = s->spec.name;
    s->view = machine_view(&s->spec, a);
    bool server = s->spec.cores >= SERVER_CORES;
    TRY(mix_find(o->mix, server ? MIX_SERVER : MIX_HERE, &s->mix));
    s->models = arena_new(a, NodeModel, s->mix.n);
    s->tenants = arena_new(a, NodeTenant, s->mix.n);
    for (uint32_t i = 0; i < s->mix.n; i++) {
        if (o->slack > 0) s->mix.tenants[i].qos_ns = 0;
        TRY(model_of_zoo(s->mix.tenants[i].network, &s->spec, a, &s->models[i]));
    }
    return node_scenario_targets(s, o->slack > 0 ? o->slack : MIX_SLACK);
}

// Live scenarios: networks are compiled and profiled on this machine, then run by the node engine.

enum { MACHINE_BYTES = 192, RECORDS = 1 << 18 };

struct NodeScenarioLive {
    Host          host;
    PreparedModel prepared[MIX_TENANTS];
    NodeLive     *engine;
    NodeRun       run;  // current run; the engine refers to it until the next
    char          machine[MACHINE_BYTES];
};

// Parameters for simulating this machine, beyond the profiles of its networks.
static Err describe(const Host *h, Arena *a, NodeScenario *s) {
    const Pressure *p = &h->pressure;
    TRY(machine_load("duo", a, &s->spec));
    s->spec.name = s->machine;
    s->spec.cores = (int)h->machine.n_cores;
    s->spec.reserved = 0;
    s->spec.slice_cores =
        (int)((h->machine.n_cores + h->machine.n_slices - 1) / h->machine.n_slices);
    s->spec.dram_all_gbs = (double)h->machine.dram_bytes_ns;
    s->spec.l3_kb = (int)(p->l3_bytes >> 10);
    s->spec.l3_usable = 1;
    s->spec.dispatch_us = (double)h->machine.dispatch_ns / 1e3;
    s->spec.barrier_us = s->spec.barrier_core_us = 0;  // part of the profiles
    s->spec.jitter = 0;                                // predictions use the most likely time
    s->view = h->machine;
    return ERR_OK;
}

static Err load(const NodeScenarioOptions *o, NodeScenarioLive *l, Arena *a, NodeScenario *s) {
    if (o->store != NULL) TRY(host_check_store(o->store));
    TRY(host_open(&l->host, 0, o->store));
    (void)snprintf(l->machine, sizeof l->machine, "%s, %u cores", l->host.cpu.model,
                   l->host.machine.n_cores);
    s->machine = l->machine;
    TRY(describe(&l->host, a, s));
    TRY(mix_find(o->mix, MIX_HERE, &s->mix));
    s->models = arena_new(a, NodeModel, s->mix.n);
    s->tenants = arena_new(a, NodeTenant, s->mix.n);
    for (uint32_t i = 0; i < s->mix.n; i++) {
        TRY(prepared_model_load(&l->prepared[i], s->mix.tenants[i].network, &l->host,
                                &(PrepareOptions){0}));
        s->models[i] = l->prepared[i].table;
    }
    host_quiet(&l->host);
    return node_scenario_targets(s, o->slack > 0 ? o->slack : MIX_SLACK);
}

static Err start_engine(NodeScenarioLive *l, const NodeScenario *s) {
    TRY(node_live_create(&l->engine,
                         &(NodeLiveOptions){.cores = s->view.n_cores, .records = RECORDS}));
    for (uint32_t i = 0; i < s->mix.n; i++) {
        LiveTenant t =
            prepared_model_tenant(&l->prepared[i], s->tenants[i].name, s->tenants[i].qos_ns, 1);
        t.tenant.model = &s->models[i];
        TRY(node_live_add(l->engine, &t));
    }
    return ERR_OK;
}

static Err live_open(const NodeScenarioOptions *o, Arena *a, NodeScenario *s) {
    NodeScenarioLive *l = arena_new(a, NodeScenarioLive, 1);
    s->live = l;
    s->measured = true;
    Err e = load(o, l, a, s);
    if (e == ERR_OK) e = start_engine(l, s);
    if (e != ERR_OK) node_scenario_close(s);
    return e;
}

static void live_close(NodeScenarioLive *l) {
    node_live_destroy(l->engine);
    for (uint32_t i = 0; i < MIX_TENANTS; i++) prepared_model_finish(&l->prepared[i]);
    host_close(&l->host);
    *l = (NodeScenarioLive){0};
}

static Err live_run(const NodeScenario *s, const NodeRun *run, Arena *a, NodeResult *out) {
    s->live->run = *run;
    return node_live_run(s->live->engine, &s->live->run, a, out);
}

Err node_scenario_open(const NodeScenarioOptions *o, Arena *a, NodeScenario *out) {
    *out = (NodeScenario){0};
    return o->machine != NULL ? open_simulated(o, a, out) : live_open(o, a, out);
}

void node_scenario_close(NodeScenario *s) {
    if (s->live != NULL) live_close(s->live);
    *s = (NodeScenario){0};
}

static uint32_t requests_of(const NodeScenario *s, const NodeTraffic *r) {
    if (r->requests > 0) return r->requests;
    if (s->live == NULL) return NODE_SCENARIO_REQUESTS;
    double n = r->rate * NODE_SCENARIO_SECONDS;
    return n > NODE_SCENARIO_LEAST ? (uint32_t)n : NODE_SCENARIO_LEAST;
}

Err node_scenario_replay(const NodeScenario *s, const NodeRun *run, Arena *a, NodeResult *out) {
    return s->live != NULL ? live_run(s, run, a, out) : node_sim(run, &s->spec, a, out);
}

Err node_scenario_run(const NodeScenario *s, const NodeTraffic *r, Arena *a, NodeRun *run,
                      NodeResult *out) {
    uint32_t n = requests_of(s, r);
    *run = (NodeRun){.setup = s->setup,
                     .policy = r->choice->policy,
                     .settings = r->choice->settings,
                     .seed = r->seed,
                     .records = r->records,
                     .skip = n / 20,
                     .admit = r->admit,
                     .give_up = r->give_up};
    TRY(arrivals_poisson(a, (Rng){r->seed}, r->rate, s->share, s->mix.n, n, &run->arrivals));
    return node_scenario_replay(s, run, a, out);
}

char *node_scenario_about(const NodeScenario *s, Arena *a) {
    char *text = arena_str(a, "");
    for (uint32_t i = 0; i < s->mix.n; i++)
        text = arena_printf(a, "%s%s%s within %.4g ms", text, i > 0 ? ", " : "", s->tenants[i].name,
                            (double)s->tenants[i].qos_ns / 1e6);
    return arena_printf(a, "Tenants, each with the same share of the requests: %s.", text);
}
