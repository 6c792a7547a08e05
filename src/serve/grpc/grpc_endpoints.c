// gRPC methods other than inference: metadata, readiness, configuration, statistics, repository.
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "serve/server_metadata.h"
#include "serve/grpc/grpc_int.h"

enum { RESPONSE_BYTES = 64 << 20 };

typedef struct ModelQuery {
    Str name, version;
} ModelQuery;

// Most requests have the model's name in field 1 and its version in field 2.
static Err read_query(Str message, ModelQuery *q) {
    WireReader in = wire_reader(message.at, message.len);
    WireField  f;
    bool       more = true;
    *q = (ModelQuery){{"", 0}, {"", 0}};
    while (more) {
        TRY(wire_next(&in, &f, &more));
        if (more && f.number == 1) TRY(wire_text(&in, &f, &q->name));
        if (more && f.number == 2) TRY(wire_text(&in, &f, &q->version));
    }
    return ERR_OK;
}

static bool usable(const GrpcCall *c, const ModelInfo *s) {
    return s->state == MODEL_READY && s->quarantined <= c->x->arrived;
}

static void put_metadata_specs(WireWriter *o, uint32_t field, const TensorSpec *s, uint32_t n) {
    for (uint32_t i = 0; i < n; i++) {
        size_t mark = wire_begin(o, field);
        wire_put_text(o, 1, s[i].name);
        wire_put_text(o, 2, infer_type_name(s[i].type.dtype));
        if (s[i].type.rank > 0) wire_put_packed(o, 3, s[i].type.dims, (size_t)s[i].type.rank);
        wire_end(o, mark);
    }
}

static void put_pair(WireWriter *o, uint32_t field, const char *key, const char *value) {
    size_t mark = wire_begin(o, field);
    wire_put_text(o, 1, key);
    wire_put_text(o, 2, value);
    wire_end(o, mark);
}

static void put_model(WireWriter *o, const ModelRegistry *f, const ModelInfo *s) {
    char target[32];
    (void)snprintf(target, sizeof target, "%g", (double)s->target_ns / 1e6);
    wire_put_text(o, 1, s->name);
    for (uint32_t i = 0; i < registry_count(f); i++) {
        const ModelInfo *other = registry_at(f, i);
        if (other->slot == s->slot && other->state == MODEL_READY)
            wire_put_text(o, 2, other->version);
    }
    wire_put_text(o, 3, metadata_platform);
    put_metadata_specs(o, 4, s->signature.inputs, s->signature.n_inputs);
    put_metadata_specs(o, 5, s->signature.outputs, s->signature.n_outputs);
    put_pair(o, 6, "target_ms", target);
}

static void put_sum(WireWriter *o, uint32_t field, MetricsSum sum) {
    size_t mark = wire_begin(o, field);
    wire_put_uint(o, 1, sum.count);
    wire_put_uint(o, 2, (uint64_t)sum.ns);
    wire_end(o, mark);
}

static void put_row(WireWriter *o, const MetricsRow *r) {
    size_t row = wire_begin(o, 1);
    wire_put_text(o, 1, r->model);
    wire_put_text(o, 2, r->version);
    wire_put_uint(o, 3, r->last_ms);
    wire_put_uint(o, 4, r->inferences);
    wire_put_uint(o, 5, r->executions);
    size_t sums = wire_begin(o, 6);
    put_sum(o, 1, r->success);
    put_sum(o, 2, r->fail);
    put_sum(o, 3, r->queue);
    put_sum(o, 4, r->compute_input);
    put_sum(o, 5, r->compute_infer);
    put_sum(o, 6, r->compute_output);
    wire_end(o, sums);
    for (uint32_t i = 0; i < r->n_batches; i++) {
        size_t batch = wire_begin(o, 7);
        wire_put_uint(o, 1, r->batches[i].size);
        put_sum(o, 3, r->batches[i].compute_infer);
        wire_end(o, batch);
    }
    wire_end(o, row);
}

static bool is(Str want, const char *have) {
    return want.len == 0 || text_equal(want, text_of(have));
}

static void put_stats(WireWriter *o, const Grpc *g, const ModelQuery *q) {
    for (uint32_t i = 0; i < registry_count(g->o.registry); i++) {
        const ModelInfo *s = registry_at(g->o.registry, i);
        MetricsRow       row;
        if (s->state != MODEL_READY || !is(q->name, s->name) || !is(q->version, s->version))
            continue;
        if (metrics_read(g->o.metrics, s->slot, s->version, &row)) put_row(o, &row);
    }
}

static void send_server(const GrpcCall *c, WireWriter *o) {
    wire_put_text(o, 1, c->g->o.set->server_name);
    wire_put_text(o, 2, COTENANT_VERSION);
    for (const char *const *e = metadata_extensions; *e != NULL; e++) wire_put_text(o, 3, *e);
}

static ModelInfo *find(const GrpcCall *c, const ModelQuery *q) {
    Str version = q->version.len > 0 ? q->version : (Str){0};
    return registry_find(c->g->o.registry, q->name, version);
}

static void unknown(GrpcCall *c, const ModelQuery *q) {
    char why[METADATA_UNKNOWN];
    grpc_fail(c->x, GRPC_NOT_FOUND, 0, metadata_unknown(q->name, q->version, why));
}

// SERVING (1) or NOT_SERVING (2). The service is the server ("", or the protocol's name) or a
// model.
static void send_health(GrpcCall *c, const ModelQuery *q, WireWriter *o) {
    const GrpcOptions *g = &c->g->o;
    bool               whole = q->name.len == 0 || is(q->name, "inference.GRPCInferenceService");
    const ModelInfo   *s = whole ? NULL : find(c, &(ModelQuery){.name = q->name});
    if (!whole && s == NULL) {
        unknown(c, q);
        return;
    }
    wire_put_uint(o, 1, (whole ? g->ready(g->self) : usable(c, s)) ? 1 : 2);
    grpc_answer(c, o);
}

static void send_model(GrpcCall *c, const ModelQuery *q, WireWriter *o) {
    const ModelInfo *s = find(c, q);
    char             why[METADATA_UNKNOWN], name[INFER_PRINTABLE];
    if (s == NULL) {
        unknown(c, q);
        return;
    }
    if (s->state != MODEL_READY) {
        (void)snprintf(why, sizeof why, "model '%s' is not ready", infer_printable(q->name, name));
        grpc_fail(c->x, GRPC_UNAVAILABLE, 0, why);
        return;
    }
    if (c->kind == GRPC_CONFIG)
        grpc_put_config(o, s);
    else
        put_model(o, c->g->o.registry, s);
    grpc_answer(c, o);
}

static void send_stats(GrpcCall *c, const ModelQuery *q, WireWriter *o) {
    if (q->name.len > 0 && find(c, q) == NULL) {
        unknown(c, q);
        return;
    }
    put_stats(o, c->g, q);
    grpc_answer(c, o);
}

// A model that the server does not have is not ready; that is no error.
static void put_model_ready(const GrpcCall *c, const ModelQuery *q, WireWriter *o) {
    const ModelInfo *s = find(c, q);
    wire_put_uint(o, 1, s != NULL && usable(c, s));
}

void grpc_info(GrpcCall *c) {
    const GrpcOptions *g = &c->g->o;
    WireWriter         o = wire_writer(&c->g->scratch, RESPONSE_BYTES);
    ModelQuery         q;
    if (c->kind == GRPC_TRACE_SETTING || c->kind == GRPC_LOG_SETTINGS) {
        grpc_settings(c);
        return;
    }
    if (read_query(c->message, &q) != ERR_OK) {
        grpc_fail(c->x, GRPC_INVALID, 0, err_why());
        return;
    }
    switch (c->kind) {
    case GRPC_HEALTH: send_health(c, &q, &o); return;
    case GRPC_STATS: send_stats(c, &q, &o); return;
    case GRPC_LIVE: wire_put_uint(&o, 1, 1); break;
    case GRPC_READY: wire_put_uint(&o, 1, g->ready(g->self)); break;
    case GRPC_MODEL_READY: put_model_ready(c, &q, &o); break;
    case GRPC_SERVER: send_server(c, &o); break;
    case GRPC_REGIONS:
    case GRPC_CUDA_REGIONS:
    case GRPC_UNREGISTER:
    case GRPC_CUDA_UNREGISTER: break;  // there are none: an empty message
    case GRPC_REGISTER:
    case GRPC_CUDA_REGISTER: grpc_fail(c->x, GRPC_UNIMPLEMENTED, 0, SHARED_MEMORY_REJECTED); return;
    default: send_model(c, &q, &o); return;
    }
    grpc_answer(c, &o);
}

// Repository methods. Files cannot be uploaded.

enum { INDEX_BYTES = 16 << 20 };

typedef struct RepositoryRequest {
    Str           model;
    bool          ready;
    ModelOverride override;
} RepositoryRequest;

static Err read_value(const WireReader *in, const WireField *f, Str *text) {
    TRY(wire_want(in, f, WIRE_BYTES));
    WireReader inside = wire_inside(in, f);
    WireField  v;
    bool       more = true;
    while (more) {
        TRY(wire_next(&inside, &v, &more));
        if (more && v.number == 3) TRY(wire_text(in, &v, text));
    }
    return ERR_OK;
}

// A configuration may be given, files may not.
static Err read_parameter(const WireReader *in, const WireField *f, RepositoryRequest *o) {
    TRY(wire_want(in, f, WIRE_BYTES));
    WireReader inside = wire_inside(in, f);
    WireField  v;
    bool       more = true;
    Str        key = {"", 0}, text = {"", 0};
    while (more) {
        TRY(wire_next(&inside, &v, &more));
        if (more && v.number == 1) TRY(wire_text(in, &v, &key));
        if (more && v.number == 2) TRY(read_value(in, &v, &text));
    }
    if (key.len > 5 && memcmp(key.at, "file:", 5) == 0)
        return err_set(ERR_UNSUPPORTED, UPLOAD_REJECTED);
    return text_equal(key, text_of("config")) ? model_override_parse(text, &o->override) : ERR_OK;
}

static Err read_repository_request(Str message, GrpcKind kind, RepositoryRequest *o) {
    WireReader in = wire_reader(message.at, message.len);
    WireField  f;
    bool       more = true;
    *o = (RepositoryRequest){.model = {"", 0}};
    while (more) {
        TRY(wire_next(&in, &f, &more));
        if (!more) break;
        if (f.number == 2 && kind == GRPC_INDEX) {
            TRY(wire_want(&in, &f, WIRE_VARINT));
            o->ready = f.value != 0;
        } else if (f.number == 2) {
            TRY(wire_text(&in, &f, &o->model));
        } else if (f.number == 3 && kind != GRPC_INDEX) {
            TRY(read_parameter(&in, &f, o));
        }
    }
    return ERR_OK;
}

static void send_index(GrpcCall *c, bool ready) {
    const ModelRegistry *f = c->g->o.registry;
    WireWriter           o = wire_writer(&c->g->scratch, INDEX_BYTES);
    for (uint32_t i = 0; i < registry_count(f); i++) {
        const ModelInfo *s = registry_at(f, i);
        if (ready && s->state != MODEL_READY) continue;
        size_t row = wire_begin(&o, 1);
        wire_put_text(&o, 1, s->name);
        wire_put_text(&o, 2, s->version);
        wire_put_text(&o, 3, metadata_state(s->state));
        wire_put_text(&o, 4, s->reason);
        wire_end(&o, row);
    }
    grpc_answer(c, &o);
}

static void changed(void *self, const char *why) {
    GrpcCall *c = self;
    char      text[512];
    c->waiting = false;
    WireWriter nothing = wire_writer(&c->g->scratch, 0);
    (void)snprintf(text, sizeof text, "failed to %s '%s': %s",
                   c->kind == GRPC_LOAD ? "load" : "unload", c->name, why != NULL ? why : "");
    if (c->x == NULL)
        grpc_free(c);
    else if (why != NULL)
        grpc_fail(c->x, GRPC_INVALID, 0, text);
    else
        grpc_answer(c, &nothing);
}

void grpc_admin(GrpcCall *c) {
    RepositoryRequest o;
    Err               e = read_repository_request(c->message, c->kind, &o);
    bool              named = e == ERR_OK && config_valid_name(o.model.at, o.model.len);
    if (named && o.model.len < sizeof c->name) memcpy(c->name, o.model.at, o.model.len);
    if (e != ERR_OK && c->kind != GRPC_INDEX) {
        changed(c, err_why());
    } else if (e != ERR_OK) {
        grpc_fail(c->x, GRPC_INVALID, 0, err_why());
    } else if (c->kind == GRPC_INDEX) {
        send_index(c, o.ready);
    } else if (c->name[0] == '\0') {
        grpc_fail(c->x, GRPC_INVALID, 0, CONFIG_NAME_RULE);
    } else {
        c->waiting = true;
        if (c->kind == GRPC_LOAD)
            registry_load(c->g->o.registry, c->name, &o.override, changed, c);
        else
            registry_unload(c->g->o.registry, c->name, changed, c);
    }
}
