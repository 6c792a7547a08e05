#include "net/client.h"

#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

#include "base/clock.h"
#include "base/err.h"
#include "net/address.h"
#include "net/client_int.h"

enum { SWEEP_NS = 20 * 1000 * 1000 };

static void sweep(void *self);

// Loopback names are known, as for listeners, even on a machine without /etc/hosts.
static Err find_address(Client *c) {
    struct addrinfo  hint = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_ADDRCONFIG};
    struct addrinfo *found = NULL;
    const char      *loopback = address_loopback(c->options.host);
    if (loopback != NULL) hint.ai_flags = AI_NUMERICHOST;
    int code =
        getaddrinfo(loopback != NULL ? loopback : c->options.host, c->options.port, &hint, &found);
    if (code != 0)
        return err_set(ERR_IO, "cannot resolve host '%s', port '%s': %s", c->options.host,
                       c->options.port, gai_strerror(code));
    memcpy(&c->address, found->ai_addr, found->ai_addrlen);
    c->address_len = found->ai_addrlen;
    freeaddrinfo(found);
    return ERR_OK;
}

static void fill_options(ClientOptions *o) {
    if (o->connections == 0) o->connections = 64;
    if (o->streams == 0) o->streams = 32;
    if (o->timeout_ns == 0) o->timeout_ns = INT64_C(30) * 1000 * 1000 * 1000;
    if (o->header_bytes == 0) o->header_bytes = 64 * 1024;
    if (o->body_bytes == 0) o->body_bytes = (size_t)256 << 20;
}

static Err fill(Client *c) {
    c->conns = calloc(c->options.connections, sizeof *c->conns);
    if (c->conns == NULL)
        return err_set(ERR_LIMIT, "no memory for %u connections", c->options.connections);
    for (uint32_t i = c->options.connections; i-- > 0;) {
        ClientConn *l = &c->conns[i];
        l->client = c;
        l->fd.fd = -1;
        l->reading.head_most = c->options.header_bytes;
        l->reading.body.most = c->options.body_bytes;
        l->next_free = c->closed;
        c->closed = l;
    }
    c->sweep = (LoopTimer){.fire = sweep, .self = c};
    if (c->options.protocol == CLIENT_HTTP2) {
        c->callbacks = client_http2_callbacks();
        if (c->callbacks == NULL) return err_set(ERR_LIMIT, "no memory for HTTP/2");
    }
    return find_address(c);
}

Err client_create(Client **out, Loop *l, const ClientOptions *o) {
    Client *c = calloc(1, sizeof *c);
    if (c == NULL) return err_set(ERR_LIMIT, "no memory for a client");
    c->loop = l;
    c->options = *o;
    fill_options(&c->options);
    Err e = fill(c);
    if (e != ERR_OK) {
        client_destroy(c);
        return e;
    }
    *out = c;
    return ERR_OK;
}

void client_destroy(Client *c) {
    if (c == NULL) return;
    loop_disarm(c->loop, &c->sweep);
    c->first = c->waits = c->faults = NULL;
    for (ClientStream *s = c->all_streams; s != NULL; s = s->next_all) s->call = NULL;
    for (uint32_t i = 0; c->conns != NULL && i < c->options.connections; i++) {
        ClientConn *l = &c->conns[i];
        l->call = NULL;
        client_conn_close(l, NULL);
        response_parser_finish(&l->reading);
        free(l->out);
    }
    for (ClientStream *s = c->all_streams, *next; s != NULL; s = next) {
        next = s->next_all;
        free(s->body.at);
        free(s);
    }
    nghttp2_session_callbacks_del(c->callbacks);
    loop_disarm(c->loop, &c->sweep);
    free(c->conns);
    free(c);
}

ClientCounts client_counts(const Client *c) { return c->counts; }

static void link_live(Client *c, ClientCall *call) {
    call->next = NULL;
    call->prev = c->last;
    *(c->last != NULL ? &c->last->next : &c->first) = call;
    c->last = call;
    c->counts.live++;
}

static void unlink_live(Client *c, ClientCall *call) {
    *(call->prev != NULL ? &call->prev->next : &c->first) = call->next;
    *(call->next != NULL ? &call->next->prev : &c->last) = call->prev;
    c->counts.live--;
}

static void link_wait(Client *c, ClientCall *call) {
    call->waiting = true;
    call->next_waiting = NULL;
    call->prev_waiting = c->waits_last;
    *(c->waits_last != NULL ? &c->waits_last->next_waiting : &c->waits) = call;
    c->waits_last = call;
}

static void link_first(Client *c, ClientCall *call) {
    call->waiting = true;
    call->prev_waiting = NULL;
    call->next_waiting = c->waits;
    *(c->waits != NULL ? &c->waits->prev_waiting : &c->waits_last) = call;
    c->waits = call;
}

static void unlink_wait(Client *c, ClientCall *call) {
    if (!call->waiting) return;
    call->waiting = false;
    *(call->prev_waiting != NULL ? &call->prev_waiting->next_waiting : &c->waits) =
        call->next_waiting;
    *(call->next_waiting != NULL ? &call->next_waiting->prev_waiting : &c->waits_last) =
        call->prev_waiting;
}

static void arm_sweep(Client *c, TimeNs at) {
    if (c->sweep.place != 0 && c->sweep.at <= at) return;
    // Out of memory for one timer: the loop stops, calls stay open.
    if (loop_arm(c->loop, &c->sweep, at) != ERR_OK) loop_stop(c->loop);
}

void client_done(Client *c, ClientCall *call, const ClientReply *r) {
    unlink_live(c, call);
    call->on = NULL;
    call->done(call->self, call, r);
}

void client_fail(Client *c, ClientCall *call, const char *fault) {
    call->on = NULL;
    call->fault = fault;
    call->next_waiting = NULL;
    *(c->faults != NULL ? &c->faults_last->next_waiting : &c->faults) = call;
    c->faults_last = call;
    arm_sweep(c, loop_now(c->loop));
}

void client_again(Client *c, ClientCall *call) {
    call->on = NULL;
    call->again++;
    call->sent = 0;
    c->counts.retries++;
    link_wait(c, call);
    arm_sweep(c, loop_now(c->loop));
}

// The HTTP/2 connection with the fewest streams; NULL: all are at their limit.
static ClientConn *lightest(Client *c) {
    ClientConn *best = NULL;
    for (uint32_t i = 0; i < c->n_used; i++) {
        ClientConn *l = &c->conns[i];
        if (l->state == LINE_CLOSED || l->streams >= c->options.streams) continue;
        if ((best == NULL || l->streams < best->streams) && client_http2_takes(l)) best = l;
    }
    return best;
}

static bool place_on(Client *c, ClientConn *l, ClientCall *call) {
    if (c->options.protocol == CLIENT_HTTP2) return client_http2_submit(l, call);
    l->call = call;
    l->written = 0;
    call->on = l;
    response_parser_begin(&l->reading, call->keep);
    if (l->state == LINE_OPEN) client_http1_send(l);
    return true;
}

// False: the call has to wait. A call that cannot be sent at all is in the list of faults.
static bool place(Client *c, ClientCall *call) {
    ClientConn *l = c->options.protocol == CLIENT_HTTP2 ? lightest(c) : c->idle;
    const char *fault = NULL;
    if (l != NULL && c->options.protocol == CLIENT_HTTP1) {
        c->idle = l->next_free;
    } else if (l == NULL) {
        l = c->closed;
        if (l == NULL) return false;
        if (!client_conn_open(l, &fault)) {
            client_fail(c, call, fault);
            return true;
        }
    }
    return place_on(c, l, call);
}

void client_next(Client *c) {
    while (c->waits != NULL) {
        ClientCall *call = c->waits;
        unlink_wait(c, call);
        if (place(c, call)) continue;
        link_first(c, call);
        return;
    }
}

void client_submit(Client *c, ClientCall *call) {
    call->submitted = clock_now(clock_monotonic());
    call->sent = 0;
    call->on = NULL;
    call->fault = NULL;
    call->waiting = false;
    call->again = 0;
    link_live(c, call);
    if (c->waits != NULL || !place(c, call)) {
        c->counts.waited++;
        link_wait(c, call);
    }
    arm_sweep(c, loop_now(c->loop) + SWEEP_NS);
}

static void end_late(Client *c, ClientCall *call) {
    static const char *const late = "timed out waiting for the response";
    if (call->waiting) {
        unlink_wait(c, call);
        client_fail(c, call, late);
    } else if (c->options.protocol == CLIENT_HTTP2) {
        client_http2_cancel(call->on);
        client_fail(c, call, late);
    } else {
        client_conn_close(call->on, late);
    }
}

static void tell_faults(Client *c) {
    ClientCall *call = c->faults;
    c->faults = c->faults_last = NULL;
    for (ClientCall *next; call != NULL; call = next) {
        next = call->next_waiting;
        client_done(
            c, call,
            &(ClientReply){
                .fault = call->fault, .grpc = UINT32_MAX, .json_len = SIZE_MAX, .message = ""});
    }
}

// All calls have the same timeout, so the oldest expires first.
static void sweep(void *self) {
    Client *c = self;
    TimeNs  now = clock_now(clock_monotonic());
    for (ClientCall *call = c->first, *next; call != NULL; call = next) {
        next = call->next;
        if (call->fault != NULL) continue;
        if (now - call->submitted < c->options.timeout_ns) break;
        end_late(c, call);
    }
    tell_faults(c);
    client_next(c);
    if (c->first != NULL) arm_sweep(c, c->faults != NULL ? now : now + SWEEP_NS);
}

typedef struct Scheme {
    const char    *name, *port;
    ClientProtocol protocol;
} Scheme;

static const Scheme schemes[] = {{"http", "8000", CLIENT_HTTP1}, {"grpc", "8001", CLIENT_HTTP2}};

static Err find_scheme(const char *text, const Scheme **out, const char **rest) {
    const char *mark = strstr(text, "://");
    *out = &schemes[0];
    *rest = mark == NULL ? text : mark + 3;
    if (mark == NULL) return ERR_OK;
    for (size_t i = 0; i < sizeof schemes / sizeof *schemes; i++) {
        *out = &schemes[i];
        if (strlen(schemes[i].name) == (size_t)(mark - text) &&
            strncmp(text, schemes[i].name, (size_t)(mark - text)) == 0)
            return ERR_OK;
    }
    return err_set(ERR_ARG, "invalid URL '%s': use http://HOST:PORT or grpc://HOST:PORT", text);
}

static Err cut_host(const char *text, Str authority, Str *host, Str *port) {
    const char *end = authority.at + authority.len;
    const char *stop = memchr(authority.at, ':', authority.len);
    *host = authority;
    *port = (Str){0};
    if (authority.len > 0 && *authority.at == '[') {
        const char *close = memchr(authority.at, ']', authority.len);
        if (close == NULL || (close + 1 < end && close[1] != ':'))
            return err_set(ERR_ARG, "'%s': an address in brackets does not end", text);
        *host = (Str){authority.at + 1, (size_t)(close - authority.at) - 1};
        stop = close + 1 < end ? close + 1 : NULL;
    } else if (stop != NULL) {
        host->len = (size_t)(stop - authority.at);
    }
    if (stop != NULL) *port = (Str){stop + 1, (size_t)(end - stop) - 1};
    if (host->len == 0 || (stop != NULL && (port->len == 0 || port->len > 5)))
        return err_set(ERR_ARG, "'%s' names no host and port", text);
    for (size_t i = 0; i < port->len; i++)
        if (port->at[i] < '0' || port->at[i] > '9')
            return err_set(ERR_ARG, "'%s': the port is no number", text);
    return ERR_OK;
}

Err client_url(const char *text, Arena *a, ClientUrl *out) {
    const Scheme *scheme = NULL;
    const char   *rest = NULL;
    Str           host, port;
    if (strlen(text) > 2048) return err_set(ERR_ARG, "URL longer than 2048 bytes");
    TRY(find_scheme(text, &scheme, &rest));
    size_t len = strcspn(rest, "/"), path = strlen(rest);
    for (size_t i = 0; i < path; i++)
        if ((unsigned char)rest[i] <= ' ' || strchr("?#@\\", rest[i]) != NULL)
            return err_set(ERR_ARG, "'%s': only a host, a port and a path are understood", text);
    TRY(cut_host(text, (Str){rest, len}, &host, &port));
    while (path > len && rest[path - 1] == '/') path--;
    out->host = arena_printf(a, "%.*s", (int)host.len, host.at);
    out->port = port.at == NULL ? scheme->port : arena_printf(a, "%.*s", (int)port.len, port.at);
    out->path = arena_printf(a, "%.*s", (int)(path - len), rest + len);
    out->protocol = scheme->protocol;
    return ERR_OK;
}

static size_t put(char *to, size_t room, size_t at, const char *text, size_t len) {
    if (len <= room - at) memcpy(to + at, text, len);
    return len <= room - at ? at + len : room;
}

static size_t put_text(char *to, size_t room, size_t at, const char *text) {
    return put(to, room, at, text, strlen(text));
}

static size_t put_authority(const Client *c, char *to, size_t room, size_t at) {
    bool v6 = strchr(c->options.host, ':') != NULL;
    at = put_text(to, room, at, v6 ? "[" : "");
    at = put_text(to, room, at, c->options.host);
    at = put_text(to, room, at, v6 ? "]:" : ":");
    return put_text(to, room, at, c->options.port);
}

static size_t put_head(const Client *c, const ClientRequest *r, char *to, size_t room) {
    char   length[64];
    size_t at = put_text(to, room, 0, r->method);
    at = put_text(to, room, at, " ");
    at = put_text(to, room, at, r->path);
    at = put_text(to, room, at, " HTTP/1.1\r\nHost: ");
    at = put_authority(c, to, room, at);
    for (uint32_t i = 0; i < r->n_headers; i++) {
        at = put_text(to, room, at, "\r\n");
        at = put(to, room, at, r->headers[i].name.at, r->headers[i].name.len);
        at = put_text(to, room, at, ": ");
        at = put(to, room, at, r->headers[i].value.at, r->headers[i].value.len);
    }
    (void)snprintf(length, sizeof length, "\r\nContent-Length: %zu", r->body.iov_len);
    if (r->body.iov_len > 0 || strcmp(r->method, "POST") == 0) at = put_text(to, room, at, length);
    return put_text(to, room, at, "\r\n\r\n");
}

Err client_prepare(const Client *c, ClientRequest *r, Arena *a) {
    enum { ROOM = 8192 };
    bool  http2 = c->options.protocol == CLIENT_HTTP2;
    char *head = arena_try(a, ROOM, 1, 1);
    if (head == NULL) return err_set(ERR_LIMIT, "no memory for a request's head");
    size_t len = http2 ? put_authority(c, head, ROOM, 0) : put_head(c, r, head, ROOM);
    if (len == ROOM) return err_set(ERR_LIMIT, "%s %.40s...: too long", r->method, r->path);
    r->head = (struct iovec){head, len};
    return ERR_OK;
}
