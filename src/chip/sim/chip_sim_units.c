// Units: layers begin, progress at the speed that the shared bandwidth allows, and end.
#include <stdbool.h>
#include <string.h>

#include "chip/sim/chip_sim_int.h"

static const ChipModel *model_of(const ChipSim *sim, const ChipTask *t) {
    return sim->setup.tenants[t->request.tenant].model;
}

static void take_unit(ChipSim *sim, uint32_t unit) {
    uint32_t i = 0;
    while (sim->free[i] != unit) i++;
    memmove(sim->free + i, sim->free + i + 1, (--sim->n_free - i) * sizeof *sim->free);
}

static void free_unit(ChipSim *sim, uint32_t unit) {
    uint32_t i = sim->n_free++;
    for (; i > 0 && sim->free[i - 1] > unit; i--) sim->free[i] = sim->free[i - 1];
    sim->free[i] = unit;
    sim->units[unit] = (ChipUnit){.task = CHIP_NONE, .cap = INFINITY};
}

static void record_layer(const ChipSim *sim, const ChipTask *t, uint32_t unit, RecordKind kind) {
    Cores one = {0};
    if (sim->run->records.put == NULL) return;
    cores_add(&one, unit);
    record_put(sim->run->records, &(Record){.at = sim->now,
                                            .kind = kind,
                                            .request = t->request.id,
                                            .tenant = t->request.tenant,
                                            .first = t->layer,
                                            .n_layers = 1,
                                            .wanted = kind == RECORD_START ? 1 : 0,
                                            .cores = one});
}

static void begin(ChipSim *sim, uint32_t unit) {
    UnitProgress *p = &sim->progress;
    p->starting[unit] = false;
    p->runs[unit] = true;
    p->since[unit] = sim->now;
    p->active[unit] = p->demand[unit];
    p->event[unit] = INT64_MAX;  // until its speed is set
    sim->changed = true;
}

void chip_sim_start(ChipSim *sim, uint32_t task, uint32_t unit) {
    const ChipTask *t = &sim->tasks[task];
    const ChipCost *c = chip_cost(model_of(sim, t), t->layer, sim->setup.kind_of[unit]);
    UnitProgress   *p = &sim->progress;
    TimeNs          at = sim->now + sim->run->controller.dispatch_ns;
    chip_sim_task_to_unit(sim, task, unit);
    take_unit(sim, unit);
    sim->units[unit] = (ChipUnit){
        .task = task, .free_at = at + (TimeNs)c->ns, .bytes_ns = c->bytes_ns, .cap = INFINITY};
    p->left[unit] = (double)c->ns;
    p->demand[unit] = (double)c->bytes_ns;
    p->share[unit] = 1;
    p->speed[unit] = 0;
    p->starting[unit] = true;
    p->begin[unit] = p->event[unit] = at;
    record_layer(sim, t, unit, RECORD_START);
    if (at == sim->now) begin(sim, unit);
}

void chip_sim_throttle(ChipSim *sim, uint32_t unit, float cap) {
    ChipUnit     *u = &sim->units[unit];
    UnitProgress *p = &sim->progress;
    u->cap = cap = fmaxf(cap, sim->setup.throttle_floor * u->bytes_ns);
    p->share[unit] = cap < u->bytes_ns ? (double)cap / (double)u->bytes_ns : 1;
    p->demand[unit] = (double)u->bytes_ns * p->share[unit];
    if (p->starting[unit]) return;
    p->active[unit] = p->demand[unit];
    sim->changed = true;
}

static void finish_layer(ChipSim *sim, uint32_t task) {
    ChipTask *t = &sim->tasks[task];
    bool      dropped = sim->result->answers[t->request.id].outcome != OUTCOMES;
    t->layer++;
    if (dropped) {
        sim->dropped_layers += t->layer;
        chip_sim_remove_task(sim, task);
    } else if (t->layer < model_of(sim, t)->n_layers) {
        chip_sim_task_to_waiting(sim, task);
    } else {
        sim->finished_layers += t->layer;
        chip_sim_answer(sim, task, sim->now <= t->request.deadline ? OUTCOME_MET : OUTCOME_LATE);
        chip_sim_remove_task(sim, task);
    }
}

static void end_layer(ChipSim *sim, uint32_t unit) {
    uint32_t        task = sim->units[unit].task;
    ChipTask       *t = &sim->tasks[task];
    const ChipCost *c = chip_cost(model_of(sim, t), t->layer, sim->setup.kind_of[unit]);
    UnitProgress   *p = &sim->progress;
    TimeNs          ran = sim->now - p->begin[unit];
    sim->result->layers++;
    sim->result->layer_pj += (double)c->energy_pj;
    sim->result->bytes += (double)c->bytes_ns * (double)c->ns;
    sim->result->busy_unit_ns += (double)ran;
    t->ran += ran;
    record_layer(sim, t, unit, RECORD_END);
    p->event[unit] = INT64_MAX;
    p->demand[unit] = p->active[unit] = p->speed[unit] = 0;
    p->runs[unit] = false;
    free_unit(sim, unit);
    sim->changed = true;
    finish_layer(sim, task);
}

bool chip_sim_unit_events(ChipSim *sim) {
    bool ended = false;
    for (uint32_t u = 0; u < sim->progress.n; u++) {
        if (sim->progress.event[u] != sim->now) continue;
        if (sim->progress.starting[u]) {
            begin(sim, u);
        } else {
            end_layer(sim, u);
            ended = true;
        }
    }
    return ended;
}

// Rounds up to nanoseconds, with a tolerance for floating-point error.
static TimeNs ceiling(double ns) {
    double x = ns - 1e-6;
    if (x <= 0) return 0;
    if (x > 1e17) return (TimeNs)1e17;
    TimeNs t = (TimeNs)x;
    return t + ((double)t < x);
}

static void set_speed(ChipSim *sim, uint32_t unit, double speed) {
    UnitProgress *p = &sim->progress;
    if (p->speed[unit] == speed) return;
    p->left[unit] -= (double)(sim->now - p->since[unit]) * p->speed[unit];
    p->since[unit] = sim->now;
    p->speed[unit] = speed;
    p->event[unit] = sim->units[unit].free_at = sim->now + ceiling(p->left[unit] / speed);
}

static void share_equally(ChipSim *sim) {
    const UnitProgress *p = &sim->progress;
    double              speed = bandwidth_equal_speed(p->active, p->n, (double)sim->setup.bytes_ns);
    for (uint32_t u = 0; u < p->n; u++)
        if (p->runs[u]) set_speed(sim, u, speed * p->share[u]);
}

static void share_max_min(ChipSim *sim) {
    UnitProgress *p = &sim->progress;
    bandwidth_max_min(p->active, p->n, (double)sim->setup.bytes_ns, p->got);
    for (uint32_t u = 0; u < p->n; u++) {
        double demand = (double)sim->units[u].bytes_ns;
        if (p->runs[u]) set_speed(sim, u, p->got[u] < demand ? p->got[u] / demand : 1);
    }
}

void chip_sim_set_speeds(ChipSim *sim) {
    if (!sim->changed) return;
    sim->changed = false;
    if (sim->run->sharing == CHIP_EQUAL)
        share_equally(sim);
    else
        share_max_min(sim);
}

// Four independent sums, for instruction-level parallelism.
double bandwidth_total(const double *x, uint32_t n) {
    double   sum[4] = {0};
    uint32_t i = 0;
    for (; i + 4 <= n; i += 4)
        for (uint32_t j = 0; j < 4; j++) sum[j] += x[i + j];
    for (; i < n; i++) sum[i % 4] += x[i];
    return (sum[0] + sum[1]) + (sum[2] + sum[3]);
}

double bandwidth_equal_speed(const double *demand, uint32_t n, double bytes_ns) {
    double sum = bandwidth_total(demand, n);
    return sum > bytes_ns ? bytes_ns / sum : 1;
}

void bandwidth_max_min(const double *demand, uint32_t n, double bytes_ns, double *out) {
    if (bandwidth_total(demand, n) <= bytes_ns) {
        memcpy(out, demand, n * sizeof *out);
        return;
    }
    double   left = bytes_ns, level = bytes_ns;
    uint32_t open = 0;
    for (uint32_t i = 0; i < n; i++) {
        out[i] = demand[i] > 0 ? -1 : 0;  // below 0: not settled
        open += demand[i] > 0;
    }
    for (bool settled = true; settled && open > 0;) {
        settled = false;
        level = left / open;
        for (uint32_t i = 0; i < n; i++) {
            if (out[i] >= 0 || demand[i] > level) continue;
            out[i] = demand[i];
            left -= demand[i];
            open--;
            settled = true;
        }
    }
    for (uint32_t i = 0; i < n; i++)
        if (out[i] < 0) out[i] = level;
}
