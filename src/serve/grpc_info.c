// What can be asked: the server, its models, their settings, statistics and health.
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "serve/card.h"
#include "serve/grpc_int.h"

enum { ANSWER_BYTES = 64 << 20 };

typedef struct Question {
    Str name, version;
} Question;

// Most requests have a name in field 1 and a version in field 2.
static Err read_question(Str message, Question *q) {
    WireIn    in = wire_in(message.at, message.len);
    WireField f;
    bool      more = true;
    *q = (Question){{"", 0}, {"", 0}};
    while (more) {
        TRY(wire_next(&in, &f, &more));
        if (more && f.number == 1) TRY(wire_text(&in, &f, &q->name));
        if (more && f.number == 2) TRY(wire_text(&in, &f, &q->version));
    }
    return ERR_OK;
}

static bool usable(const GrpcCall *c, const Served *s) {
    return s->state == FLEET_READY && s->quarantined <= c->x->arrived;
}

static void put_metadata_slots(WireOut *o, uint32_t field, const InferSlot *s, uint32_t n) {
    for (uint32_t i = 0; i < n; i++) {
        size_t mark = wire_begin(o, field);
        wire_put_text(o, 1, s[i].name);
        wire_put_text(o, 2, infer_type_name(s[i].type.dtype));
        if (s[i].type.rank > 0) wire_put_packed(o, 3, s[i].type.dims, (size_t)s[i].type.rank);
        wire_end(o, mark);
    }
}

static void put_pair(WireOut *o, uint32_t field, const char *key, const char *value) {
    size_t mark = wire_begin(o, field);
    wire_put_text(o, 1, key);
    wire_put_text(o, 2, value);
    wire_end(o, mark);
}

static void put_model(WireOut *o, const Fleet *f, const Served *s) {
    char target[32];
    (void)snprintf(target, sizeof target, "%g", (double)s->target_ns / 1e6);
    wire_put_text(o, 1, s->name);
    for (uint32_t i = 0; i < fleet_count(f); i++) {
        const Served *other = fleet_at(f, i);
        if (other->seat == s->seat && other->state == FLEET_READY)
            wire_put_text(o, 2, other->version);
    }
    wire_put_text(o, 3, card_platform);
    put_metadata_slots(o, 4, s->port.inputs, s->port.n_inputs);
    put_metadata_slots(o, 5, s->port.outputs, s->port.n_outputs);
    put_pair(o, 6, "target_ms", target);
}

// dims is field 4 of an input and field 3 of an output.
static void put_config_slots(WireOut *o, uint32_t field, uint32_t dims, const InferSlot *s,
                             uint32_t n, int32_t batch) {
    for (uint32_t i = 0; i < n; i++) {
        const Tensor *t = &s[i].type;
        int32_t       skip = batch > 0 ? 1 : 0;
        uint32_t      type;
        size_t        mark = wire_begin(o, field);
        (void)card_type(t->dtype, &type);
        wire_put_text(o, 1, s[i].name);
        wire_put_uint(o, 2, type);
        if (t->rank > skip) wire_put_packed(o, dims, t->dims + skip, (size_t)(t->rank - skip));
        if (dims == 4) wire_put_uint(o, 8, s[i].optional);
        wire_end(o, mark);
    }
}

static void put_config(WireOut *o, const Served *s) {
    const TenantSettings *set = &s->config->set;
    int32_t               batch = card_batch(s);
    CardRow               rows[CARD_ROWS];
    size_t                all = wire_begin(o, 1);
    wire_put_text(o, 1, s->name);
    wire_put_text(o, 2, card_config_platform);
    size_t policy = wire_begin(o, 3), latest = wire_begin(o, 1);
    wire_put_uint(o, 1, (uint64_t)set->versions);
    wire_end(o, latest);
    wire_end(o, policy);
    wire_put_uint(o, 4, (uint64_t)batch);
    put_config_slots(o, 5, 4, s->port.inputs, s->port.n_inputs, batch);
    put_config_slots(o, 6, 3, s->port.outputs, s->port.n_outputs, batch);
    size_t batching = wire_begin(o, 11), queue = wire_begin(o, 6);
    wire_put_uint(o, 4, (uint64_t)set->queue);
    wire_end(o, queue);
    wire_end(o, batching);
    card_qos(s, rows);
    for (uint32_t i = 0; i < CARD_ROWS; i++) {
        size_t entry = wire_begin(o, 14);
        wire_put_text(o, 1, rows[i].key);
        put_pair(o, 2, rows[i].value, NULL);
        wire_end(o, entry);
    }
    wire_put_text(o, 17, card_backend);
    wire_end(o, all);
}

static void put_sum(WireOut *o, uint32_t field, MetricsSum sum) {
    size_t mark = wire_begin(o, field);
    wire_put_uint(o, 1, sum.count);
    wire_put_uint(o, 2, (uint64_t)sum.ns);
    wire_end(o, mark);
}

static void put_row(WireOut *o, const MetricsRow *r) {
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

static void put_stats(WireOut *o, const Grpc *g, const Question *q) {
    for (uint32_t i = 0; i < fleet_count(g->o.fleet); i++) {
        const Served *s = fleet_at(g->o.fleet, i);
        MetricsRow    row;
        if (s->state != FLEET_READY || !is(q->name, s->name) || !is(q->version, s->version))
            continue;
        if (metrics_read(g->o.metrics, s->seat, s->version, &row)) put_row(o, &row);
    }
}

static void tell_server(WireOut *o) {
    wire_put_text(o, 1, "cotenant");
    wire_put_text(o, 2, COTENANT_VERSION);
    for (const char *const *e = card_extensions; *e != NULL; e++) wire_put_text(o, 3, *e);
}

static Served *find(const GrpcCall *c, const Question *q) {
    Str version = q->version.len > 0 ? q->version : (Str){0};
    return fleet_find(c->g->o.fleet, q->name, version);
}

static void unknown(GrpcCall *c, Str name, const char *what) {
    char why[200];
    (void)snprintf(why, sizeof why, "model '%.*s' is not %s", name.len < 128 ? (int)name.len : 128,
                   name.at, what);
    grpc_fail(c->x, strcmp(what, "known") == 0 ? GRPC_NOT_FOUND : GRPC_UNAVAILABLE, 0, why);
}

// 1: serving, 2: not. The service is the server ("", or the protocol's name), or a model.
static void tell_health(GrpcCall *c, const Question *q, WireOut *o) {
    const GrpcOptions *g = &c->g->o;
    bool               whole = q->name.len == 0 || is(q->name, "inference.GRPCInferenceService");
    const Served      *s = whole ? NULL : find(c, &(Question){.name = q->name});
    if (!whole && s == NULL) {
        unknown(c, q->name, "known");
        return;
    }
    wire_put_uint(o, 1, (whole ? g->ready(g->self) : usable(c, s)) ? 1 : 2);
    grpc_answer(c, o);
}

static void tell_model(GrpcCall *c, const Question *q, WireOut *o) {
    const Served *s = find(c, q);
    if (s == NULL) {
        unknown(c, q->name, "known");
        return;
    }
    if (c->kind != GRPC_MODEL_READY && s->state != FLEET_READY) {
        unknown(c, q->name, "ready");
        return;
    }
    if (c->kind == GRPC_MODEL_READY)
        wire_put_uint(o, 1, usable(c, s));
    else if (c->kind == GRPC_CONFIG)
        put_config(o, s);
    else
        put_model(o, c->g->o.fleet, s);
    grpc_answer(c, o);
}

static void tell_stats(GrpcCall *c, const Question *q, WireOut *o) {
    if (q->name.len > 0 && find(c, q) == NULL) {
        unknown(c, q->name, "known");
        return;
    }
    put_stats(o, c->g, q);
    grpc_answer(c, o);
}

void grpc_info(GrpcCall *c) {
    const GrpcOptions *g = &c->g->o;
    WireOut            o = wire_out(&c->g->scratch, ANSWER_BYTES);
    Question           q;
    if (read_question(c->message, &q) != ERR_OK) {
        grpc_fail(c->x, GRPC_INVALID, 0, err_why());
        return;
    }
    switch (c->kind) {
    case GRPC_HEALTH: tell_health(c, &q, &o); return;
    case GRPC_STATS: tell_stats(c, &q, &o); return;
    case GRPC_LIVE: wire_put_uint(&o, 1, 1); break;
    case GRPC_READY: wire_put_uint(&o, 1, g->ready(g->self)); break;
    case GRPC_SERVER: tell_server(&o); break;
    default: tell_model(c, &q, &o); return;
    }
    grpc_answer(c, &o);
}
