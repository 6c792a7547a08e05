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

// dims: the field number of dims, 4 for inputs and 3 for outputs.
static void put_config_specs(WireWriter *o, uint32_t field, uint32_t dims, const TensorSpec *s,
                             uint32_t n, int32_t batch) {
    for (uint32_t i = 0; i < n; i++) {
        const Tensor *t = &s[i].type;
        int32_t       skip = batch > 0 ? 1 : 0;
        uint32_t      type;
        size_t        mark = wire_begin(o, field);
        (void)metadata_triton_type(t->dtype, &type);
        wire_put_text(o, 1, s[i].name);
        wire_put_uint(o, 2, type);
        if (t->rank > skip) wire_put_packed(o, dims, t->dims + skip, (size_t)(t->rank - skip));
        if (dims == 4) wire_put_uint(o, 8, s[i].optional);
        wire_end(o, mark);
    }
}

static void put_config(WireWriter *o, const ModelInfo *s) {
    const TenantSettings *set = &s->config->set;
    int32_t               batch = metadata_max_batch(s);
    MetadataRow           rows[METADATA_ROWS];
    size_t                all = wire_begin(o, 1);
    wire_put_text(o, 1, s->name);
    wire_put_text(o, 2, metadata_config_platform);
    size_t policy = wire_begin(o, 3), latest = wire_begin(o, 1);
    wire_put_uint(o, 1, (uint64_t)set->versions);
    wire_end(o, latest);
    wire_end(o, policy);
    wire_put_uint(o, 4, (uint64_t)batch);
    put_config_specs(o, 5, 4, s->signature.inputs, s->signature.n_inputs, batch);
    put_config_specs(o, 6, 3, s->signature.outputs, s->signature.n_outputs, batch);
    size_t batching = wire_begin(o, 11), queue = wire_begin(o, 6);
    wire_put_uint(o, 4, (uint64_t)set->queue);
    wire_end(o, queue);
    wire_end(o, batching);
    metadata_qos(s, rows);
    for (uint32_t i = 0; i < METADATA_ROWS; i++) {
        size_t entry = wire_begin(o, 14);
        wire_put_text(o, 1, rows[i].key);
        put_pair(o, 2, rows[i].value, NULL);
        wire_end(o, entry);
    }
    wire_put_text(o, 17, metadata_backend);
    wire_end(o, all);
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

static void send_server(WireWriter *o) {
    wire_put_text(o, 1, "cotenant");
    wire_put_text(o, 2, COTENANT_VERSION);
    for (const char *const *e = metadata_extensions; *e != NULL; e++) wire_put_text(o, 3, *e);
}

static ModelInfo *find(const GrpcCall *c, const ModelQuery *q) {
    Str version = q->version.len > 0 ? q->version : (Str){0};
    return registry_find(c->g->o.registry, q->name, version);
}

static void unknown(GrpcCall *c, Str name, const char *what) {
    char why[200];
    (void)snprintf(why, sizeof why, "model '%.*s' is not %s", name.len < 128 ? (int)name.len : 128,
                   name.at, what);
    grpc_fail(c->x, strcmp(what, "known") == 0 ? GRPC_NOT_FOUND : GRPC_UNAVAILABLE, 0, why);
}

// SERVING (1) or NOT_SERVING (2). The service is the server ("", or the protocol's name) or a
// model.
static void send_health(GrpcCall *c, const ModelQuery *q, WireWriter *o) {
    const GrpcOptions *g = &c->g->o;
    bool               whole = q->name.len == 0 || is(q->name, "inference.GRPCInferenceService");
    const ModelInfo   *s = whole ? NULL : find(c, &(ModelQuery){.name = q->name});
    if (!whole && s == NULL) {
        unknown(c, q->name, "known");
        return;
    }
    wire_put_uint(o, 1, (whole ? g->ready(g->self) : usable(c, s)) ? 1 : 2);
    grpc_answer(c, o);
}

static void send_model(GrpcCall *c, const ModelQuery *q, WireWriter *o) {
    const ModelInfo *s = find(c, q);
    if (s == NULL) {
        unknown(c, q->name, "known");
        return;
    }
    if (c->kind != GRPC_MODEL_READY && s->state != MODEL_READY) {
        unknown(c, q->name, "ready");
        return;
    }
    if (c->kind == GRPC_MODEL_READY)
        wire_put_uint(o, 1, usable(c, s));
    else if (c->kind == GRPC_CONFIG)
        put_config(o, s);
    else
        put_model(o, c->g->o.registry, s);
    grpc_answer(c, o);
}

static void send_stats(GrpcCall *c, const ModelQuery *q, WireWriter *o) {
    if (q->name.len > 0 && find(c, q) == NULL) {
        unknown(c, q->name, "known");
        return;
    }
    put_stats(o, c->g, q);
    grpc_answer(c, o);
}

void grpc_info(GrpcCall *c) {
    const GrpcOptions *g = &c->g->o;
    WireWriter         o = wire_writer(&c->g->scratch, RESPONSE_BYTES);
    ModelQuery         q;
    if (read_query(c->message, &q) != ERR_OK) {
        grpc_fail(c->x, GRPC_INVALID, 0, err_why());
        return;
    }
    switch (c->kind) {
    case GRPC_HEALTH: send_health(c, &q, &o); return;
    case GRPC_STATS: send_stats(c, &q, &o); return;
    case GRPC_LIVE: wire_put_uint(&o, 1, 1); break;
    case GRPC_READY: wire_put_uint(&o, 1, g->ready(g->self)); break;
    case GRPC_SERVER: send_server(&o); break;
    default: send_model(c, &q, &o); return;
    }
    grpc_answer(c, &o);
}

// Repository methods. Models and configurations cannot be uploaded.

enum { INDEX_BYTES = 16 << 20 };

typedef struct RepositoryRequest {
    Str  model;
    bool ready, uploads;  // uploads: it carries a configuration or files
} RepositoryRequest;

// Uploaded files or configurations are rejected, not ignored.
static Err read_parameter(const WireReader *in, const WireField *f, RepositoryRequest *o) {
    TRY(wire_want(in, f, WIRE_BYTES));
    WireReader inside = wire_inside(in, f);
    WireField  v;
    bool       more = true;
    Str        key;
    while (more) {
        TRY(wire_next(&inside, &v, &more));
        if (!more || v.number != 1) continue;
        TRY(wire_text(in, &v, &key));
        if (text_equal(key, text_of("config")) || (key.len > 5 && memcmp(key.at, "file:", 5) == 0))
            o->uploads = true;
    }
    return ERR_OK;
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
    c->waiting = false;
    WireWriter nothing = wire_writer(&c->g->scratch, 0);
    if (c->x == NULL)
        grpc_free(c);
    else if (why != NULL)
        grpc_fail(c->x, GRPC_INVALID, 0, why);
    else
        grpc_answer(c, &nothing);
}

void grpc_admin(GrpcCall *c) {
    RepositoryRequest o;
    if (read_repository_request(c->message, c->kind, &o) != ERR_OK) {
        grpc_fail(c->x, GRPC_INVALID, 0, err_why());
    } else if (c->kind == GRPC_INDEX) {
        send_index(c, o.ready);
    } else if (o.uploads) {
        grpc_fail(c->x, GRPC_INVALID, 0, UPLOAD_REJECTED);
    } else if (!config_valid_name(o.model.at, o.model.len) || o.model.len >= sizeof c->name) {
        grpc_fail(c->x, GRPC_INVALID, 0, CONFIG_NAME_RULE);
    } else {
        memcpy(c->name, o.model.at, o.model.len);
        c->waiting = true;
        if (c->kind == GRPC_LOAD)
            registry_load(c->g->o.registry, c->name, changed, c);
        else
            registry_unload(c->g->o.registry, c->name, changed, c);
    }
}
