#include "serve/rest/rest.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "serve/rest/rest_int.h"

enum {
    SCRATCH = 1 << 30,
    QUERY_BYTES = 1 << 16,  // largest body of a request other than infer
};

static char         no_memory_text[] = "{\"error\":\"out of memory; retry later\"}";
static struct iovec no_memory = {no_memory_text, sizeof no_memory_text - 1};

Err rest_create(Rest **out, const RestOptions *o) {
    Rest *r = calloc(1, sizeof *r);
    if (r == NULL) return err_set(ERR_LIMIT, "out of memory for the REST front end");
    r->o = *o;
    Err e = arena_init(&r->scratch, SCRATCH);
    if (e == ERR_OK) e = rest_pages_open(r);
    if (e == ERR_OK)
        *out = r;
    else
        rest_destroy(r);
    return e;
}

void rest_destroy(Rest *r) {
    if (r == NULL) return;
    if (r->trace != NULL) rest_free(r->trace_call);
    engine_trace_destroy(r->trace);
    rest_pages_close(r);
    for (RestCall *c = r->free, *next = NULL; c != NULL; c = next) {
        next = c->next;
        free(c);
    }
    arena_finish(&r->scratch);
    free(r);
}

// Calls are pooled: a request allocates none once as many were in flight before.
static RestCall *open_call(Rest *r, Exchange *x) {
    RestCall *c = r->free;
    if (c != NULL)
        r->free = c->next;
    else
        c = malloc(sizeof *c);
    if (c == NULL) return NULL;
    *c = (RestCall){.rest = r, .x = x};
    x->user = c;
    return c;
}

void rest_free(RestCall *c) {
    Rest *r = c->rest;
    engine_trace_destroy(c->trace);
    rest_page_free(c->page);
    free(c->text);
    c->next = r->free;
    r->free = c;
}

static void put(RestCall *c, uint32_t status, const char *type, const char *text, size_t len,
                const char *name, const char *value) {
    if (c->x == NULL) return;
    c->piece = (struct iovec){.iov_base = (void *)(uintptr_t)text, .iov_len = len};
    c->bytes = len;
    Answer a = {.status = status, .type = type, .body = &c->piece, .n_body = 1};
    if (name != NULL)
        a.extra[a.n_extra++] = (ExchangeHeader){{name, strlen(name)}, {value, strlen(value)}};
    exchange_answer(c->x, &a);
}

void rest_text(RestCall *c, uint32_t status, const char *type, const char *text, size_t len) {
    free(c->text);
    c->text = malloc(len + 1);
    if (c->text == NULL) {
        put(c, 503, "application/json", no_memory_text, sizeof no_memory_text - 1, "retry-after",
            "1");
        return;
    }
    if (len > 0) memcpy(c->text, text, len);
    put(c, status, type, c->text, len, NULL, NULL);
}

void rest_piece(RestCall *c, const char *type, Str text) {
    put(c, 200, type, text.at, text.len, NULL, NULL);
}

void rest_json(RestCall *c, uint32_t status, json_t *doc) {
    free(c->text);
    c->text = doc != NULL ? json_dumps(doc, JSON_COMPACT) : NULL;
    json_decref(doc);
    if (c->text == NULL)
        put(c, 503, "application/json", no_memory_text, sizeof no_memory_text - 1, "retry-after",
            "1");
    else
        put(c, status, "application/json", c->text, strlen(c->text), NULL, NULL);
}

// {"error":"WHY"}, cut to fit; characters beyond ASCII become '?'.
static size_t quote(const char *why, char *out, size_t room) {
    size_t n = (size_t)snprintf(out, room, "{\"error\":\"");
    for (const char *p = why; *p != 0 && n + 10 < room; p++) {
        unsigned char c = (unsigned char)*p;
        if (c == '"' || c == '\\') {
            out[n++] = '\\';
            out[n++] = *p;
        } else if (c < 0x20 || c > 0x7e) {
            out[n++] = '?';
        } else {
            out[n++] = *p;
        }
    }
    out[n++] = '"';
    out[n++] = '}';
    out[n] = 0;
    return n;
}

void rest_error(RestCall *c, uint32_t status, uint32_t retry_s, const char *why) {
    char   text[640], after[16];
    size_t n = quote(why, text, sizeof text);
    Answer a = {.status = status, .type = "application/json", .body = &c->piece, .n_body = 1};
    if (retry_s > 0) {
        (void)snprintf(after, sizeof after, "%u", retry_s);
        a.extra[a.n_extra++] = (ExchangeHeader){{"retry-after", 11}, {after, strlen(after)}};
    }
    if (c->route.kind == ROUTE_WRONG_METHOD)
        a.extra[a.n_extra++] =
            (ExchangeHeader){{"allow", 5}, {c->route.allow, strlen(c->route.allow)}};
    free(c->text);
    c->text = malloc(n);
    if (c->text != NULL) memcpy(c->text, text, n);
    c->piece = c->text != NULL ? (struct iovec){.iov_base = c->text, .iov_len = n} : no_memory;
    c->bytes = c->piece.iov_len;
    exchange_answer(c->x, &a);
}

// What is wrong with a name, or an id, in a path.
static const char *name_rule(const Exchange *x) {
    bool id = x->path.len >= 5 && memcmp(x->path.at, "/why/", 5) == 0;
    return id ? "the id of a request has 1 to 128 bytes, none of them 0; encode others as %HH"
              : CONFIG_NAME_RULE;
}

static void reject(RestCall *c) {
    switch (c->route.kind) {
    case ROUTE_WRONG_METHOD: rest_error(c, 405, 0, "method not allowed for this path"); break;
    case ROUTE_WRONG_LISTENER:
        rest_error(c, 403, 0,
                   "not enabled at this address: see the settings `admin` and `metrics`");
        break;
    case ROUTE_BAD_NAME: rest_error(c, 400, 0, name_rule(c->x)); break;
    default: rest_error(c, 404, 0, "no such path"); break;
    }
}

// A header that must not be repeated and is; NULL: there is none. Two readers of one request could
// take different values of it.
static const char *repeated_header(const Exchange *x) {
    static const char *const single[] = {"inference-header-content-length", "x-request-timeout-ms",
                                         "content-encoding", "x-cotenant-timing"};
    for (size_t i = 0; i < sizeof single / sizeof *single; i++) {
        uint32_t n = 0;
        for (uint32_t k = 0; k < x->n_headers; k++)
            n += text_equal(x->headers[k].name, text_of(single[i]));
        if (n > 1) return single[i];
    }
    return NULL;
}

static void head(void *self, Exchange *x) {
    RestListener *l = self;
    RestCall     *c = open_call(l->rest, x);
    if (c == NULL) {
        exchange_answer(
            x,
            &(Answer){.status = 503, .type = "application/json", .body = &no_memory, .n_body = 1});
        return;
    }
    route_find(x->method, x->path, l->where, &c->route);
    bool        safe = c->route.kind == ROUTE_LIVE || c->route.kind == ROUTE_READY;
    const char *why = host_rule_refuses(&l->rule, x, safe), *twice = repeated_header(x);
    char        text[80];
    if (twice != NULL) (void)snprintf(text, sizeof text, "header %s occurs twice", twice);
    if (why != NULL || twice != NULL)
        rest_error(c, why != NULL ? 403 : 400, 0, why != NULL ? why : text);
    else if (c->route.kind <= ROUTE_BAD_NAME)
        reject(c);
    else if (c->route.kind == ROUTE_INFER)
        rest_infer_head(c);
    else
        x->most = QUERY_BYTES;
}

static void request(void *self, Exchange *x) {
    RestCall *c = x->user;
    (void)self;
    if (c->route.kind == ROUTE_INFER)
        rest_infer(c);
    else if (c->route.kind >= ROUTE_METRICS)
        rest_ops(c);
    else if (c->route.kind >= ROUTE_INDEX)
        rest_admin(c);
    else
        rest_info(c);
}

static void ended(void *self, Exchange *x, bool sent) {
    RestListener *l = self;
    RestCall     *c = x->user;
    (void)sent;
    if (c == NULL) return;
    x->user = NULL;
    c->x = NULL;
    if (c->call != NULL && x->answered)
        dispatcher_close(l->rest->o.dispatcher, c->call, c->bytes);
    else if (c->call != NULL)
        dispatcher_cancel(l->rest->o.dispatcher, c->call, exchange_take(x));
    if (!c->waiting)
        rest_free(c);
    else if (c == l->rest->trace_call)
        engine_trace_stop(l->rest->trace);
}

ExchangeHandler rest_handler(Rest *r, uint32_t where, const char *address) {
    RestListener *l = &r->listeners[r->n_listeners++];
    *l = (RestListener){.rest = r, .where = where};
    host_rule_init(&l->rule, r->o.set, address);
    return (ExchangeHandler){.head = head, .request = request, .ended = ended, .self = l};
}
