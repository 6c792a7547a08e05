#include "serve/rest/rest.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "serve/rest/rest_int.h"

enum { SCRATCH = 1 << 30 };

static const char no_memory[] = "{\"error\":\"no memory for this answer\"}";

Err rest_create(Rest **out, const RestOptions *o) {
    Rest *r = calloc(1, sizeof *r);
    if (r == NULL) return err_set(ERR_LIMIT, "no memory for REST");
    r->o = *o;
    Err e = arena_init(&r->scratch, SCRATCH);
    if (e == ERR_OK)
        *out = r;
    else
        free(r);
    return e;
}

void rest_destroy(Rest *r) {
    if (r == NULL) return;
    loop_disarm(r->o.loop, &r->long_turn);
    if (r->trace != NULL) rest_free(r->trace_call);
    engine_trace_destroy(r->trace);
    arena_finish(&r->scratch);
    free(r);
}

RestCall *rest_call(Rest *r, Exchange *x, const Route *route) {
    RestCall *c = calloc(1, sizeof *c);
    if (c == NULL) {
        rest_error(x, NULL, 503, 1, "no memory for this call");
        return NULL;
    }
    *c = (RestCall){.rest = r, .x = x, .route = *route};
    x->user = c;
    return c;
}

void rest_free(RestCall *c) {
    engine_trace_destroy(c->trace);
    free(c->text);
    free(c);
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
        put(c, 503, "application/json", no_memory, sizeof no_memory - 1, "retry-after", "1");
        return;
    }
    if (len > 0) memcpy(c->text, text, len);
    put(c, status, type, c->text, len, NULL, NULL);
}

void rest_keep(RestCall *c, Str text) {
    put(c, 200, "application/json", text.at, text.len, NULL, NULL);
}

void rest_json(RestCall *c, uint32_t status, json_t *doc) {
    free(c->text);
    c->text = doc != NULL ? json_dumps(doc, JSON_COMPACT) : NULL;
    json_decref(doc);
    if (c->text == NULL)
        put(c, 503, "application/json", no_memory, sizeof no_memory - 1, "retry-after", "1");
    else
        put(c, status, "application/json", c->text, strlen(c->text), NULL, NULL);
}

// The sentence as JSON, cut short rather than wrong.
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

void rest_error(Exchange *x, RestCall *c, uint32_t status, uint32_t retry_s, const char *why) {
    char         text[640], after[16];
    struct iovec piece = {.iov_base = (void *)(uintptr_t)no_memory,
                          .iov_len = sizeof no_memory - 1};
    Answer       a = {.status = status, .type = "application/json", .body = &piece, .n_body = 1};
    size_t       n = quote(why, text, sizeof text);
    if (retry_s > 0) {
        (void)snprintf(after, sizeof after, "%u", retry_s);
        a.extra[a.n_extra++] = (ExchangeHeader){{"retry-after", 11}, {after, strlen(after)}};
    }
    if (c != NULL && c->route.kind == ROUTE_WRONG_METHOD)
        a.extra[a.n_extra++] =
            (ExchangeHeader){{"allow", 5}, {c->route.allow, strlen(c->route.allow)}};
    char *kept = c == NULL         ? NULL
                 : c->call != NULL ? arena_try(&c->call->arena, n, 1, 1)
                                   : (c->text = realloc(c->text, n));
    if (kept != NULL) piece = (struct iovec){.iov_base = memcpy(kept, text, n), .iov_len = n};
    if (c != NULL) {
        c->piece = piece;
        c->bytes = piece.iov_len;
        a.body = &c->piece;
    } else {
        static struct iovec fixed;  // read-only after this
        fixed = (struct iovec){.iov_base = (void *)(uintptr_t)no_memory,
                               .iov_len = sizeof no_memory - 1};
        a.body = &fixed;
    }
    exchange_answer(x, &a);
}

static void reject(Rest *r, Exchange *x, const Route *route) {
    RestCall *c = rest_call(r, x, route);
    if (c == NULL) return;
    switch (route->kind) {
    case ROUTE_WRONG_METHOD: rest_error(x, c, 405, 0, "this method is not for this path"); break;
    case ROUTE_WRONG_LISTENER:
        rest_error(x, c, 403, 0, "not enabled here: see the settings `admin` and `metrics`");
        break;
    case ROUTE_BAD_NAME:
        rest_error(x, c, 400, 0,
                   "a name has 1 to 128 letters, digits, '.', '_' and '-', a letter or digit "
                   "first");
        break;
    default: rest_error(x, c, 404, 0, "there is nothing at this path"); break;
    }
}

static void head(void *self, Exchange *x) {
    RestListener *p = self;
    Route         route;
    route_find(x->method, x->path, p->where, &route);
    if (route.kind <= ROUTE_BAD_NAME)
        reject(p->rest, x, &route);
    else if (route.kind == ROUTE_INFER)
        rest_infer_head(p->rest, x, &route);
    else
        x->most = 1 << 16;
}

static void request(void *self, Exchange *x) {
    RestListener *p = self;
    Route         route;
    route_find(x->method, x->path, p->where, &route);
    if (route.kind == ROUTE_INFER) {
        rest_infer(p->rest, x, &route);
        return;
    }
    RestCall *c = rest_call(p->rest, x, &route);
    if (c == NULL) return;
    if (route.kind >= ROUTE_METRICS)
        rest_ops(c);
    else if (route.kind >= ROUTE_INDEX)
        rest_admin(c);
    else
        rest_info(c);
}

static void ended(void *self, Exchange *x, bool sent) {
    RestListener *p = self;
    RestCall     *c = x->user;
    (void)sent;
    if (c == NULL) return;
    x->user = NULL;
    c->x = NULL;
    if (c->queued)
        rest_infer_forget(c);
    else if (c->call != NULL && x->answered)
        dispatcher_close(p->rest->o.dispatcher, c->call, c->bytes);
    else if (c->call != NULL)
        dispatcher_cancel(p->rest->o.dispatcher, c->call, exchange_take(x));
    else if (!c->waiting)
        rest_free(c);
    else if (c == p->rest->trace_call)
        engine_trace_stop(p->rest->trace);
}

ExchangeHandler rest_handler(Rest *r, uint32_t where) {
    RestListener *p = &r->listeners[r->n_listeners++];
    *p = (RestListener){r, where};
    return (ExchangeHandler){.head = head, .request = request, .ended = ended, .self = p};
}
