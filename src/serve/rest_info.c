// What can be read: the server, its models, their settings and statistics.
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "serve/card.h"
#include "serve/rest_int.h"

static json_t *shape_json(const Tensor *t) {
    json_t *dims = json_array();
    for (int32_t d = 0; d < t->rank; d++)
        json_array_append_new(dims, json_integer(t->dims[d] < 0 ? -1 : t->dims[d]));
    return dims;
}

static json_t *slots_json(const InferSlot *s, uint32_t n) {
    json_t *list = json_array();
    for (uint32_t i = 0; i < n; i++) {
        const char *type = infer_type_name(s[i].type.dtype);
        json_array_append_new(list,
                              json_pack("{s:s,s:s,s:o}", "name", s[i].name, "datatype",
                                        type != NULL ? type : "", "shape", shape_json(&s[i].type)));
    }
    return list;
}

static json_t *server_json(void) {
    json_t *list = json_array();
    for (const char *const *e = card_extensions; *e != NULL; e++)
        json_array_append_new(list, json_string(*e));
    return json_pack("{s:s,s:s,s:o}", "name", "cotenant", "version", COTENANT_VERSION, "extensions",
                     list);
}

static json_t *model_json(const Fleet *f, const Served *s) {
    json_t *versions = json_array();
    for (uint32_t i = 0; i < fleet_count(f); i++) {
        const Served *other = fleet_at(f, i);
        if (other->seat == s->seat && other->state == FLEET_READY)
            json_array_append_new(versions, json_string(other->version));
    }
    return json_pack("{s:s,s:o,s:s,s:o,s:o,s:{s:f}}", "name", s->name, "versions", versions,
                     "platform", card_platform, "inputs",
                     slots_json(s->port.inputs, s->port.n_inputs), "outputs",
                     slots_json(s->port.outputs, s->port.n_outputs), "parameters", "target_ms",
                     (double)s->target_ns / 1e6);
}

static json_t *models_json(const Fleet *f) {
    json_t     *list = json_array();
    const char *last = "";
    for (uint32_t i = 0; i < fleet_count(f); i++) {
        const Served *s = fleet_at(f, i);
        if (s->state != FLEET_READY || strcmp(s->name, last) == 0) continue;
        last = s->name;
        json_array_append_new(list, json_string(s->name));
    }
    return json_pack("{s:o}", "models", list);
}

// A dimension that is open in front is the batch, which Triton's configurations leave out.
static json_t *config_slots(const InferSlot *s, uint32_t n, bool batched) {
    json_t *list = json_array();
    for (uint32_t i = 0; i < n; i++) {
        uint32_t    number;
        const char *type = card_type(s[i].type.dtype, &number);
        json_t     *dims = shape_json(&s[i].type);
        if (batched) json_array_remove(dims, 0);
        json_array_append_new(
            list, json_pack("{s:s,s:s,s:o}", "name", s[i].name, "data_type", type, "dims", dims));
    }
    return list;
}

static json_t *qos_json(const Served *s) {
    CardRow rows[CARD_ROWS];
    json_t *all = json_object();
    card_qos(s, rows);
    for (uint32_t i = 0; i < CARD_ROWS; i++)
        json_object_set_new(all, rows[i].key, json_pack("{s:s}", "string_value", rows[i].value));
    return all;
}

static json_t *config_json(const Served *s) {
    const TenantSettings *set = &s->config->set;
    int                   most = card_batch(s);
    return json_pack("{s:s,s:s,s:s,s:i,s:o,s:o,s:{s:{s:i}},s:{s:{s:i}},s:o}", "name", s->name,
                     "platform", card_config_platform, "backend", card_backend, "max_batch_size",
                     most, "input", config_slots(s->port.inputs, s->port.n_inputs, most > 0),
                     "output", config_slots(s->port.outputs, s->port.n_outputs, most > 0),
                     "version_policy", "latest", "num_versions", set->versions, "dynamic_batching",
                     "default_queue_policy", "max_queue_size", set->queue, "parameters",
                     qos_json(s));
}

static void tell_stats(RestCall *c) {
    Rest *r = c->rest;
    Str   out, name = {c->route.name, strlen(c->route.name)};
    Str   version = {c->route.version, strlen(c->route.version)};
    if (name.len > 0 && fleet_find(r->o.fleet, name, version) == NULL) {
        rest_error(c->x, c, 404, 0, "this model is not known");
        return;
    }
    if (name.len == 0) name.at = NULL;
    if (version.len == 0) version.at = NULL;
    arena_rewind(&r->scratch, 0);
    Err e = metrics_stats(r->o.metrics, r->o.fleet, name, version, &r->scratch, &out);
    if (e == ERR_OK)
        rest_text(c, 200, "application/json", out.at, out.len);
    else
        rest_error(c->x, c, 503, 1, err_why());
}

static void tell_ready(RestCall *c, bool yes, const char *otherwise) {
    if (yes)
        rest_json(c, 200, json_pack("{s:b}", "ready", 1));
    else
        rest_error(c->x, c, 503, 1, otherwise);
}

static void tell_model(RestCall *c) {
    Str     name = {c->route.name, strlen(c->route.name)};
    Str     version = {c->route.version, strlen(c->route.version)};
    Served *s = fleet_find(c->rest->o.fleet, name, version);
    char    why[200];
    (void)snprintf(why, sizeof why, "model '%s' is not %s", c->route.name,
                   s == NULL ? "known" : "ready");
    if (s == NULL)
        rest_error(c->x, c, 404, 0, why);
    else if (c->route.kind == ROUTE_MODEL_READY)
        tell_ready(c, s->state == FLEET_READY && s->quarantined <= c->x->arrived, why);
    else if (s->state != FLEET_READY)
        rest_error(c->x, c, 503, 1, why);
    else
        rest_json(c, 200,
                  c->route.kind == ROUTE_CONFIG ? config_json(s) : model_json(c->rest->o.fleet, s));
}

void rest_info(RestCall *c) {
    const RestOptions *o = &c->rest->o;
    switch (c->route.kind) {
    case ROUTE_SERVER: rest_json(c, 200, server_json()); break;
    case ROUTE_LIVE: rest_json(c, 200, json_pack("{s:b}", "live", 1)); break;
    case ROUTE_READY: tell_ready(c, o->ready(o->self), "the server is not ready"); break;
    case ROUTE_MODELS: rest_json(c, 200, models_json(o->fleet)); break;
    case ROUTE_STATS: tell_stats(c); break;
    default: tell_model(c); break;
    }
}
