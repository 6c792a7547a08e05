#include "serve/grpc/grpc.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/text.h"
#include "serve/grpc/grpc_int.h"

enum { SCRATCH = 1 << 28, QUERY_BYTES = 1 << 16 };

static const struct {
    const char *path;
    bool        admin;
} rows[GRPC_KINDS] = {
#define X(id, path, admin) {path, admin},
#include "serve/grpc/grpc.def"
#undef X
};

static const ExchangeHeader accepted = {{"grpc-accept-encoding", 20},
                                        {"identity,deflate,gzip", 21}};

Err grpc_create(Grpc **out, const GrpcOptions *o) {
    Grpc *g = calloc(1, sizeof *g);
    if (g == NULL) return err_set(ERR_LIMIT, "out of memory for the gRPC front end");
    g->o = *o;
    Err e = arena_init(&g->scratch, SCRATCH);
    if (e == ERR_OK)
        *out = g;
    else
        free(g);
    return e;
}

void grpc_destroy(Grpc *g) {
    if (g == NULL) return;
    arena_finish(&g->scratch);
    free(g);
}

void grpc_free(GrpcCall *c) {
    free(c->bytes);
    free(c);
}

void grpc_fail(Exchange *x, uint32_t status, uint32_t retry_s, const char *why) {
    char   code[8], message[1024], after[24];
    Answer a = {.type = "application/grpc"};
    (void)snprintf(code, sizeof code, "%u", status);
    grpc_quote(why, message, sizeof message);
    a.trailers[a.n_trailers++] = (ExchangeHeader){text_of("grpc-status"), text_of(code)};
    a.trailers[a.n_trailers++] = (ExchangeHeader){text_of("grpc-message"), text_of(message)};
    if (retry_s > 0) {
        (void)snprintf(after, sizeof after, "%u000", retry_s);
        a.trailers[a.n_trailers++] =
            (ExchangeHeader){text_of("grpc-retry-pushback-ms"), text_of(after)};
    }
    if (status == GRPC_UNIMPLEMENTED) a.extra[a.n_extra++] = accepted;
    exchange_answer(x, &a);
}

void grpc_answer(GrpcCall *c, WireWriter *out) {
    if (c->x == NULL) return;
    c->bytes = wire_done(out) == ERR_OK ? malloc(GRPC_PREFIX + out->len) : NULL;
    if (c->bytes == NULL) {
        grpc_fail(c->x, GRPC_UNAVAILABLE, 1, "out of memory; retry later");
        return;
    }
    grpc_frame(c->bytes, out->len);
    if (out->len > 0) memcpy(c->bytes + GRPC_PREFIX, out->at, out->len);
    c->sent = GRPC_PREFIX + out->len;
    c->pieces[0] = (struct iovec){c->bytes, c->sent};
    Answer a = {.type = "application/grpc", .body = c->pieces, .n_body = 1};
    a.extra[a.n_extra++] = accepted;
    a.trailers[a.n_trailers++] = (ExchangeHeader){{"grpc-status", 11}, {"0", 1}};
    exchange_answer(c->x, &a);
}

static GrpcKind kind_of(Str path) {
    uint32_t k = 0;
    while (k < GRPC_KINDS && !text_equal(path, text_of(rows[k].path))) k++;
    return (GrpcKind)k;
}

// A plain HTTP response to a request that is not gRPC.
static void reject_http(Exchange *x, uint32_t status, const char *name, const char *value) {
    Answer a = {.status = status};
    if (name != NULL) a.extra[a.n_extra++] = (ExchangeHeader){text_of(name), text_of(value)};
    exchange_answer(x, &a);
}

static bool speaks_grpc(Exchange *x) {
    static const char grpc[] = "application/grpc";
    Str               type = exchange_header(x, "content-type");
    size_t            n = sizeof grpc - 1;
    bool              same = type.len >= n && memcmp(type.at, grpc, n) == 0;
    bool              plain = same && (type.len == n || type.at[n] == ';');
    return plain || (type.len == n + 6 && same && memcmp(type.at + n, "+proto", 6) == 0);
}

// Two readers of one request could take different values of a repeated header.
static bool repeats_header(const Exchange *x) {
    static const char *const single[] = {"grpc-timeout", "grpc-encoding", "x-cotenant-timing"};
    for (size_t i = 0; i < sizeof single / sizeof *single; i++) {
        uint32_t n = 0;
        for (uint32_t k = 0; k < x->n_headers; k++)
            n += text_equal(x->headers[k].name, text_of(single[i]));
        if (n > 1) return true;
    }
    return false;
}

static void head(void *self, Exchange *x) {
    GrpcListener *p = self;
    GrpcKind      kind = kind_of(x->path);
    const char   *why = host_rule_refuses(&p->rule, x, false);
    if (why != NULL)
        grpc_fail(x, GRPC_FORBIDDEN, 0, why);
    else if (!text_equal(x->method, text_of("POST")))
        reject_http(x, 405, "allow", "POST");
    else if (!speaks_grpc(x))
        reject_http(x, 415, "accept-post", "application/grpc");
    else if (kind == GRPC_KINDS)
        grpc_fail(x, GRPC_UNIMPLEMENTED, 0, "no such method");
    else if (repeats_header(x))
        grpc_fail(x, GRPC_INVALID, 0, "grpc-timeout or grpc-encoding occurs twice");
    else if (rows[kind].admin && !p->admin)
        grpc_fail(x, GRPC_FORBIDDEN, 0, "not enabled at this address: see the setting `admin`");
    else if (kind == GRPC_STREAM)
        grpc_stream_head(p->grpc, x);
    else if (kind != GRPC_INFER)
        x->most = QUERY_BYTES;
    else
        x->aligned = p->grpc->aligned;
}

static void answer_query(Grpc *g, Exchange *x, GrpcKind kind, Str message, InflateKind packed) {
    GrpcCall *c = calloc(1, sizeof *c);
    if (c == NULL) {
        grpc_fail(x, GRPC_UNAVAILABLE, 1, "out of memory; retry later");
        return;
    }
    *c = (GrpcCall){.g = g, .x = x, .kind = kind};
    x->user = c;
    arena_rewind(&g->scratch, 0);
    Err e = grpc_expand(packed, message, QUERY_BYTES, &g->scratch, &c->message);
    if (e != ERR_OK)
        grpc_fail(x, e == ERR_LIMIT ? GRPC_EXHAUSTED : GRPC_INVALID, 0, err_why());
    else if (kind == GRPC_INDEX || kind == GRPC_LOAD || kind == GRPC_UNLOAD)
        grpc_admin(c);
    else
        grpc_info(c);
}

static void request(void *self, Exchange *x) {
    GrpcListener *p = self;
    Str           message;
    InflateKind   packed = INFLATE_NONE;
    bool          compressed = false;
    const char   *why;
    uint32_t      status = grpc_unframe(x->body, x->body_len, &compressed, &message, &why);
    GrpcKind      kind = kind_of(x->path);
    if (status == GRPC_OK && compressed) status = grpc_encoding(x, &packed, &why);
    if (status != GRPC_OK)
        grpc_fail(x, status, 0, why);
    else if (kind == GRPC_INFER)
        grpc_infer(p->grpc, x, message, packed);
    else
        answer_query(p->grpc, x, kind, message, packed);
}

static void ended(void *self, Exchange *x, bool sent) {
    GrpcListener *p = self;
    GrpcCall     *c = x->user;
    (void)sent;
    if (c == NULL) return;
    x->user = NULL;
    c->x = NULL;
    if (c->kind == GRPC_STREAM)
        grpc_stream_ended(c);
    else if (c->call != NULL && x->answered)
        dispatcher_close(p->grpc->o.dispatcher, c->call, c->sent);
    else if (c->call != NULL)
        dispatcher_cancel(p->grpc->o.dispatcher, c->call, exchange_take(x));
    else if (!c->waiting)
        grpc_free(c);
}

static void more(void *self, Exchange *x) {
    (void)self;
    grpc_stream_more(x->user, clock_monotonic_ns());
}

ExchangeHandler grpc_handler(Grpc *g, bool admin, const char *address) {
    GrpcListener *p = &g->listeners[g->n_listeners++];
    *p = (GrpcListener){.grpc = g, .admin = admin};
    host_rule_init(&p->rule, g->o.set, address);
    return (ExchangeHandler){
        .head = head, .request = request, .ended = ended, .self = p, .more = more};
}

enum { TIMEOUT_DIGITS = 8 };

uint32_t grpc_unframe(const unsigned char *body, size_t len, bool *compressed, Str *message,
                      const char **why) {
    *why = "body is shorter than the 5-byte message prefix";
    if (len < GRPC_PREFIX) return GRPC_INVALID;
    size_t n = (size_t)body[1] << 24 | (size_t)body[2] << 16 | (size_t)body[3] << 8 | body[4];
    *why = "the compression flag of a message is neither 0 nor 1";
    if (body[0] > 1) return GRPC_INVALID;
    *why = n > len - GRPC_PREFIX ? "message is shorter than its length prefix says"
                                 : "this method takes exactly one message";
    if (n != len - GRPC_PREFIX) return GRPC_INVALID;
    *compressed = body[0] == 1;
    *message = (Str){(const char *)body + GRPC_PREFIX, n};
    return GRPC_OK;
}

uint32_t grpc_encoding(const Exchange *x, InflateKind *out, const char **why) {
    Str name = exchange_header(x, "grpc-encoding");
    *why = "grpc-encoding is not supported: use identity, deflate or gzip";
    if (!inflate_kind(name, out)) return GRPC_UNIMPLEMENTED;
    *why = "a message is compressed, but grpc-encoding names no compression";
    return *out != INFLATE_NONE ? GRPC_OK : GRPC_INVALID;
}

enum { EXPAND_STEP = 1 << 16 };

// Grows the text at the end of the arena, where nothing else is allocated meanwhile.
static Err expand_all(Inflate *i, size_t most, Arena *a, Str *out) {
    unsigned char *begin = arena_try(a, 0, 1, TENSOR_ALIGN);
    size_t         len = 0, room = 0;
    for (bool done = false; !done;) {
        size_t more = room > EXPAND_STEP ? room : EXPAND_STEP, made = 0;
        if (more > most + 1 - room) more = most + 1 - room;
        unsigned char *to = arena_try(a, more, 1, 1);
        if (to == NULL || begin == NULL)
            return err_set(ERR_LIMIT, "out of memory to decompress a message");
        CHECK(to == begin + room);
        room += more;
        while (len < room && !done) {
            TRY(inflate_step(i, begin + len, room - len, &made, &done));
            len += made;
        }
        if (len > most)
            return err_set(ERR_LIMIT, "message exceeds %zu bytes when decompressed", most);
    }
    arena_rewind(a, a->used - (room - len));
    *out = (Str){(const char *)begin, len};
    return ERR_OK;
}

Err grpc_expand(InflateKind kind, Str message, size_t most, Arena *a, Str *out) {
    Inflate *i = NULL;
    if (kind == INFLATE_NONE) {
        *out = message;
        return ERR_OK;
    }
    TRY(inflate_begin(&i, kind, message));
    Err e = expand_all(i, most, a, out);
    inflate_end(i);
    return e;
}

void grpc_frame(unsigned char prefix[GRPC_PREFIX], size_t len) {
    prefix[0] = 0;
    for (int i = 0; i < 4; i++) prefix[1 + i] = (unsigned char)(len >> (24 - 8 * i));
}

bool grpc_timeout(Str s, TimeNs *out) {
    static const struct {
        char   unit;
        TimeNs ns;
    } units[] = {{'n', 1},          {'u', 1000},        {'m', 1000000},
                 {'S', 1000000000}, {'M', 60000000000}, {'H', 3600000000000}};
    const TimeNs day = 86400000000000;
    TimeNs       v = 0;
    if (s.len < 2 || s.len > TIMEOUT_DIGITS + 1) return false;
    for (size_t i = 0; i + 1 < s.len; i++) {
        if (s.at[i] < '0' || s.at[i] > '9') return false;
        v = v * 10 + (s.at[i] - '0');
    }
    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        if (units[i].unit != s.at[s.len - 1]) continue;
        *out = v == 0 ? 1 : v < day / units[i].ns ? v * units[i].ns : day;
        return true;
    }
    return false;
}

void grpc_quote(const char *text, char *out, size_t room) {
    static const char digits[] = "0123456789ABCDEF";
    size_t            n = 0;
    for (; *text != '\0' && n + 4 <= room; text++) {
        unsigned char c = (unsigned char)*text;
        if (c >= ' ' && c <= '~' && c != '%') {
            out[n++] = *text;
            continue;
        }
        out[n++] = '%';
        out[n++] = digits[c >> 4];
        out[n++] = digits[c & 15];
    }
    out[n] = '\0';
}
