// Queries to the server before a run: its models, their inputs, their latency targets.
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "loadgen/bench_int.h"
#include "serve/grpc/wire.h"

enum { RESPONSE_BYTES_MAX = 4 << 20 };

typedef struct ServerQuery {
    const Bench *bench;
    Client      *client;
    Arena       *arena;
    uint32_t     status, grpc;
    char        *body;
    size_t       len;
    char         reason[BENCH_REASON_BYTES];  // "": there is a response
} ServerQuery;

static void done(void *self, ClientCall *call, const ClientReply *r) {
    ServerQuery *t = self;
    (void)call;
    t->status = r->status;
    t->grpc = r->grpc;
    t->len = r->kept;
    t->body = arena_try(t->arena, r->kept + 1, 1, 1);
    t->reason[0] = '\0';
    if (t->body != NULL && r->kept > 0) memcpy(t->body, r->body, r->kept);
    if (t->body == NULL || r->fault != NULL)
        (void)snprintf(t->reason, sizeof t->reason, "%s",
                       r->fault != NULL ? r->fault : "no memory");
    else if (r->message[0] != '\0')
        (void)snprintf(t->reason, sizeof t->reason, "grpc-status %u: %s", r->grpc, r->message);
    loop_stop(t->bench->loop);
}

// Sends one request and runs the loop until its response. ERR_IO without one; any status is one.
static Err query(ServerQuery *t, ClientRequest *r) {
    ClientCall call = {.request = r, .keep = RESPONSE_BYTES_MAX, .done = done, .self = t};
    TRY(client_prepare(t->client, r, t->arena));
    client_submit(t->client, &call);
    TRY(loop_run(t->bench->loop));
    if (t->reason[0] != '\0' && t->status == 0)
        return err_set(ERR_IO, "server %s, port %s: %s", t->bench->url.host, t->bench->url.port,
                       t->reason);
    return ERR_OK;
}

static Err get(ServerQuery *t, const char *path) {
    ClientRequest r = {.method = "GET", .path = path};
    return query(t, &r);
}

// Everything but letters, digits and -._~ is escaped.
static const char *encoded(const char *name, Arena *a) {
    static const char safe[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~";
    size_t            n = 0;
    char             *out = arena_try(a, 3 * strlen(name) + 1, 1, 1);
    if (out == NULL) return "";
    for (; *name != '\0'; name++)
        if (strchr(safe, *name) != NULL)
            out[n++] = *name;
        else
            n += (size_t)snprintf(out + n, 4, "%%%02X", (unsigned)(unsigned char)*name);
    return out;
}

static Err server_error(const ServerQuery *t, const BenchModel *m) {
    char   text[BENCH_REASON_BYTES];
    size_t n = t->len < sizeof text - 1 ? t->len : sizeof text - 1;
    for (size_t i = 0; i < n; i++) text[i] = (unsigned char)t->body[i] < ' ' ? ' ' : t->body[i];
    text[n] = '\0';
    if (t->bench->protocol == BENCH_GRPC)
        return err_set(ERR_IO, "model '%s': HTTP %u from the server: %s", m->name, t->status,
                       t->reason);
    return err_set(ERR_IO, "model '%s': HTTP %u from the server: %s", m->name, t->status, text);
}

static Err query_metadata(ServerQuery *t, BenchModel *m) {
    static const ExchangeHeader headers[] = {{{"content-type", 12}, {"application/grpc", 16}},
                                             {{"te", 2}, {"trailers", 8}}};
    if (t->bench->protocol != BENCH_GRPC) {
        const char *path = arena_printf(t->arena, "%s/v2/models/%s", t->bench->url.path,
                                        encoded(m->name, t->arena));
        TRY(get(t, path));
        return t->status == 200 ? bench_read_json(m, t->body, t->len, t->arena)
                                : server_error(t, m);
    }
    WireWriter o = wire_writer(t->arena, 4096);
    wire_put(&o, "\0\0\0\0", 5);
    wire_put_text(&o, 1, m->name);
    TRY(wire_done(&o));
    o.at[3] = (unsigned char)((o.len - 5) >> 8);
    o.at[4] = (unsigned char)(o.len - 5);
    ClientRequest r = {.method = "POST",
                       .path = "/inference.GRPCInferenceService/ModelMetadata",
                       .headers = headers,
                       .n_headers = 2,
                       .body = {o.at, o.len}};
    TRY(query(t, &r));
    if (t->status != 200 || t->grpc != 0 || t->len < 5) return server_error(t, m);
    return bench_read_proto(m, (const unsigned char *)t->body + 5, t->len - 5, t->arena);
}

// Only cotenant servers report a target; without one the model has no SLO.
static Err query_target(ServerQuery *t, BenchModel *m) {
    json_t     *doc = NULL;
    const char *path = arena_printf(t->arena, "%s/v2/models/%s/stats", t->bench->url.path,
                                    encoded(m->name, t->arena));
    if (m->slo_ns > 0 || t->bench->protocol == BENCH_GRPC) return ERR_OK;
    TRY(get(t, path));
    if (t->status != 200 || json_parse("stats", t->body, t->len, &doc) != ERR_OK) return ERR_OK;
    const json_t *first = json_array_get(json_object_get(doc, "model_stats"), 0);
    const json_t *target = json_object_get(json_object_get(first, "cotenant"), "target_ms");
    bench_set_target(m, json_number_value(target));
    json_decref(doc);
    return ERR_OK;
}

static Err open_query(const Bench *b, Arena *a, ServerQuery *t) {
    ClientOptions o = {.host = b->url.host,
                       .port = b->url.port,
                       .protocol = b->url.protocol,
                       .connections = 1,
                       .timeout_ns = INT64_C(10) * 1000 * 1000 * 1000};
    *t = (ServerQuery){.bench = b, .arena = a};
    return client_create(&t->client, b->loop, &o);
}

static Err add_listed(Bench *b, const ServerQuery *t) {
    json_t *doc = NULL, *models = NULL, *v = NULL;
    size_t  i = 0;
    if (t->status != 200)
        return err_set(ERR_ARG, "the server does not list its models: name them with --models");
    TRY(json_parse("/v2/models", t->body, t->len, &doc));
    Err e = json_get_array(doc, "models", &models);
    json_array_foreach(models, i, v) {
        const char *name = json_is_string(v) ? json_string_value(v)
                                             : json_string_value(json_object_get(v, "name"));
        if (name == NULL || b->n_models == BENCH_MODELS) continue;
        b->models[b->n_models++] = (BenchModel){.name = arena_str(t->arena, name), .weight = 1};
    }
    json_decref(doc);
    if (e == ERR_OK && b->n_models == 0) e = err_set(ERR_ARG, "the server has no models");
    return e;
}

Err bench_list(Bench *b, Arena *a) {
    ServerQuery t;
    if (b->protocol == BENCH_GRPC)
        return err_set(ERR_ARG, "gRPC does not list models: name them with --models");
    Err e = open_query(b, a, &t);
    if (e == ERR_OK) e = get(&t, arena_printf(a, "%s/v2/models", b->url.path));
    if (e == ERR_OK) e = add_listed(b, &t);
    client_destroy(t.client);
    return e;
}

static Err prepare_one(Bench *b, BenchModel *m, ServerQuery *t, const BenchShapes *s, Rng rng) {
    TRY(query_metadata(t, m));
    TRY(query_target(t, m));
    TRY(bench_set_shapes(m, s));
    TRY(bench_fill(m, &rng, t->arena));
    TRY(bench_make_request(b, m, t->arena));
    if (b->protocol != BENCH_GRPC)
        m->request.path = arena_printf(t->arena, "%s/v2/models/%s/infer", b->url.path,
                                       encoded(m->name, t->arena));
    return client_prepare(t->client, &m->request, t->arena);
}

Err bench_prepare(Bench *b, const BenchShapes *s, Rng rng, Arena *a) {
    ServerQuery t;
    Err         e = open_query(b, a, &t);
    for (uint32_t i = 0; e == ERR_OK && i < b->n_models; i++)
        e = prepare_one(b, &b->models[i], &t, s, rng_fork(rng, i));
    client_destroy(t.client);
    return e;
}
