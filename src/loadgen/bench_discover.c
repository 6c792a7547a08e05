// Questions to the server before a run: which models there are, what they take, their targets.
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "loadgen/bench_inputs.h"
#include "serve/grpc/wire.h"

enum { REPLY_MOST = 4 << 20 };

typedef struct Talk {
    const Bench *bench;
    Client      *client;
    Arena       *arena;
    uint32_t     status, grpc;
    char        *body;
    size_t       len;
    char         why[BENCH_WHY];  // "": an answer came
} Talk;

static void done(void *self, ClientCall *call, const ClientReply *r) {
    Talk *t = self;
    (void)call;
    t->status = r->status;
    t->grpc = r->grpc;
    t->len = r->kept;
    t->body = arena_try(t->arena, r->kept + 1, 1, 1);
    t->why[0] = '\0';
    if (t->body != NULL && r->kept > 0) memcpy(t->body, r->body, r->kept);
    if (t->body == NULL || r->fault != NULL)
        (void)snprintf(t->why, sizeof t->why, "%s", r->fault != NULL ? r->fault : "no memory");
    else if (r->message[0] != '\0')
        (void)snprintf(t->why, sizeof t->why, "grpc-status %u: %s", r->grpc, r->message);
    loop_stop(t->bench->loop);
}

// One request, and the loop until it is answered. ERR_IO without an answer; any status is one.
static Err ask(Talk *t, ClientRequest *r) {
    ClientCall call = {.request = r, .keep = REPLY_MOST, .done = done, .self = t};
    TRY(client_prepare(t->client, r, t->arena));
    client_submit(t->client, &call);
    TRY(loop_run(t->bench->loop));
    if (t->why[0] != '\0' && t->status == 0)
        return err_set(ERR_IO, "server %s, port %s: %s", t->bench->url.host, t->bench->url.port,
                       t->why);
    return ERR_OK;
}

static Err get(Talk *t, const char *path) {
    ClientRequest r = {.method = "GET", .path = path};
    return ask(t, &r);
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

static Err refused(const Talk *t, const BenchModel *m) {
    char   said[BENCH_WHY];
    size_t n = t->len < sizeof said - 1 ? t->len : sizeof said - 1;
    for (size_t i = 0; i < n; i++) said[i] = (unsigned char)t->body[i] < ' ' ? ' ' : t->body[i];
    said[n] = '\0';
    if (t->bench->form == BENCH_GRPC)
        return err_set(ERR_IO, "model '%s': the server says HTTP %u, %s", m->name, t->status,
                       t->why);
    return err_set(ERR_IO, "model '%s': the server says HTTP %u, %s", m->name, t->status, said);
}

static Err ask_metadata(Talk *t, BenchModel *m) {
    static const ExchangeHeader headers[] = {{{"content-type", 12}, {"application/grpc", 16}},
                                             {{"te", 2}, {"trailers", 8}}};
    if (t->bench->form != BENCH_GRPC) {
        const char *path = arena_printf(t->arena, "%s/v2/models/%s", t->bench->url.path,
                                        encoded(m->name, t->arena));
        TRY(get(t, path));
        return t->status == 200 ? bench_read_json(m, t->body, t->len, t->arena) : refused(t, m);
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
    TRY(ask(t, &r));
    if (t->status != 200 || t->grpc != 0 || t->len < 5) return refused(t, m);
    return bench_read_proto(m, (const unsigned char *)t->body + 5, t->len - 5, t->arena);
}

// A target is what only some servers know: without one, nothing is said.
static Err ask_target(Talk *t, BenchModel *m) {
    json_t     *doc = NULL;
    const char *path = arena_printf(t->arena, "%s/v2/models/%s/stats", t->bench->url.path,
                                    encoded(m->name, t->arena));
    if (m->slo_ns > 0 || t->bench->form == BENCH_GRPC) return ERR_OK;
    TRY(get(t, path));
    if (t->status != 200 || json_parse("stats", t->body, t->len, &doc) != ERR_OK) return ERR_OK;
    const json_t *first = json_array_get(json_object_get(doc, "model_stats"), 0);
    const json_t *target = json_object_get(json_object_get(first, "cotenant"), "target_ms");
    bench_set_target(m, json_number_value(target));
    json_decref(doc);
    return ERR_OK;
}

static Err open_talk(const Bench *b, Arena *a, Talk *t) {
    ClientOptions o = {.host = b->url.host,
                       .port = b->url.port,
                       .protocol = b->url.protocol,
                       .connections = 1,
                       .timeout_ns = INT64_C(10) * 1000 * 1000 * 1000};
    *t = (Talk){.bench = b, .arena = a};
    return client_create(&t->client, b->loop, &o);
}

static Err take_names(Bench *b, const Talk *t) {
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
    Talk t;
    if (b->form == BENCH_GRPC)
        return err_set(ERR_ARG, "over gRPC models have to be named with --models");
    Err e = open_talk(b, a, &t);
    if (e == ERR_OK) e = get(&t, arena_printf(a, "%s/v2/models", b->url.path));
    if (e == ERR_OK) e = take_names(b, &t);
    client_destroy(t.client);
    return e;
}

static Err prepare_one(Bench *b, BenchModel *m, Talk *t, const BenchShapes *s, Rng rng) {
    TRY(ask_metadata(t, m));
    TRY(ask_target(t, m));
    TRY(bench_fix_shapes(m, s));
    TRY(bench_fill(m, &rng, t->arena));
    TRY(bench_body(b, m, t->arena));
    if (b->form != BENCH_GRPC)
        m->request.path = arena_printf(t->arena, "%s/v2/models/%s/infer", b->url.path,
                                       encoded(m->name, t->arena));
    return client_prepare(t->client, &m->request, t->arena);
}

Err bench_prepare(Bench *b, const BenchShapes *s, Rng rng, Arena *a) {
    Talk t;
    Err  e = open_talk(b, a, &t);
    for (uint32_t i = 0; e == ERR_OK && i < b->n_models; i++)
        e = prepare_one(b, &b->models[i], &t, s, rng_fork(rng, i));
    client_destroy(t.client);
    return e;
}
