#include "chip/chip_scenario.h"

#include <math.h>

#include "chip/cost/layer_cost_table.h"
#include "sim/arrivals.h"

enum { BURST_REQUESTS = 16 };  // mean length of a burst

// Deadlines over the base, for high, medium and low service.
static const double levels[][CHIP_LEVELS] = {[CHIP_DEADLINES_MOCA] = {0.8, 1, 1.2},
                                             [CHIP_DEADLINES_PLANARIA] = {0.25, 0.5, 1},
                                             [CHIP_DEADLINES_MLPERF] = {0.8, 1, 1.2}};

static Err open_table(const ChipScenario *s, Arena *a, LayerCostTable *out) {
    const char *units[CHIP_KINDS];
    for (uint32_t k = 0; k < s->package.n_kinds; k++) units[k] = s->package.kinds[k].unit->name;
    TRY(layer_cost_table_read(s->options.table, a, out));
    out->fill = s->options.table_fill;
    return layer_cost_table_check(out, s->workload.networks, s->workload.n, units,
                                  s->package.n_kinds);
}

static Err open_models(const ChipScenario *s, Arena *a) {
    LayerCostTable        own = {0};
    const LayerCostTable *table = s->options.table != NULL ? &own : NULL;
    const RequestTrace   *t = s->options.trace;
    if (table != NULL) TRY(open_table(s, a, &own));
    for (uint32_t i = 0; i < s->workload.n; i++) {
        TRY(cost_model_of(s->workload.networks[i], &s->package, table, a, &s->models[i]));
        s->tenants[i] =
            (ChipTenant){.model = &s->models[i],
                         .name = t != NULL ? t->tenants[i].name : s->workload.networks[i],
                         .priority = 1,
                         .target = s->options.target};
        s->share[i] = t != NULL ? (double)t->tenants[i].n / t->n : 1.0 / s->workload.n;
    }
    return ERR_OK;
}

static void open_setup(ChipScenario *s, Arena *a) {
    const Package *p = &s->package;
    double         ghz = p->clock_mhz / 1e3, bytes = s->options.bandwidth;
    ChipKind      *kinds = arena_new(a, ChipKind, p->n_kinds);
    uint8_t       *kind_of = arena_new(a, uint8_t, p->n_units);
    uint32_t       n = 0;
    for (uint32_t k = 0; k < p->n_kinds; k++) {
        kinds[k] = (ChipKind){p->kinds[k].unit->name, p->kinds[k].count};
        for (uint32_t u = 0; u < p->kinds[k].count; u++) kind_of[n++] = (uint8_t)k;
    }
    double us = s->options.period_us > 0 ? s->options.period_us : p->period_us;
    s->setup = (ChipSetup){.tenants = s->tenants,
                           .kinds = kinds,
                           .kind_of = kind_of,
                           .n_tenants = s->workload.n,
                           .n_kinds = p->n_kinds,
                           .n_units = p->n_units,
                           .bytes_ns = (float)((bytes > 0 ? bytes : p->bytes_cycle) * ghz),
                           .throttle_floor = (float)p->throttle_floor,
                           .period = (TimeNs)(us * 1e3),
                           .firm = s->options.firm};
    s->controller = (ChipController){.mac_ns = p->macs_cycle * ghz,
                                     .op_ns = p->ops_cycle * ghz,
                                     .mac_pj = p->mac_pj,
                                     .op_pj = p->op_pj,
                                     .byte_pj = p->byte_pj,
                                     .dispatch_ns = (TimeNs)(p->dispatch_cycles / ghz)};
    if (s->setup.period < 1) s->setup.period = 1;
    s->sharing = s->options.sharing;
}

static Err open_capacity(ChipScenario *s) {
    const Package *p = &s->package;
    CapacityCase   c = {.models = s->models,
                        .share = s->share,
                        .n = s->workload.n,
                        .kinds = s->setup.kinds,
                        .n_kinds = p->n_kinds,
                        .bytes_ns = p->bytes_cycle * p->clock_mhz / 1e3,
                        .dispatch_ns = (double)s->controller.dispatch_ns};
    return capacity_find(&c, &s->capacity);
}

Err chip_scenario_open(const ChipScenarioOptions *o, Arena *a, ChipScenario *out) {
    ChipScenario s = {.options = *o};
    TRY(package_load(o->package, a, &s.package));
    TRY(o->trace != NULL ? workload_of_trace(o->trace, a, &s.workload)
                         : workload_find(o->workload, a, &s.workload));
    s.models = arena_new(a, ChipModel, s.workload.n);
    s.tenants = arena_new(a, ChipTenant, s.workload.n);
    s.share = arena_new(a, double, s.workload.n);
    TRY(open_models(&s, a));
    open_setup(&s, a);
    TRY(open_capacity(&s));
    *out = s;
    return ERR_OK;
}

double chip_scenario_base_ns(const ChipScenario *s, uint32_t tenant) {
    const ChipScenarioOptions *o = &s->options;
    double                     slack = o->slack > 0 ? o->slack : CHIP_SCENARIO_SLACK;
    double                     target = s->workload.target_ms[tenant] * 1e6;
    if (o->deadlines == CHIP_DEADLINES_PLANARIA && !(o->slack > 0))
        slack *= 4;  // its tightest is a quarter
    if (o->deadlines == CHIP_DEADLINES_MLPERF && target > 0) return target;
    return slack * fmax((double)s->models[tenant].rest_ns[0], CHIP_SCENARIO_LEAST_NS);
}

static Err given_trace(const ChipScenario *s, Arena *a, ChipTrace *out) {
    const RequestTrace *t = s->options.trace;
    const uint32_t      medium = 1;
    ChipRequest        *at = arena_try_new(a, ChipRequest, t->n);
    if (at == NULL) return err_set(ERR_LIMIT, "no memory for %u requests", t->n);
    for (uint32_t i = 0; i < t->n; i++) {
        uint32_t tenant = t->at[i].tenant;
        double   base = chip_scenario_base_ns(s, tenant) * levels[s->options.deadlines][medium];
        TimeNs   due = t->at[i].due > 0 ? t->at[i].due : (TimeNs)ceil(base);
        at[i] = (ChipRequest){.id = i,
                              .arrival = t->at[i].at,
                              .deadline = t->at[i].at + due,
                              .tenant = tenant,
                              .level = medium};
    }
    *out = (ChipTrace){at, t->n};
    return ERR_OK;
}

double chip_scenario_trace_load(const ChipScenario *s) {
    const RequestTrace *t = s->options.trace;
    double              span_s = (double)(t->at[t->n - 1].at - t->at[0].at) / 1e9;
    return span_s > 0 ? (t->n - 1) / span_s / s->capacity : 0;
}

Err chip_scenario_trace(const ChipScenario *s, const ChipTraffic *t, Arena *a, ChipTrace *out) {
    if (s->options.trace != NULL) return given_trace(s, a, out);
    Rng      rng = {t->seed}, level = rng_fork(rng, 4);
    double   rate = t->load * s->capacity;
    Arrivals x;
    if (t->burst > 1)
        TRY(arrivals_bursty(a, rng, rate, (Bursts){t->burst, BURST_REQUESTS}, s->share,
                            s->workload.n, t->requests, &x));
    else
        TRY(arrivals_poisson(a, rng, rate, s->share, s->workload.n, t->requests, &x));
    ChipRequest *at = arena_try_new(a, ChipRequest, x.n);
    if (at == NULL) return err_set(ERR_LIMIT, "no memory for %u requests", x.n);
    for (uint32_t i = 0; i < x.n; i++) {
        uint32_t tenant = x.at[i].tenant, l = (uint32_t)rng_below(&level, CHIP_LEVELS);
        double   ns = ceil(chip_scenario_base_ns(s, tenant) * levels[s->options.deadlines][l]);
        at[i] = (ChipRequest){.id = i,
                              .arrival = x.at[i].at,
                              .deadline = x.at[i].at + (TimeNs)ns,
                              .tenant = tenant,
                              .level = l};
    }
    *out = (ChipTrace){at, x.n};
    return ERR_OK;
}

ChipRun chip_scenario_run(const ChipScenario *s, ChipTrace trace) {
    return (ChipRun){.setup = s->setup,
                     .controller = s->controller,
                     .sharing = s->sharing,
                     .idle_mw = s->package.idle_mw,
                     .trace = trace,
                     .skip = trace.n / 20};
}
