// Calls the policy and carries out its actions. An illegal action is a bug of the policy and
// aborts.
#include <stdio.h>

#include "base/err.h"
#include "chip/sim/chip_sim_int.h"

static void must(const ChipSim *sim, bool ok, const char *what) {
    char text[256];
    if (ok) return;
    (void)snprintf(text, sizeof text, "policy %s: %s", sim->run->policy->name, what);
    check_fail(text, __FILE__, __LINE__);
}

static bool computes(const ChipSim *sim, const ChipTask *t, uint32_t unit) {
    const ChipModel *m = sim->setup.tenants[t->request.tenant].model;
    return isfinite(chip_cost(m, t->layer, sim->setup.kind_of[unit])->ns) != 0;
}

static void start(ChipSim *sim, const ChipAction *x) {
    must(sim, x->task < sim->n_tasks, "starts a task that does not exist");
    must(sim, x->unit < sim->setup.n_units, "starts a layer on a unit that does not exist");
    const ChipTask *t = &sim->tasks[x->task];
    must(sim, t->unit == CHIP_NONE, "starts a task that runs");
    must(sim, sim->units[x->unit].task == CHIP_NONE, "starts a layer on a unit that is not free");
    must(sim, computes(sim, t, x->unit), "starts a layer on a unit that cannot compute it");
    chip_sim_start(sim, x->task, x->unit);
}

static void throttle(ChipSim *sim, const ChipAction *x) {
    must(sim, x->unit < sim->setup.n_units, "throttles a unit that does not exist");
    must(sim, sim->units[x->unit].task != CHIP_NONE, "throttles a unit that is free");
    must(sim, x->cap > 0, "throttles a unit to 0");
    chip_sim_throttle(sim, x->unit, x->cap);
}

// Drops are kept by request: task indices change when a task is removed.
static void keep_request(const ChipSim *sim, ChipAction *x) {
    must(sim, x->task < sim->n_tasks, "drops a task that does not exist");
    x->task = (uint32_t)sim->tasks[x->task].request.id;
}

static void drop(ChipSim *sim, uint32_t request) {
    must(sim, sim->result->answers[request].outcome == OUTCOMES, "drops a task twice");
    uint32_t task = sim->index[request];
    must(sim, sim->tasks[task].unit == CHIP_NONE, "drops a task that runs");
    sim->dropped_layers += sim->tasks[task].layer;
    chip_sim_answer(sim, task, OUTCOME_REJECTED);
    chip_sim_remove_task(sim, task);
}

// True for a drop, which is carried out after all other actions.
static bool carry_out(ChipSim *sim, ChipAction *x) {
    switch (x->verb) {
    case CHIP_START: start(sim, x); return false;
    case CHIP_THROTTLE: throttle(sim, x); return false;
    case CHIP_DROP: keep_request(sim, x); return true;
    case CHIP_WAKE:
        must(sim, x->at > sim->now, "asks for a wake-up in the past");
        if (x->at < sim->wake) sim->wake = x->at;
        return false;
    }
    must(sim, false, "returns an unknown verb");
    return false;
}

ChipView chip_sim_view(ChipSim *sim) {
    for (uint32_t i = 0; i < sim->n_free; i++) sim->units[sim->free[i]].free_at = sim->now;
    return (ChipView){.now = sim->now,
                      .setup = &sim->setup,
                      .tasks = sim->tasks,
                      .waiting = sim->waiting,
                      .units = sim->units,
                      .free = sim->free,
                      .n_tasks = sim->n_tasks,
                      .n_waiting = sim->n_waiting,
                      .n_free = sim->n_free,
                      .demand = (float)bandwidth_total(sim->progress.demand, sim->progress.n),
                      .tenant_stats = sim->tenant_stats};
}

static TimeNs clock_read(const ChipSim *sim) {
    return sim->run->clock != NULL ? clock_now(*sim->run->clock) : 0;
}

static uint32_t call_decide(ChipSim *sim) {
    ChipView view = chip_sim_view(sim);
    if (sim->run->watch != NULL) sim->run->watch(sim->run->watcher, &view, sim->state, false);
    TimeNs   start_ns = clock_read(sim);
    uint32_t n = sim->run->policy->decide(sim->state, &view, sim->actions, CHIP_SIM_ACTIONS);
    sim->result->decide_ns += (double)(clock_read(sim) - start_ns);
    sim->result->decisions++;
    must(sim, n <= CHIP_SIM_ACTIONS, "returns more actions than max");
    return n;
}

// Speeds are set before the policy is called, so that free_at of the units is exact.
void chip_sim_decide(ChipSim *sim) {
    uint32_t n = CHIP_SIM_ACTIONS;
    sim->wake = INT64_MAX;
    while (n == CHIP_SIM_ACTIONS) {
        uint32_t drops = 0;
        chip_sim_set_speeds(sim);
        n = call_decide(sim);
        for (uint32_t i = 0; i < n; i++) drops += carry_out(sim, &sim->actions[i]);
        for (uint32_t i = 0; drops > 0 && i < n; i++)
            if (sim->actions[i].verb == CHIP_DROP) drop(sim, sim->actions[i].task);
    }
}

// A controller with speeds of 0 takes no time.
static double latency_ns(const ChipController *c, const ChipPlanCost *x) {
    double ns = 0;
    if (c->mac_ns > 0) ns += x->macs / c->mac_ns;
    if (c->op_ns > 0) ns += x->ops / c->op_ns;
    return ns;
}

void chip_sim_plan(ChipSim *sim) {
    const ChipController *c = &sim->run->controller;
    ChipPlanCost          x = {0};
    ChipView              view = chip_sim_view(sim);
    if (sim->run->watch != NULL) sim->run->watch(sim->run->watcher, &view, sim->state, true);
    TimeNs start_ns = clock_read(sim);
    sim->run->policy->plan(sim->state, &view, &x);
    sim->result->plan_ns += (double)(clock_read(sim) - start_ns);
    must(sim, x.macs >= 0 && x.ops >= 0 && x.weight_bytes >= 0, "has a negative planning cost");
    double ns = latency_ns(c, &x);
    must(sim, ns < 1e17, "plans for years");
    sim->commit_at = sim->now + (TimeNs)ceil(ns);
    sim->result->plans++;
    sim->result->planning_ns += ns;
    sim->result->policy_pj += x.macs * c->mac_pj + x.weight_bytes * c->byte_pj + x.ops * c->op_pj;
}
