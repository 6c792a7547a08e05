// REST endpoints other than inference: metadata, readiness, configuration, statistics, repository,
// metrics, why, trace.
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/str_buf.h"
#include "serve/models/model_override.h"
#include "serve/server_metadata.h"
#include "serve/rest/rest_int.h"

// INDEX_NS: time that one row of the index takes.
enum { INDEX_BYTES = 16 << 20, INDEX_NS = 1000 };

json_t *rest_shape_json(const Tensor *t) {
    json_t *dims = json_array();
    for (int32_t d = 0; d < t->rank; d++)
        json_array_append_new(dims, json_integer(t->dims[d] < 0 ? -1 : t->dims[d]));
    return dims;
}

static json_t *specs_json(const TensorSpec *s, uint32_t n) {
    json_t *list = json_array();
    for (uint32_t i = 0; i < n; i++) {
        const char *type = infer_type_name(s[i].type.dtype);
        json_array_append_new(list, json_pack("{s:s,s:s,s:o}", "name", s[i].name, "datatype",
                                              type != NULL ? type : "", "shape",
                                              rest_shape_json(&s[i].type)));
    }
    return list;
}

static json_t *server_json(const Rest *r) {
    json_t *list = json_array();
    for (const char *const *e = metadata_extensions; *e != NULL; e++)
        json_array_append_new(list, json_string(*e));
    return json_pack("{s:s,s:s,s:o}", "name", r->o.set->server_name, "version", COTENANT_VERSION,
                     "extensions", list);
}

static json_t *model_json(const ModelRegistry *f, const ModelInfo *s) {
    json_t *versions = json_array();
    for (uint32_t i = 0; i < registry_count(f); i++) {
        const ModelInfo *other = registry_at(f, i);
        if (other->slot == s->slot && other->state == MODEL_READY)
            json_array_append_new(versions, json_string(other->version));
    }
    return json_pack("{s:s,s:o,s:s,s:o,s:o,s:{s:f}}", "name", s->name, "versions", versions,
                     "platform", metadata_platform, "inputs",
                     specs_json(s->signature.inputs, s->signature.n_inputs), "outputs",
                     specs_json(s->signature.outputs, s->signature.n_outputs), "parameters",
                     "target_ms", (double)s->target_ns / 1e6);
}

static json_t *models_json(const ModelRegistry *f) {
    json_t     *list = json_array();
    const char *last = "";
    for (uint32_t i = 0; i < registry_count(f); i++) {
        const ModelInfo *s = registry_at(f, i);
        if (s->state != MODEL_READY || strcmp(s->name, last) == 0) continue;
        last = s->name;
        json_array_append_new(list, json_string(s->name));
    }
    return json_pack("{s:o}", "models", list);
}

static Str part_of(const char *text) {
    return text[0] != '\0' ? (Str){text, strlen(text)} : (Str){0};
}

static Err write_stats(RestCall *c, Arena *a, Str *out) {
    const RestOptions *o = &c->rest->o;
    return metrics_stats(o->metrics, o->registry, part_of(c->route.name), part_of(c->route.version),
                         a, out);
}

static void send_stats(RestCall *c) {
    Str  name = part_of(c->route.name), version = {c->route.version, strlen(c->route.version)};
    char why[METADATA_UNKNOWN];
    if (name.at != NULL && registry_find(c->rest->o.registry, name, version) == NULL)
        rest_error(c, 404, 0, metadata_unknown(name, version, why));
    else
        rest_page(c, "application/json", write_stats);
}

static void send_ready(RestCall *c, bool yes, const char *why_not) {
    if (yes)
        rest_json(c, 200, json_pack("{s:b}", "ready", 1));
    else
        rest_error(c, 503, 1, why_not);
}

static void send_model(RestCall *c) {
    Str        name = {c->route.name, strlen(c->route.name)};
    Str        version = {c->route.version, strlen(c->route.version)};
    ModelInfo *s = registry_find(c->rest->o.registry, name, version);
    char       why[METADATA_UNKNOWN];
    (void)snprintf(why, sizeof why, "model '%s' is not ready", c->route.name);
    if (s == NULL)
        rest_error(c, 404, 0, metadata_unknown(name, version, why));
    else if (c->route.kind == ROUTE_MODEL_READY)
        send_ready(c, s->state == MODEL_READY && s->quarantined <= c->x->arrived, why);
    else if (s->state != MODEL_READY)
        rest_error(c, 503, 1, why);
    else
        rest_json(c, 200,
                  c->route.kind == ROUTE_CONFIG ? rest_config_json(s)
                                                : model_json(c->rest->o.registry, s));
}

void rest_info(RestCall *c) {
    const RestOptions *o = &c->rest->o;
    switch (c->route.kind) {
    case ROUTE_SERVER: rest_json(c, 200, server_json(c->rest)); break;
    case ROUTE_LIVE: rest_json(c, 200, json_pack("{s:b}", "live", 1)); break;
    case ROUTE_READY: send_ready(c, o->ready(o->self), "server is not ready"); break;
    case ROUTE_MODELS: rest_json(c, 200, models_json(o->registry)); break;
    case ROUTE_STATS: send_stats(c); break;
    case ROUTE_TRACE_SETTING:
    case ROUTE_LOGGING: rest_settings(c); break;
    case ROUTE_REGIONS: rest_json(c, 200, json_array()); break;
    case ROUTE_UNREGISTER: rest_text(c, 200, "application/json", "", 0); break;
    case ROUTE_REGISTER: rest_error(c, 400, 0, SHARED_MEMORY_REJECTED); break;
    default: send_model(c); break;
    }
}

// Repository endpoints. Files cannot be uploaded.

// The body may be {"ready":true}: only models that are ready. False: it is something else.
static bool only_ready(const RestCall *c, bool *out) {
    json_t *doc;
    bool    ok = true;
    *out = false;
    if (c->x->body_len == 0) return true;
    if (json_parse("body", (const char *)c->x->body, c->x->body_len, &doc) != ERR_OK) return false;
    json_t *ready = json_object_get(doc, "ready");
    if (ready != NULL) {
        ok = json_is_boolean(ready);
        *out = json_is_true(ready);
    }
    json_decref(doc);
    return ok;
}

static void put_member(StrBuf *s, const char *before, const char *value) {
    str_buf_text(s, before);
    str_buf_json(s, value);
}

static void put_version(StrBuf *s, const ModelInfo *m, bool first) {
    put_member(s, first ? "{\"name\":" : ",{\"name\":", m->name);
    put_member(s, ",\"version\":", m->version);
    put_member(s, ",\"state\":", metadata_state(m->state));
    put_member(s, ",\"reason\":", m->reason != NULL ? m->reason : "");
    str_buf_text(s, "}");
}

static Err write_index(RestCall *c, Arena *a, Str *out) {
    const ModelRegistry *f = c->rest->o.registry;
    StrBuf               s;
    bool                 first = true;
    str_buf_begin(&s, a, INDEX_BYTES);
    str_buf_text(&s, "[");
    for (uint32_t i = 0; i < registry_count(f); i++) {
        const ModelInfo *m = registry_at(f, i);
        if (c->only_ready && m->state != MODEL_READY) continue;
        put_version(&s, m, first);
        first = false;
        coroutine_point(INDEX_NS);
    }
    str_buf_text(&s, "]");
    return str_buf_end(&s, out);
}

static void send_index(RestCall *c) {
    if (only_ready(c, &c->only_ready))
        rest_page(c, "application/json", write_index);
    else
        rest_error(c, 400, 0, "body is not {\"ready\":true|false}");
}

static void changed(void *self, const char *why) {
    RestCall *c = self;
    char      text[512];
    c->waiting = false;
    if (c->x == NULL) {
        rest_free(c);
    } else if (why != NULL) {
        (void)snprintf(text, sizeof text, "failed to %s '%s': %s",
                       c->route.kind == ROUTE_LOAD ? "load" : "unload", c->route.name, why);
        rest_error(c, 400, 0, text);
    } else {
        rest_text(c, 200, "application/json", "", 0);
    }
}

// The parameters of a load: a configuration may be given, files may not.
static Err read_load(const RestCall *c, ModelOverride *out) {
    json_t     *doc = NULL, *value;
    const char *key;
    Err         e = ERR_OK;
    *out = (ModelOverride){0};
    if (c->x->body_len == 0) return ERR_OK;
    TRY(json_parse("body", (const char *)c->x->body, c->x->body_len, &doc));
    json_object_foreach(json_object_get(doc, "parameters"), key, value) {
        if (e != ERR_OK) continue;
        if (strncmp(key, "file:", 5) == 0) e = err_set(ERR_UNSUPPORTED, UPLOAD_REJECTED);
        if (strcmp(key, "config") != 0) continue;
        e = json_is_string(value)
                ? model_override_parse((Str){json_string_value(value), json_string_length(value)},
                                       out)
                : err_set(ERR_INVALID, "parameters.config is not a string of JSON");
    }
    json_decref(doc);
    return e;
}

void rest_admin(RestCall *c) {
    ModelRegistry *f = c->rest->o.registry;
    ModelOverride  override;
    if (c->route.kind == ROUTE_INDEX) {
        send_index(c);
        return;
    }
    if (read_load(c, &override) != ERR_OK) {
        changed(c, err_why());
        return;
    }
    c->waiting = true;
    if (c->route.kind == ROUTE_LOAD)
        registry_load(f, c->route.name, &override, changed, c);
    else
        registry_unload(f, c->route.name, changed, c);
}

static Err write_metrics(RestCall *c, Arena *a, Str *out) {
    const RestOptions *o = &c->rest->o;
    LiveStatus         live;
    MetricsNow         at = {.registry = o->registry,
                             .live = &live,
                             .open_requests = dispatcher_in_flight(o->dispatcher),
                             .ready = o->ready(o->self)};
    TRY(node_live_status(o->engine, a, &live));
    o->listeners(o->self, &at);
    return metrics_text(o->metrics, &at, a, out);
}

static void send_why(RestCall *c) {
    Rest          *r = c->rest;
    Str            out, id = {c->route.name, strlen(c->route.name)};
    const Receipt *receipt = request_history_find(r->o.history, id);
    arena_rewind(&r->scratch, 0);
    if (receipt == NULL)
        rest_error(c, 404, 0, "no request with this id in the history (`why_requests`)");
    else if (request_history_json(receipt, &r->scratch, &out) != ERR_OK)
        rest_error(c, 503, 1, err_why());
    else
        rest_text(c, 200, "application/json", out.at, out.len);
}

static void send_misses(RestCall *c) {
    Rest   *r = c->rest;
    int64_t n = route_query(c->x->query, "misses", 10);
    Str     out;
    arena_rewind(&r->scratch, 0);
    if (n < 1 || n > 1000)
        rest_error(c, 400, 0, "misses must be from 1 to 1000");
    else if (request_history_misses(r->o.history, (uint32_t)n, &r->scratch, &out) != ERR_OK)
        rest_error(c, 503, 1, err_why());
    else
        rest_text(c, 200, "application/json", out.at, out.len);
}

static void traced(void *self, EngineTrace *t) {
    RestCall *c = self;
    Str       text;
    c->waiting = false;
    c->trace = t;
    c->rest->trace = NULL;
    c->rest->trace_call = NULL;
    if (c->x == NULL)
        rest_free(c);
    else if (engine_trace_text(t, &text) != ERR_OK)
        rest_error(c, 503, 1, err_why());
    else
        rest_piece(c, "application/json", text);
}

static void begin_trace(RestCall *c) {
    Rest              *r = c->rest;
    int64_t            seconds = route_query(c->x->query, "seconds", 1);
    EngineTraceOptions o = {.loop = r->o.loop,
                            .engine = r->o.engine,
                            .span = seconds * 1000000000,
                            .most = (size_t)r->o.set->trace_mb << 20,
                            .done = traced,
                            .self = c};
    o.names = dispatcher_tenant_names(r->o.dispatcher, &o.n_names);
    if (seconds < 1 || seconds > 60) {
        rest_error(c, 400, 0, "seconds must be from 1 to 60");
    } else if (r->trace != NULL) {
        rest_error(c, 409, 1, "another trace is being recorded; retry later");
    } else if (engine_trace_start(&r->trace, &o) != ERR_OK) {
        rest_error(c, 503, 1, err_why());
    } else {
        c->waiting = true;
        r->trace_call = c;
    }
}

void rest_ops(RestCall *c) {
    switch (c->route.kind) {
    case ROUTE_METRICS:
        rest_page(c, "text/plain; version=0.0.4; charset=utf-8", write_metrics);
        break;
    case ROUTE_WHY: send_why(c); break;
    case ROUTE_MISSES: send_misses(c); break;
    default: begin_trace(c); break;
    }
}
