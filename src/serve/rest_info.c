// What can be read: the server, its models, their settings and statistics.
#include <stdio.h>
#include <string.h>

#include "base/json.h"
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
    return json_pack("{s:s,s:s,s:[s,s,s,s,s,s]}", "name", "cotenant", "version", COTENANT_VERSION,
                     "extensions", "binary_tensor_data", "model_repository", "schedule_policy",
                     "statistics", "model_configuration", "cotenant_timing");
}

static json_t *model_json(const Fleet *f, const Served *s) {
    json_t *versions = json_array();
    for (uint32_t i = 0; i < fleet_count(f); i++) {
        const Served *other = fleet_at(f, i);
        if (other->seat == s->seat && other->state == FLEET_READY)
            json_array_append_new(versions, json_string(other->version));
    }
    return json_pack("{s:s,s:o,s:s,s:o,s:o,s:{s:f}}", "name", s->name, "versions", versions,
                     "platform", "onnx_onnxv1", "inputs",
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
        char        type[32];
        const char *name = infer_type_name(s[i].type.dtype);
        json_t     *dims = shape_json(&s[i].type);
        (void)snprintf(type, sizeof type, "TYPE_%s",
                       name == NULL                 ? "INVALID"
                       : strcmp(name, "BYTES") == 0 ? "STRING"
                                                    : name);
        if (batched) json_array_remove(dims, 0);
        json_array_append_new(
            list, json_pack("{s:s,s:s,s:o}", "name", s[i].name, "data_type", type, "dims", dims));
    }
    return list;
}

static bool open_in_front(const InferSlot *s, uint32_t n) {
    for (uint32_t i = 0; i < n; i++)
        if (s[i].type.rank < 1 || s[i].type.dims[0] >= 0) return false;
    return n > 0;
}

static json_t *qos_json(const Served *s) {
    const TenantSettings *set = &s->config->set;
    char                  target[32], percentile[32], min[16], max[16];
    (void)snprintf(target, sizeof target, "%g", (double)s->target_ns / 1e6);
    (void)snprintf(percentile, sizeof percentile, "%g", set->percentile);
    (void)snprintf(min, sizeof min, "%d", set->min_cores);
    (void)snprintf(max, sizeof max, "%d", set->max_cores);
    const char *rows[][2] = {{"qos.target_ms", target}, {"qos.percentile", percentile},
                             {"qos.class", set->class}, {"qos.on_miss", set->on_miss},
                             {"qos.min_cores", min},    {"qos.max_cores", max}};
    json_t     *all = json_object();
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        json_object_set_new(all, rows[i][0], json_pack("{s:s}", "string_value", rows[i][1]));
    return all;
}

static json_t *config_json(const Served *s) {
    const TenantSettings *set = &s->config->set;
    bool                  batched = open_in_front(s->port.inputs, s->port.n_inputs) &&
                   open_in_front(s->port.outputs, s->port.n_outputs);
    int most = !batched ? 0 : set->max_batch > 0 ? set->max_batch : 1;
    return json_pack("{s:s,s:s,s:s,s:i,s:o,s:o,s:{s:{s:i}},s:{s:{s:i}},s:o}", "name", s->name,
                     "platform", "onnxruntime_onnx", "backend", "onnxruntime", "max_batch_size",
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
