#include "eval/node_scenario.h"

#include "base/err.h"
#include "node/node_model.h"
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

Err node_scenario_open(const NodeScenarioOptions *o, Arena *a, NodeScenario *out) {
    *out = (NodeScenario){0};
    return o->machine != NULL ? open_simulated(o, a, out) : node_scenario_live_open(o, a, out);
}

void node_scenario_close(NodeScenario *s) {
    if (s->live != NULL) node_scenario_live_close(s->live);
    *s = (NodeScenario){0};
}

static uint32_t requests_of(const NodeScenario *s, const NodeTraffic *r) {
    if (r->requests > 0) return r->requests;
    if (s->live == NULL) return NODE_SCENARIO_REQUESTS;
    double n = r->rate * NODE_SCENARIO_SECONDS;
    return n > NODE_SCENARIO_LEAST ? (uint32_t)n : NODE_SCENARIO_LEAST;
}

Err node_scenario_replay(const NodeScenario *s, const NodeRun *run, Arena *a, NodeResult *out) {
    return s->live != NULL ? node_scenario_live_run(s, run, a, out)
                           : node_sim(run, &s->spec, a, out);
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
