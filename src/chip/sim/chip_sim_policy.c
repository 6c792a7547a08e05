// What a policy is asked and what it answers. A plan that is not legal is the policy's mistake, and
// the run ends there.
#include <stdio.h>

#include "base/err.h"
#include "chip/sim/chip_sim_int.h"

static void must(const ChipSim *e, bool ok, const char *what) {
    char text[256];
    if (ok) return;
    (void)snprintf(text, sizeof text, "policy %s: %s", e->run->policy->name, what);
    check_fail(text, __FILE__, __LINE__);
}

static bool computes(const ChipSim *e, const ChipTask *t, uint32_t unit) {
    const ChipModel *m = e->setup.tenants[t->request.tenant].model;
    return isfinite(chip_cost(m, t->layer, e->setup.kind_of[unit])->ns) != 0;
}

static void start(ChipSim *e, const ChipAction *x) {
    must(e, x->task < e->n_tasks, "starts a task that there is not");
    must(e, x->unit < e->setup.n_units, "starts a layer on a unit that there is not");
    const ChipTask *t = &e->tasks[x->task];
    must(e, t->unit == CHIP_NONE, "starts a task that runs");
    must(e, e->units[x->unit].task == CHIP_NONE, "starts a layer on a unit that is not free");
    must(e, computes(e, t, x->unit), "starts a layer on a unit that cannot compute it");
    chip_sim_start(e, x->task, x->unit);
}

static void throttle(ChipSim *e, const ChipAction *x) {
    must(e, x->unit < e->setup.n_units, "throttles a unit that there is not");
    must(e, e->units[x->unit].task != CHIP_NONE, "throttles a unit that is free");
    must(e, x->cap > 0, "throttles a unit to nothing");
    chip_sim_throttle(e, x->unit, x->cap);
}

// Those that are dropped are named by their request from here on: tasks move when one is gone.
static void mark(const ChipSim *e, ChipAction *x) {
    must(e, x->task < e->n_tasks, "drops a task that there is not");
    x->task = (uint32_t)e->tasks[x->task].request.id;
}

static void drop(ChipSim *e, uint32_t request) {
    must(e, e->result->answers[request].outcome == OUTCOMES, "drops a task twice");
    uint32_t task = e->place[request];
    must(e, e->tasks[task].unit == CHIP_NONE, "drops a task that runs");
    e->dropped_layers += e->tasks[task].layer;
    chip_sim_answer(e, task, OUTCOME_REJECTED);
    chip_sim_remove_task(e, task);
}

// True for a drop, which is done when all else is.
static bool carry_out(ChipSim *e, ChipAction *x) {
    switch (x->verb) {
    case CHIP_START: start(e, x); return false;
    case CHIP_THROTTLE: throttle(e, x); return false;
    case CHIP_DROP: mark(e, x); return true;
    case CHIP_WAKE:
        must(e, x->at > e->now, "asks to be woken in the past");
        if (x->at < e->wake) e->wake = x->at;
        return false;
    }
    must(e, false, "answers with a verb that there is not");
    return false;
}

ChipView chip_sim_view(ChipSim *e) {
    for (uint32_t i = 0; i < e->n_free; i++) e->units[e->free[i]].free_at = e->now;
    return (ChipView){.now = e->now,
                      .setup = &e->setup,
                      .tasks = e->tasks,
                      .waiting = e->waiting,
                      .units = e->units,
                      .free = e->free,
                      .n_tasks = e->n_tasks,
                      .n_waiting = e->n_waiting,
                      .n_free = e->n_free,
                      .demand = (float)bandwidth_total(e->progress.wants, e->progress.n),
                      .tenant_stats = e->tenant_stats};
}

static TimeNs clock_read(const ChipSim *e) {
    return e->run->clock != NULL ? clock_now(*e->run->clock) : 0;
}

static uint32_t ask(ChipSim *e) {
    ChipView view = chip_sim_view(e);
    if (e->run->watch != NULL) e->run->watch(e->run->watcher, &view, e->state, false);
    TimeNs   start_ns = clock_read(e);
    uint32_t n = e->run->policy->decide(e->state, &view, e->actions, CHIP_SIM_ACTIONS);
    e->result->decide_ns += (double)(clock_read(e) - start_ns);
    e->result->decisions++;
    must(e, n <= CHIP_SIM_ACTIONS, "answers more than was asked for");
    return n;
}

// How fast everybody goes is worked out before, so that the policy knows when units will be free.
void chip_sim_decide(ChipSim *e) {
    uint32_t n = CHIP_SIM_ACTIONS;
    e->wake = INT64_MAX;
    while (n == CHIP_SIM_ACTIONS) {
        uint32_t drops = 0;
        chip_sim_set_speeds(e);
        n = ask(e);
        for (uint32_t i = 0; i < n; i++) drops += carry_out(e, &e->actions[i]);
        for (uint32_t i = 0; drops > 0 && i < n; i++)
            if (e->actions[i].verb == CHIP_DROP) drop(e, e->actions[i].task);
    }
}

// A controller without speeds takes no time.
static double latency_ns(const ChipController *c, const ChipPlanCost *x) {
    double ns = 0;
    if (c->mac_ns > 0) ns += x->macs / c->mac_ns;
    if (c->op_ns > 0) ns += x->ops / c->op_ns;
    return ns;
}

void chip_sim_plan(ChipSim *e) {
    const ChipController *c = &e->run->controller;
    ChipPlanCost          x = {0};
    ChipView              view = chip_sim_view(e);
    if (e->run->watch != NULL) e->run->watch(e->run->watcher, &view, e->state, true);
    TimeNs start_ns = clock_read(e);
    e->run->policy->plan(e->state, &view, &x);
    e->result->plan_ns += (double)(clock_read(e) - start_ns);
    must(e, x.macs >= 0 && x.ops >= 0 && x.weight_bytes >= 0, "charges less than nothing");
    double ns = latency_ns(c, &x);
    must(e, ns < 1e17, "thinks for years");
    e->commit_at = e->now + (TimeNs)ceil(ns);
    e->result->plans++;
    e->result->planning_ns += ns;
    e->result->policy_pj += x.macs * c->mac_pj + x.weight_bytes * c->byte_pj + x.ops * c->op_pj;
}
