#include "eval/chip_observation.h"

#include <math.h>
#include <string.h>

#include "base/json.h"

static void put_text(FILE *f, const char *text) { (void)fputs_unlocked(text, f); }

// A line has hundreds of numbers: this takes a tenth of fprintf's time.
static void put_int(FILE *f, int64_t x) {
    char     digits[24];
    char    *at = digits + sizeof digits;
    uint64_t left = x < 0 ? 0 - (uint64_t)x : (uint64_t)x;
    do *--at = (char)('0' + left % 10);
    while ((left /= 10) > 0);
    if (x < 0) *--at = '-';
    (void)fwrite_unlocked(at, 1, (size_t)(digits + sizeof digits - at), f);
}

// An index of CHIP_NONE is -1.
static void put_index(FILE *f, uint32_t i) { put_int(f, i == CHIP_NONE ? -1 : (int64_t)i); }

// Nine digits determine a float; infinity is null.
static void put_float(FILE *f, float x) {
    if (x == 0)
        put_text(f, "0.0");
    else if (isfinite(x))
        (void)fprintf(f, "%.9g", (double)x);
    else
        put_text(f, "null");
}

static void put_next(FILE *f, uint32_t i) {
    if (i > 0) (void)fputc_unlocked(',', f);
}

static void put_task(FILE *f, const ChipTask *t) {
    const int64_t fields[] = {(int64_t)t->request.id,
                              t->request.tenant,
                              t->request.level,
                              t->request.arrival,
                              t->request.deadline,
                              t->layer,
                              t->unit == CHIP_NONE ? -1 : (int64_t)t->unit,
                              t->since,
                              t->ran};
    put_text(f, "[");
    for (uint32_t i = 0; i < sizeof fields / sizeof *fields; i++) {
        put_next(f, i);
        put_int(f, fields[i]);
    }
    put_text(f, "]");
}

static void put_indices(FILE *f, const char *key, const uint32_t *at, uint32_t n) {
    put_text(f, key);
    for (uint32_t i = 0; i < n; i++) {
        put_next(f, i);
        put_int(f, at[i]);
    }
    put_text(f, "]");
}

static void put_unit(FILE *f, const ChipUnit *u) {
    put_text(f, "[");
    put_index(f, u->task);
    put_text(f, ",");
    put_int(f, u->free_at);
    put_text(f, ",");
    put_float(f, u->bytes_ns);
    put_text(f, ",");
    put_float(f, u->cap);
    put_text(f, "]");
}

static void put_ended(FILE *f, const EndedRequest *ended, uint32_t n) {
    put_text(f, ",\"ended\":[");
    for (uint32_t i = 0; i < n; i++) {
        put_next(f, i);
        put_text(f, "[");
        put_int(f, (int64_t)ended[i].id);
        put_text(f, ",");
        put_int(f, ended[i].tenant);
        put_text(f, ",\"");
        put_text(f, outcome_name(ended[i].outcome));
        put_text(f, "\",");
        put_int(f, ended[i].at);
        put_text(f, "]");
    }
    put_text(f, "]");
}

int64_t chip_observation_reward(const EndedRequest *ended, uint32_t n) {
    int64_t reward = 0;
    for (uint32_t i = 0; i < n; i++) reward += ended[i].outcome == OUTCOME_MET ? 1 : -1;
    return reward;
}

static void put_stats(FILE *f, const ChipView *v) {
    put_text(f, ",\"tenant_stats\":[");
    for (uint32_t i = 0; i < v->setup->n_tenants; i++) {
        put_next(f, i);
        put_text(f, "[");
        put_float(f, v->tenant_stats[i].hit_rate);
        put_text(f, ",");
        put_float(f, v->tenant_stats[i].n);
        put_text(f, "]");
    }
    put_text(f, "]");
}

static void put_state(FILE *f, const ChipView *v) {
    put_text(f, ",\"tasks\":[");
    for (uint32_t i = 0; i < v->n_tasks; i++) {
        put_next(f, i);
        put_task(f, &v->tasks[i]);
    }
    put_indices(f, "],\"waiting\":[", v->waiting, v->n_waiting);
    put_text(f, ",\"units\":[");
    for (uint32_t i = 0; i < v->setup->n_units; i++) {
        put_next(f, i);
        put_unit(f, &v->units[i]);
    }
    put_indices(f, "],\"free\":[", v->free, v->n_free);
    put_text(f, ",\"demand\":");
    put_float(f, v->demand);
}

void chip_observation_write(FILE *f, const ChipObservation *o) {
    put_text(f, o->plan ? "{\"type\":\"plan\",\"now\":" : "{\"type\":\"observation\",\"now\":");
    put_int(f, o->view->now);
    put_text(f, ",\"reward\":");
    put_int(f, chip_observation_reward(o->ended, o->n_ended));
    put_text(f, ",\"done\":false");
    if (o->committed) put_text(f, ",\"committed\":true");
    put_state(f, o->view);
    put_stats(f, o->view);
    put_ended(f, o->ended, o->n_ended);
    put_text(f, "}\n");
}

static Err write_document(FILE *f, json_t *doc) {
    if (doc == NULL) return err_set(ERR_LIMIT, "no memory for a line of JSON");
    Err e = json_write(f, doc);
    json_decref(doc);
    return e;
}

static json_t *costs_json(const ChipModel *m, size_t field) {
    json_t *layers = json_array();
    for (uint32_t l = 0; l < m->n_layers; l++) {
        json_t *kinds = json_array();
        for (uint32_t k = 0; k < m->n_kinds; k++) {
            float x;
            memcpy(&x, (const char *)chip_cost(m, l, k) + field, sizeof x);
            json_array_append_new(kinds, isfinite(x) ? json_real((double)x) : json_null());
        }
        json_array_append_new(layers, kinds);
    }
    return layers;
}

static json_t *layers_json(const ChipModel *m, json_t *rest, json_t *fastest) {
    json_t *names = json_array();
    for (uint32_t l = 0; l < m->n_layers; l++) {
        json_array_append_new(names, json_string(m->layers[l]));
        json_array_append_new(fastest, json_integer(m->fastest[l]));
    }
    for (uint32_t l = 0; l <= m->n_layers; l++)
        json_array_append_new(rest, json_real((double)m->rest_ns[l]));
    return names;
}

static json_t *tenants_json(const ChipScenario *s) {
    json_t *list = json_array();
    for (uint32_t i = 0; i < s->setup.n_tenants; i++) {
        const ChipTenant *t = &s->tenants[i];
        json_t           *rest = json_array(), *fastest = json_array();
        json_t           *names = layers_json(t->model, rest, fastest);
        json_array_append_new(
            list, json_pack("{s:s,s:f,s:f,s:f,s:o,s:o,s:o,s:o,s:o,s:o}", "name", t->name,
                            "priority", t->priority, "target", t->target, "deadline_base_ns",
                            chip_scenario_base_ns(s, i), "layers", names, "ns",
                            costs_json(t->model, offsetof(ChipCost, ns)), "bytes_ns",
                            costs_json(t->model, offsetof(ChipCost, bytes_ns)), "energy_pj",
                            costs_json(t->model, offsetof(ChipCost, energy_pj)), "rest_ns", rest,
                            "fastest", fastest));
    }
    return list;
}

static json_t *kinds_json(const ChipSetup *s, json_t *kind_of) {
    json_t *list = json_array();
    for (uint32_t k = 0; k < s->n_kinds; k++)
        json_array_append_new(list, json_pack("{s:s,s:i}", "name", s->kinds[k].name, "units",
                                              (int)s->kinds[k].n_units));
    for (uint32_t u = 0; u < s->n_units; u++)
        json_array_append_new(kind_of, json_integer(s->kind_of[u]));
    return list;
}

Err chip_observation_hello(FILE *f, const ChipScenario *s, const ChipReset *d) {
    json_t *kind_of = json_array(), *kinds = kinds_json(&s->setup, kind_of);
    json_t *reset = json_pack("{s:f,s:I,s:I,s:b}", "load", d->load, "seed", (json_int_t)d->seed,
                              "requests", (json_int_t)d->requests, "plans", d->plans);
    json_t *doc = json_pack(
        "{s:s,s:s,s:i,s:s,s:s,s:s,s:o,s:f,s:I,s:b,s:I,s:o,s:o,s:[sssssssss],s:[ssss],s:o}", "type",
        "hello", "protocol", "cotenant chip env", "version", CHIP_ENV_VERSION, "program",
        COTENANT_VERSION, "chip", s->package.name, "mix", s->workload.name, "reset", reset,
        "bytes_ns", (double)s->setup.bytes_ns, "period_ns", (json_int_t)s->setup.period, "firm",
        s->setup.firm, "dispatch_ns", (json_int_t)s->controller.dispatch_ns, "kinds", kinds,
        "kind_of", kind_of, "task_fields", "id", "tenant", "level", "arrival", "deadline", "layer",
        "unit", "since", "ran", "unit_fields", "task", "free_at", "bytes_ns", "cap", "tenants",
        tenants_json(s));
    return write_document(f, doc);
}

Err chip_observation_done(FILE *f, const ChipResult *r, const ChipSummary *s,
                          const EndedRequest *ended, uint32_t n) {
    json_t *summary =
        json_pack("{s:i,s:i,s:i,s:i,s:f,s:f,s:f,s:f,s:f,s:f,s:f}", "requests", (int)s->n, "met",
                  (int)s->met, "late", (int)s->late, "dropped", (int)s->dropped, "sla", s->sla,
                  "mean_ms", s->mean_ms, "p99_ms", s->p99_ms, "slowdown", s->slowdown, "energy_mj",
                  s->energy_mj, "unit_use", s->unit_use, "bandwidth_use", s->bandwidth_use);
    json_t *list = json_array();
    for (uint32_t i = 0; i < n; i++)
        json_array_append_new(
            list, json_pack("[I,I,s,I]", (json_int_t)ended[i].id, (json_int_t)ended[i].tenant,
                            outcome_name(ended[i].outcome), (json_int_t)ended[i].at));
    return write_document(f, json_pack("{s:s,s:I,s:b,s:I,s:I,s:o,s:o}", "type", "done", "reward",
                                       (json_int_t)chip_observation_reward(ended, n), "done", 1,
                                       "decisions", (json_int_t)r->decisions, "plans",
                                       (json_int_t)r->plans, "summary", summary, "ended", list));
}

void chip_observation_error(FILE *f, uint64_t line, const char *message) {
    put_text(f, "{\"type\":\"error\",\"line\":");
    put_int(f, (int64_t)line);
    put_text(f, ",\"message\":");
    json_put_string(f, message);
    put_text(f, "}\n");
    (void)fflush(f);
}
