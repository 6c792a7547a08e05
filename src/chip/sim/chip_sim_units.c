// Units: layers begin, go on at the speed that the memory allows, and end.
#include <stdbool.h>
#include <string.h>

#include "chip/sim/chip_sim_int.h"

static const ChipModel *model_of(const ChipSim *e, const ChipTask *t) {
    return e->setup.tenants[t->request.tenant].model;
}

static void take(ChipSim *e, uint32_t unit) {
    uint32_t i = 0;
    while (e->free[i] != unit) i++;
    memmove(e->free + i, e->free + i + 1, (--e->n_free - i) * sizeof *e->free);
}

static void give_back(ChipSim *e, uint32_t unit) {
    uint32_t i = e->n_free++;
    for (; i > 0 && e->free[i - 1] > unit; i--) e->free[i] = e->free[i - 1];
    e->free[i] = unit;
    e->units[unit] = (ChipUnit){.task = CHIP_NONE, .cap = INFINITY};
}

static void put_start(const ChipSim *e, const ChipTask *t, uint32_t unit, RecordKind kind) {
    Cores one = {0};
    if (e->run->records.put == NULL) return;
    cores_add(&one, unit);
    record_put(e->run->records, &(Record){.at = e->now,
                                          .kind = kind,
                                          .request = t->request.id,
                                          .tenant = t->request.tenant,
                                          .first = t->layer,
                                          .n_layers = 1,
                                          .wanted = kind == RECORD_START ? 1 : 0,
                                          .cores = one});
}

static void begin(ChipSim *e, uint32_t unit) {
    UnitProgress *l = &e->progress;
    l->starting[unit] = false;
    l->runs[unit] = true;
    l->since[unit] = e->now;
    l->asks[unit] = l->wants[unit];
    l->event[unit] = INT64_MAX;  // until it is known how fast it goes
    e->changed = true;
}

void chip_sim_start(ChipSim *e, uint32_t task, uint32_t unit) {
    const ChipTask *t = &e->tasks[task];
    const ChipCost *c = chip_cost(model_of(e, t), t->layer, e->setup.kind_of[unit]);
    UnitProgress   *l = &e->progress;
    TimeNs          at = e->now + e->run->controller.dispatch_ns;
    chip_sim_task_to_unit(e, task, unit);
    take(e, unit);
    e->units[unit] = (ChipUnit){
        .task = task, .free_at = at + (TimeNs)c->ns, .bytes_ns = c->bytes_ns, .cap = INFINITY};
    l->left[unit] = (double)c->ns;
    l->wants[unit] = (double)c->bytes_ns;
    l->part[unit] = 1;
    l->speed[unit] = 0;
    l->starting[unit] = true;
    l->begin[unit] = l->event[unit] = at;
    put_start(e, t, unit, RECORD_START);
    if (at == e->now) begin(e, unit);
}

void chip_sim_throttle(ChipSim *e, uint32_t unit, float cap) {
    ChipUnit     *u = &e->units[unit];
    UnitProgress *l = &e->progress;
    u->cap = cap;
    l->part[unit] = cap < u->bytes_ns ? (double)cap / (double)u->bytes_ns : 1;
    l->wants[unit] = (double)u->bytes_ns * l->part[unit];
    if (l->starting[unit]) return;
    l->asks[unit] = l->wants[unit];
    e->changed = true;
}

static void finish_layer(ChipSim *e, uint32_t task) {
    ChipTask *t = &e->tasks[task];
    bool      dropped = e->result->answers[t->request.id].outcome != OUTCOMES;
    t->layer++;
    if (dropped) {
        e->dropped_layers += t->layer;
        chip_sim_remove_task(e, task);
    } else if (t->layer < model_of(e, t)->n_layers) {
        chip_sim_task_to_waiting(e, task);
    } else {
        e->finished_layers += t->layer;
        chip_sim_answer(e, task, e->now <= t->request.deadline ? OUTCOME_MET : OUTCOME_LATE);
        chip_sim_remove_task(e, task);
    }
}

static void end_layer(ChipSim *e, uint32_t unit) {
    uint32_t        task = e->units[unit].task;
    ChipTask       *t = &e->tasks[task];
    const ChipCost *c = chip_cost(model_of(e, t), t->layer, e->setup.kind_of[unit]);
    UnitProgress   *l = &e->progress;
    TimeNs          ran = e->now - l->begin[unit];
    e->result->layers++;
    e->result->layer_pj += (double)c->energy_pj;
    e->result->bytes += (double)c->bytes_ns * (double)c->ns;
    e->result->busy_unit_ns += (double)ran;
    t->ran += ran;
    put_start(e, t, unit, RECORD_END);
    l->event[unit] = INT64_MAX;
    l->wants[unit] = l->asks[unit] = l->speed[unit] = 0;
    l->runs[unit] = false;
    give_back(e, unit);
    e->changed = true;
    finish_layer(e, task);
}

bool chip_sim_unit_events(ChipSim *e) {
    bool ended = false;
    for (uint32_t u = 0; u < e->progress.n; u++) {
        if (e->progress.event[u] != e->now) continue;
        if (e->progress.starting[u]) {
            begin(e, u);
        } else {
            end_layer(e, u);
            ended = true;
        }
    }
    return ended;
}

// The next whole nanosecond; what rounding added is not taken for another one.
static TimeNs ceiling(double ns) {
    double x = ns - 1e-6;
    if (x <= 0) return 0;
    if (x > 1e17) return (TimeNs)1e17;
    TimeNs t = (TimeNs)x;
    return t + ((double)t < x);
}

static void set_speed(ChipSim *e, uint32_t unit, double speed) {
    UnitProgress *l = &e->progress;
    if (l->speed[unit] == speed) return;
    l->left[unit] -= (double)(e->now - l->since[unit]) * l->speed[unit];
    l->since[unit] = e->now;
    l->speed[unit] = speed;
    l->event[unit] = e->units[unit].free_at = e->now + ceiling(l->left[unit] / speed);
}

static void flow_equal(ChipSim *e) {
    const UnitProgress *l = &e->progress;
    double              speed = bandwidth_equal_speed(l->asks, l->n, (double)e->setup.bytes_ns);
    for (uint32_t u = 0; u < l->n; u++)
        if (l->runs[u]) set_speed(e, u, speed * l->part[u]);
}

static void flow_max_min(ChipSim *e) {
    UnitProgress *l = &e->progress;
    bandwidth_max_min(l->asks, l->n, (double)e->setup.bytes_ns, l->got);
    for (uint32_t u = 0; u < l->n; u++) {
        double asks = (double)e->units[u].bytes_ns;
        if (l->runs[u]) set_speed(e, u, l->got[u] < asks ? l->got[u] / asks : 1);
    }
}

void chip_sim_set_speeds(ChipSim *e) {
    if (!e->changed) return;
    e->changed = false;
    if (e->run->sharing == CHIP_EQUAL)
        flow_equal(e);
    else
        flow_max_min(e);
}

// Four sums side by side, so that one need not wait for the other.
double bandwidth_total(const double *x, uint32_t n) {
    double   sum[4] = {0};
    uint32_t i = 0;
    for (; i + 4 <= n; i += 4)
        for (uint32_t j = 0; j < 4; j++) sum[j] += x[i + j];
    for (; i < n; i++) sum[i % 4] += x[i];
    return (sum[0] + sum[1]) + (sum[2] + sum[3]);
}

double bandwidth_equal_speed(const double *asks, uint32_t n, double bytes_ns) {
    double sum = bandwidth_total(asks, n);
    return sum > bytes_ns ? bytes_ns / sum : 1;
}

void bandwidth_max_min(const double *asks, uint32_t n, double bytes_ns, double *out) {
    if (bandwidth_total(asks, n) <= bytes_ns) {
        memcpy(out, asks, n * sizeof *out);
        return;
    }
    double   left = bytes_ns, level = bytes_ns;
    uint32_t open = 0;
    for (uint32_t i = 0; i < n; i++) {
        out[i] = asks[i] > 0 ? -1 : 0;  // below 0: not settled
        open += asks[i] > 0;
    }
    for (bool settled = true; settled && open > 0;) {
        settled = false;
        level = left / open;
        for (uint32_t i = 0; i < n; i++) {
            if (out[i] >= 0 || asks[i] > level) continue;
            out[i] = asks[i];
            left -= asks[i];
            open--;
            settled = true;
        }
    }
    for (uint32_t i = 0; i < n; i++)
        if (out[i] < 0) out[i] = level;
}
