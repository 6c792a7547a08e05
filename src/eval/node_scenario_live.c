// Live scenarios: networks are compiled and profiled on this machine, then run by the node engine.
#include "eval/node_scenario.h"

#include "node/live/node_live.h"
#include "node/prepared_model.h"

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

Err node_scenario_live_open(const NodeScenarioOptions *o, Arena *a, NodeScenario *s) {
    NodeScenarioLive *l = arena_new(a, NodeScenarioLive, 1);
    s->live = l;
    s->measured = true;
    Err e = load(o, l, a, s);
    if (e == ERR_OK) e = start_engine(l, s);
    if (e != ERR_OK) node_scenario_close(s);
    return e;
}

void node_scenario_live_close(NodeScenarioLive *l) {
    node_live_destroy(l->engine);
    for (uint32_t i = 0; i < MIX_TENANTS; i++) prepared_model_finish(&l->prepared[i]);
    host_close(&l->host);
    *l = (NodeScenarioLive){0};
}

Err node_scenario_live_run(const NodeScenario *s, const NodeRun *run, Arena *a, NodeResult *out) {
    s->live->run = *run;
    return node_live_run(s->live->engine, &s->live->run, a, out);
}
