// Units: layers begin, go on at the speed that the memory allows, and end.
#include <string.h>

#include "chip/chip_sim_int.h"
#include "chip/share.h"

static const ChipModel *model_of(const Engine *e, const ChipTask *t) {
    return e->setup.tenants[t->request.tenant].model;
}

static void take(Engine *e, uint32_t unit) {
    uint32_t i = 0;
    while (e->free[i] != unit) i++;
    memmove(e->free + i, e->free + i + 1, (--e->n_free - i) * sizeof *e->free);
}

static void give_back(Engine *e, uint32_t unit) {
    uint32_t i = e->n_free++;
    for (; i > 0 && e->free[i - 1] > unit; i--) e->free[i] = e->free[i - 1];
    e->free[i] = unit;
    e->units[unit] = (ChipUnit){.task = CHIP_NONE, .cap = INFINITY};
}

static void put_start(const Engine *e, const ChipTask *t, uint32_t unit, RecordKind kind) {
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

static void begin(Engine *e, uint32_t unit) {
    Lanes *l = &e->lanes;
    l->starting[unit] = false;
    l->runs[unit] = true;
    l->since[unit] = e->now;
    l->asks[unit] = l->wants[unit];
    l->event[unit] = INT64_MAX;  // until it is known how fast it goes
    e->changed = true;
}

void engine_start(Engine *e, uint32_t task, uint32_t unit) {
    const ChipTask *t = &e->tasks[task];
    const ChipCost *c = chip_cost(model_of(e, t), t->layer, e->setup.kind_of[unit]);
    Lanes          *l = &e->lanes;
    TimeNs          at = e->now + e->run->controller.dispatch_ns;
    engine_to_unit(e, task, unit);
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

void engine_throttle(Engine *e, uint32_t unit, float cap) {
    ChipUnit *u = &e->units[unit];
    Lanes    *l = &e->lanes;
    u->cap = cap;
    l->part[unit] = cap < u->bytes_ns ? (double)cap / (double)u->bytes_ns : 1;
    l->wants[unit] = (double)u->bytes_ns * l->part[unit];
    if (l->starting[unit]) return;
    l->asks[unit] = l->wants[unit];
    e->changed = true;
}

static void finish_layer(Engine *e, uint32_t task) {
    ChipTask *t = &e->tasks[task];
    bool      dropped = e->result->answers[t->request.id].outcome != OUTCOMES;
    t->layer++;
    if (dropped) {
        e->dropped_layers += t->layer;
        engine_forget(e, task);
    } else if (t->layer < model_of(e, t)->n_layers) {
        engine_to_waiting(e, task);
    } else {
        e->finished_layers += t->layer;
        engine_answer(e, task, e->now <= t->request.deadline ? OUTCOME_MET : OUTCOME_LATE);
        engine_forget(e, task);
    }
}

static void end_layer(Engine *e, uint32_t unit) {
    uint32_t        task = e->units[unit].task;
    ChipTask       *t = &e->tasks[task];
    const ChipCost *c = chip_cost(model_of(e, t), t->layer, e->setup.kind_of[unit]);
    Lanes          *l = &e->lanes;
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

bool engine_units(Engine *e) {
    bool ended = false;
    for (uint32_t u = 0; u < e->lanes.n; u++) {
        if (e->lanes.event[u] != e->now) continue;
        if (e->lanes.starting[u]) {
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

static void set_speed(Engine *e, uint32_t unit, double speed) {
    Lanes *l = &e->lanes;
    if (l->speed[unit] == speed) return;
    l->left[unit] -= (double)(e->now - l->since[unit]) * l->speed[unit];
    l->since[unit] = e->now;
    l->speed[unit] = speed;
    l->event[unit] = e->units[unit].free_at = e->now + ceiling(l->left[unit] / speed);
}

static void flow_equal(Engine *e) {
    const Lanes *l = &e->lanes;
    double       speed = share_equal(l->asks, l->n, (double)e->setup.bytes_ns);
    for (uint32_t u = 0; u < l->n; u++)
        if (l->runs[u]) set_speed(e, u, speed * l->part[u]);
}

static void flow_max_min(Engine *e) {
    Lanes *l = &e->lanes;
    share_max_min(l->asks, l->n, (double)e->setup.bytes_ns, l->got);
    for (uint32_t u = 0; u < l->n; u++) {
        double asks = (double)e->units[u].bytes_ns;
        if (l->runs[u]) set_speed(e, u, l->got[u] < asks ? l->got[u] / asks : 1);
    }
}

void engine_flow(Engine *e) {
    if (!e->changed) return;
    e->changed = false;
    if (e->run->sharing == CHIP_EQUAL)
        flow_equal(e);
    else
        flow_max_min(e);
}
