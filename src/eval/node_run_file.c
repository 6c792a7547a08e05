#include "eval/run_file.h"

#include <string.h>

#include "node/node_model.h"

static json_t *spec_json(const NodeMachineSpec *s) {
    json_t *o = json_object();
#define PUT_int(v)         json_integer(v)
#define PUT_double(v)      json_real(v)
#define PUT_string(v)      json_string(v)
#define X(name, kind, ...) json_object_set_new(o, #name, PUT_##kind(s->name));
    NODE_MACHINE_SPEC(X)
#undef X
    return o;
}

static json_t *tenants_json(const NodeScenario *s) {
    json_t *list = json_array();
    for (uint32_t i = 0; i < s->mix.n; i++) {
        json_t *t = json_pack("{s:s,s:I}", "name", s->tenants[i].name, "qos_ns",
                              (json_int_t)s->tenants[i].qos_ns);
        if (s->measured) json_object_set_new(t, "model", model_to_json(&s->models[i]));
        json_array_append_new(list, t);
    }
    return list;
}

static json_t *header_json(const NodeScenario *s, const NodeRun *run, const ArgList *sets) {
    return json_pack("{s:s,s:b,s:s,s:s,s:o,s:I,s:I,s:I,s:o,s:o}", "run", "node", "live",
                     s->live != NULL, "mix", s->mix.name, "policy", run->policy->name, "set",
                     run_file_sets(sets), "seed", (json_int_t)run->seed, "requests",
                     (json_int_t)run->arrivals.n, "skip", (json_int_t)run->skip, "machine",
                     spec_json(&s->spec), "tenants", tenants_json(s));
}

Err node_run_file_write(const char *path, const NodeScenario *s, const NodeRun *run,
                        const ArgList *sets, const RecordList *records) {
    return run_file_save(path, header_json(s, run, sets), records);
}

static Err read_spec(const json_t *o, Arena *a, NodeMachineSpec *out) {
    Settings s = machine_settings(out, a);
    settings_default(&s);
    for (uint32_t i = 0; i < s.n_rows; i++) {
        const json_t *v = json_object_get(o, s.rows[i].key);
        if (v == NULL) return err_set(ERR_INVALID, "the machine has no '%s'", s.rows[i].key);
        const char *text = json_is_string(v)    ? json_string_value(v)
                           : json_is_integer(v) ? arena_printf(a, "%lld", json_integer_value(v))
                                                : arena_printf(a, "%.17g", json_real_value(v));
        if (json_is_string(v)) {
            if (strcmp(s.rows[i].key, "name") == 0) out->name = arena_str(a, text);
            if (strcmp(s.rows[i].key, "isa") == 0) out->isa = arena_str(a, text);
            continue;
        }
        TRY(settings_set(&s, arena_printf(a, "%s=%s", s.rows[i].key, text)));
    }
    return ERR_OK;
}

static Err read_tenant(const json_t *o, Arena *a, NodeScenario *s, uint32_t i) {
    const char   *name = NULL;
    const json_t *model = json_object_get(o, "model");
    int64_t       qos = 0;
    TRY(json_get_text(o, "name", &name));
    TRY(json_get_int(o, "qos_ns", 1, INT64_MAX / 4, &qos));
    s->mix.tenants[i] = (MixTenant){.network = arena_str(a, name), .qos_ns = qos, .share = 1};
    s->measured = model != NULL;
    if (model != NULL) return model_from_json(model, a, &s->models[i]);
    return model_of_zoo(s->mix.tenants[i].network, &s->spec, a, &s->models[i]);
}

static Err read_tenants(const json_t *header, Arena *a, NodeScenario *s) {
    json_t *list = NULL;
    TRY(json_get_array(header, "tenants", &list));
    if (json_array_size(list) == 0 || json_array_size(list) > MIX_TENANTS)
        return err_set(ERR_INVALID, "%zu tenants; expected 1 to 8", json_array_size(list));
    s->mix.n = (uint32_t)json_array_size(list);
    s->models = arena_new(a, NodeModel, s->mix.n);
    s->tenants = arena_new(a, NodeTenant, s->mix.n);
    for (uint32_t i = 0; i < s->mix.n; i++) {
        Err e = read_tenant(json_array_get(list, i), a, s, i);
        if (e != ERR_OK) return err_add(e, "tenant %u", i);
        if (s->models[i].counts[s->models[i].n_counts - 1] > s->view.n_cores)
            return err_set(ERR_INVALID, "tenant %u was measured on more cores than the machine has",
                           i);
    }
    return node_scenario_targets(s, MIX_SLACK);
}

static Err read_choice(const json_t *header, Arena *a, ArgList *sets, PolicyChoice *out) {
    const char *policy = NULL;
    json_t     *set = NULL;
    TRY(json_get_text(header, "policy", &policy));
    TRY(json_get_array(header, "set", &set));
    for (size_t i = 0; i < json_array_size(set) && sets->n < ARG_LIST_MAX; i++) {
        const char *text = json_string_value(json_array_get(set, i));
        size_t      n = strlen(policy);
        if (text != NULL && strncmp(text, policy, n) == 0 && text[n] == '.')
            sets->at[sets->n++] = arena_str(a, text);
    }
    return policy_choice_read(TIER_NODE, policy, sets, a, out);
}

static Err read_header(const json_t *header, Arena *a, NodeRunFile *g) {
    NodeScenario *s = &g->scenario;
    json_t       *machine = NULL;
    const char   *mix = NULL;
    int64_t       seed = 0, skip = 0;
    TRY(json_get_bool(header, "live", &g->live));
    TRY(json_get_int(header, "seed", 0, INT64_MAX, &seed));
    TRY(json_get_int(header, "skip", 0, UINT32_MAX, &skip));
    TRY(json_get_object(header, "machine", &machine));
    TRY(json_get_text(header, "mix", &mix));
    s->mix.name = arena_str(a, mix);
    g->seed = (uint64_t)seed;
    g->skip = (uint32_t)skip;
    TRY(read_spec(machine, a, &s->spec));
    if (s->spec.reserved >= s->spec.cores)
        return err_set(ERR_INVALID, "the machine reserves all of its cores");
    s->machine = s->spec.name;
    s->view = machine_view(&s->spec, a);
    TRY(read_choice(header, a, &g->sets, &g->choice));
    return read_tenants(header, a, s);
}

static Err read_arrivals(const RecordList *l, uint32_t n_tenants, Arena *a, Arrivals *out) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < l->n; i++) n += l->at[i].kind == RECORD_ARRIVE;
    Arrival *at = arena_try_new(a, Arrival, n);
    if (at == NULL) return err_set(ERR_LIMIT, "no memory for %u arrivals", n);
    for (uint32_t i = 0; i < l->n; i++) {
        const Record *r = &l->at[i];
        if (r->kind != RECORD_ARRIVE) continue;
        if (r->tenant >= n_tenants || r->request >= n)
            return err_set(ERR_INVALID, "record %u names an unknown request or tenant", i);
        at[r->request] = (Arrival){r->deadline, r->tenant};
    }
    *out = (Arrivals){at, n};
    return ERR_OK;
}

// An arrival is recorded when the engine sees it; its own time is the deadline less the target.
static Err shift_arrivals(NodeRunFile *g) {
    for (uint32_t i = 0; i < g->arrivals.n; i++) {
        Arrival *x = &g->arrivals.at[i];
        x->at -= g->scenario.tenants[x->tenant].qos_ns;
        if (x->at < 0 || (i > 0 && x->at < x[-1].at))
            return err_set(ERR_INVALID, "request %u arrives before the one ahead of it", i);
    }
    if (g->arrivals.n > 0) return ERR_OK;
    return err_set(ERR_INVALID, "the records have no arrivals");
}

Err node_run_file_read(const char *path, Arena *a, NodeRunFile *out) {
    json_t *header = NULL;
    *out = (NodeRunFile){0};
    TRY(record_read(path, a, &header, &out->records));
    Err e = read_header(header, a, out);
    json_decref(header);
    if (e == ERR_OK) e = read_arrivals(&out->records, out->scenario.mix.n, a, &out->arrivals);
    if (e == ERR_OK) e = shift_arrivals(out);
    return e == ERR_OK ? e : err_add(e, "%s", path);
}

static const char *layer_name(const void *self, uint32_t tenant, uint32_t layer) {
    const NodeScenario *s = self;
    if (tenant >= s->mix.n || layer >= s->models[tenant].n_layers) return NULL;
    return s->models[tenant].layers[layer].name;
}

Err node_run_file_trace(const char *path, const NodeScenario *s, const char *policy,
                        const RecordList *records, Arena *scratch) {
    const char *names[MIX_TENANTS];
    for (uint32_t i = 0; i < s->mix.n; i++) names[i] = s->tenants[i].name;
    Timeline t = {.title =
                      arena_printf(scratch, "%s on %s, mix %s", policy, s->machine, s->mix.name),
                  .tenants = names,
                  .n_tenants = s->mix.n,
                  .n_cores = s->view.n_cores,
                  .layer = layer_name,
                  .self = s};
    return run_file_save_trace(path, &t, records, scratch);
}
