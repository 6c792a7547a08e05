#include "net/client.h"

#include <errno.h>
#include <netdb.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

#include "base/err.h"
#include "base/clock.h"
#include "net/client_int.h"

enum { SWEEP_NS = 20 * 1000 * 1000 };

static void sweep(void *self);

static Err find_address(Client *c) {
    struct addrinfo  hint = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_ADDRCONFIG};
    struct addrinfo *found = NULL;
    int              code = getaddrinfo(c->options.host, c->options.port, &hint, &found);
    if (code != 0)
        return err_set(ERR_IO, "no address of '%s', port '%s': %s", c->options.host,
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
    c->lines = calloc(c->options.connections, sizeof *c->lines);
    if (c->lines == NULL)
        return err_set(ERR_LIMIT, "no memory for %u connections", c->options.connections);
    for (uint32_t i = c->options.connections; i-- > 0;) {
        ClientLine *l = &c->lines[i];
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
    for (uint32_t i = 0; c->lines != NULL && i < c->options.connections; i++) {
        ClientLine *l = &c->lines[i];
        l->call = NULL;
        client_line_close(l, NULL);
        client_reading_finish(&l->reading);
        free(l->out);
    }
    for (ClientStream *s = c->all_streams, *next; s != NULL; s = next) {
        next = s->next_all;
        free(s->body.at);
        free(s);
    }
    nghttp2_session_callbacks_del(c->callbacks);
    loop_disarm(c->loop, &c->sweep);
    free(c->lines);
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
    // Without memory for one timer there is none for anything: the loop stops, calls stay open.
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

// The HTTP/2 connection with the fewest streams; NULL: all have as many as they may.
static ClientLine *lightest(Client *c) {
    ClientLine *best = NULL;
    for (uint32_t i = 0; i < c->n_used; i++) {
        ClientLine *l = &c->lines[i];
        if (l->state == LINE_CLOSED || l->streams >= c->options.streams) continue;
        if ((best == NULL || l->streams < best->streams) && client_http2_takes(l)) best = l;
    }
    return best;
}

static bool place_on(Client *c, ClientLine *l, ClientCall *call) {
    if (c->options.protocol == CLIENT_HTTP2) return client_http2_submit(l, call);
    l->call = call;
    l->written = 0;
    call->on = l;
    client_reading_begin(&l->reading, call->keep);
    if (l->state == LINE_OPEN) client_http1_send(l);
    return true;
}

// False: it has to wait. A call that cannot be sent at all is among the faults then.
static bool place(Client *c, ClientCall *call) {
    ClientLine *l = c->options.protocol == CLIENT_HTTP2 ? lightest(c) : c->idle;
    const char *fault = NULL;
    if (l != NULL && c->options.protocol == CLIENT_HTTP1) {
        c->idle = l->next_free;
    } else if (l == NULL) {
        l = c->closed;
        if (l == NULL) return false;
        if (!client_line_open(l, &fault)) {
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
    static const char *const late = "no answer in time";
    if (call->waiting) {
        unlink_wait(c, call);
        client_fail(c, call, late);
    } else if (c->options.protocol == CLIENT_HTTP2) {
        client_http2_cancel(call->on);
        client_fail(c, call, late);
    } else {
        client_line_close(call->on, late);
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

// All calls have the same patience, so the oldest is late first.
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
