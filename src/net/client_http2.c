// HTTP/2 client with prior knowledge: many calls at once on a connection.
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

#include "base/clock.h"
#include "net/client_int.h"

enum { WINDOW = 16 << 20, HEADERS_MOST = 24, EARLY_STREAMS = 4, REFUSALS = 100 };

static ClientStream *take_stream(Client *c) {
    ClientStream *s = c->free_streams;
    if (s != NULL) {
        c->free_streams = s->next_free;
        return s;
    }
    s = calloc(1, sizeof *s);
    if (s == NULL) return NULL;
    s->body.most = c->options.body_bytes;
    s->next_all = c->all_streams;
    c->all_streams = s;
    return s;
}

static void drop_stream(Client *c, ClientStream *s) {
    s->call = NULL;
    s->line = NULL;
    s->next_free = c->free_streams;
    c->free_streams = s;
}

static ssize_t read_body(nghttp2_session *session, int32_t id, uint8_t *to, size_t room,
                         uint32_t *flags, nghttp2_data_source *source, void *user) {
    ClientStream *s = source->ptr;
    (void)session, (void)id, (void)user;
    if (s->call == NULL) return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
    const struct iovec *body = &s->call->request->body;
    size_t              n = body->iov_len - s->sent < room ? body->iov_len - s->sent : room;
    if (n > 0) memcpy(to, (const char *)body->iov_base + s->sent, n);
    s->sent += n;
    if (s->sent == body->iov_len) *flags |= NGHTTP2_DATA_FLAG_EOF;
    return (ssize_t)n;
}

static uint64_t number_of(const uint8_t *at, size_t len, uint64_t none) {
    uint64_t n = 0;
    if (len == 0 || len > 10) return none;
    for (size_t i = 0; i < len; i++) {
        if (at[i] < '0' || at[i] > '9') return none;
        n = n * 10 + (uint64_t)(at[i] - '0');
    }
    return n;
}

static bool is(const uint8_t *name, size_t len, const char *word) {
    return len == strlen(word) && memcmp(name, word, len) == 0;
}

static int on_header(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name,
                     size_t name_len, const uint8_t *value, size_t value_len, uint8_t flags,
                     void *user) {
    ClientStream *s = nghttp2_session_get_stream_user_data(session, frame->hd.stream_id);
    (void)flags, (void)user;
    if (s == NULL) return 0;
    if (is(name, name_len, ":status"))
        s->status = (uint32_t)number_of(value, value_len, 0);
    else if (is(name, name_len, "grpc-status"))
        s->grpc = (uint32_t)number_of(value, value_len, UINT32_MAX);
    else if (is(name, name_len, "inference-header-content-length"))
        s->json_len = (size_t)number_of(value, value_len, SIZE_MAX);
    else if (is(name, name_len, "grpc-message")) {
        size_t n = value_len < sizeof s->message - 1 ? value_len : sizeof s->message - 1;
        memcpy(s->message, value, n);
        s->message[n] = '\0';
    }
    return 0;
}

static int on_data(nghttp2_session *session, uint8_t flags, int32_t id, const uint8_t *bytes,
                   size_t len, void *user) {
    ClientStream *s = nghttp2_session_get_stream_user_data(session, id);
    (void)flags, (void)user;
    if (s == NULL || s->call == NULL || response_body_add(&s->body, bytes, len) == ERR_OK) return 0;
    return nghttp2_submit_rst_stream(session, NGHTTP2_FLAG_NONE, id, NGHTTP2_CANCEL) == 0
               ? 0
               : NGHTTP2_ERR_CALLBACK_FAILURE;
}

static int on_close(nghttp2_session *session, int32_t id, uint32_t code, void *user) {
    ClientStream *s = nghttp2_session_get_stream_user_data(session, id);
    ClientConn   *l = user;
    Client       *c = l->client;
    if (s == NULL) return 0;
    ClientCall *call = s->call;
    ClientReply r = {.status = s->status,
                     .grpc = s->grpc,
                     .json_len = s->json_len,
                     .body = s->body.at,
                     .kept = s->body.kept,
                     .len = s->body.len,
                     .message = s->message};
    l->streams--;
    l->answers++;
    // A server may reset a stream after a complete response.
    bool whole = s->status != 0 && (code == NGHTTP2_NO_ERROR || s->grpc != UINT32_MAX);
    if (call != NULL && whole) {
        s->call = NULL;
        client_done(c, call, &r);
    } else if (call != NULL && code == NGHTTP2_REFUSED_STREAM && call->again < REFUSALS) {
        client_again(c, call);
    } else if (call != NULL) {
        client_fail(c, call,
                    code == NGHTTP2_CANCEL ? "the response is too large"
                                           : "the server reset the stream without a response");
    }
    drop_stream(c, s);
    return 0;
}

static int on_frame(nghttp2_session *session, const nghttp2_frame *frame, void *user) {
    ClientConn *l = user;
    (void)session;
    if (frame->hd.type == NGHTTP2_SETTINGS) l->settled = true;
    if (frame->hd.type == NGHTTP2_GOAWAY) l->leaving = true;
    return 0;
}

nghttp2_session_callbacks *client_http2_callbacks(void) {
    nghttp2_session_callbacks *to = NULL;
    if (nghttp2_session_callbacks_new(&to) != 0) return NULL;
    nghttp2_session_callbacks_set_on_header_callback(to, on_header);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(to, on_data);
    nghttp2_session_callbacks_set_on_stream_close_callback(to, on_close);
    nghttp2_session_callbacks_set_on_frame_recv_callback(to, on_frame);
    return to;
}

bool client_http2_begin(ClientConn *l) {
    nghttp2_settings_entry set[] = {
        {NGHTTP2_SETTINGS_ENABLE_PUSH, 0},
        {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, WINDOW},
        {NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, (uint32_t)l->client->options.header_bytes}};
    if (l->out == NULL) l->out = malloc(CLIENT_OUT);
    if (l->out == NULL || nghttp2_session_client_new(&l->session, l->client->callbacks, l) != 0)
        return false;
    l->out_at = l->out_len = 0;
    l->streams = 0;
    l->taking = l->settled = l->leaving = false;
    if (nghttp2_submit_settings(l->session, NGHTTP2_FLAG_NONE, set, 3) == 0 &&
        nghttp2_session_set_local_window_size(l->session, NGHTTP2_FLAG_NONE, 0, 4 * WINDOW) == 0)
        return true;
    nghttp2_session_del(l->session);
    l->session = NULL;
    return false;
}

static nghttp2_nv field(Str name, Str value) {
    return (nghttp2_nv){.name = (uint8_t *)(uintptr_t)name.at,
                        .value = (uint8_t *)(uintptr_t)value.at,
                        .namelen = name.len,
                        .valuelen = value.len,
                        .flags = NGHTTP2_NV_FLAG_NONE};
}

static Str text(const char *s) { return (Str){s, strlen(s)}; }

static int32_t submit(ClientConn *l, ClientStream *s, const ClientRequest *r) {
    nghttp2_nv            nv[HEADERS_MOST];
    nghttp2_data_provider from = {.source.ptr = s, .read_callback = read_body};
    size_t                n = 0;
    nv[n++] = field(text(":method"), text(r->method));
    nv[n++] = field(text(":scheme"), text("http"));
    nv[n++] = field(text(":authority"), (Str){r->head.iov_base, r->head.iov_len});
    nv[n++] = field(text(":path"), text(r->path));
    for (uint32_t i = 0; i < r->n_headers && n < HEADERS_MOST; i++)
        nv[n++] = field(r->headers[i].name, r->headers[i].value);
    return nghttp2_submit_request(l->session, NULL, nv, n, r->body.iov_len > 0 ? &from : NULL, s);
}

// Until SETTINGS arrive, the server's limit of streams is unknown: one stream.
bool client_http2_takes(ClientConn *l) {
    uint32_t most = l->settled ? nghttp2_session_get_remote_settings(
                                     l->session, NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS)
                               : EARLY_STREAMS;
    return l->streams < most && nghttp2_session_check_request_allowed(l->session) != 0;
}

bool client_http2_submit(ClientConn *l, ClientCall *call) {
    ClientStream *s = take_stream(l->client);
    if (s == NULL) return false;
    ResponseBody body = s->body;
    *s = (ClientStream){.line = l,
                        .next_all = s->next_all,
                        .call = call,
                        .body = body,
                        .grpc = UINT32_MAX,
                        .json_len = SIZE_MAX};
    response_body_begin(&s->body, call->keep);
    s->id = submit(l, s, call->request);
    if (s->id < 0) {
        drop_stream(l->client, s);
        return false;
    }
    l->streams++;
    call->on = s;
    call->sent = clock_now(clock_monotonic());
    // An error here shows up at the next read.
    if (l->state == LINE_OPEN && !l->taking) (void)client_http2_flush(l);
    return true;
}

void client_http2_cancel(ClientStream *s) {
    ClientConn *l = s->line;
    s->call = NULL;
    if (nghttp2_submit_rst_stream(l->session, NGHTTP2_FLAG_NONE, s->id, NGHTTP2_CANCEL) != 0 ||
        l->state != LINE_OPEN || l->taking)
        return;
    (void)client_http2_flush(l);
}

static bool gather(ClientConn *l) {
    for (;;) {
        const uint8_t *bytes = NULL;
        if (l->out_len + 32 * 1024 > CLIENT_OUT) return true;  // a frame has 16 KiB and a head
        ssize_t n = nghttp2_session_mem_send(l->session, &bytes);
        if (n < 0 || (size_t)n > CLIENT_OUT - l->out_len) return false;
        if (n == 0) return true;
        memcpy(l->out + l->out_len, bytes, (size_t)n);
        l->out_len += (size_t)n;
    }
}

bool client_http2_flush(ClientConn *l) {
    for (;;) {
        if (l->out_at == l->out_len) {
            l->out_at = l->out_len = 0;
            if (!gather(l)) return false;
            if (l->out_len == 0) break;
        }
        ssize_t n = send(l->fd.fd, l->out + l->out_at, l->out_len - l->out_at, MSG_NOSIGNAL);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
            loop_events(l->client->loop, &l->fd, EPOLLIN | EPOLLOUT);
            return true;
        }
        if (n < 0) break;  // the response may precede the reset: read it first
        l->out_at += (size_t)n;
    }
    loop_events(l->client->loop, &l->fd, EPOLLIN);
    return true;
}

static void take(ClientConn *l, size_t len) {
    l->taking = true;
    ssize_t n = nghttp2_session_mem_recv(l->session, (const uint8_t *)l->client->in, len);
    l->taking = false;
    if (n < 0 || !client_http2_flush(l))
        client_conn_close(l, "the response is not HTTP/2");
    else if (nghttp2_session_want_read(l->session) == 0 &&
             nghttp2_session_want_write(l->session) == 0)
        client_conn_close(l, l->leaving ? "the server closed the connection (GOAWAY)"
                                        : "the response is not HTTP/2");
}

void client_http2_ready(ClientConn *l, uint32_t events) {
    Client *c = l->client;
    if ((events & EPOLLOUT) != 0 && !client_http2_flush(l))
        client_conn_close(l, "the response is not HTTP/2");
    for (uint32_t rounds = 0; rounds < 8 && l->state == LINE_OPEN; rounds++) {
        ssize_t n = recv(l->fd.fd, c->in, CLIENT_IN, 0);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) break;
        if (n <= 0)
            client_conn_close(l, "the server closed the connection without a response");
        else
            take(l, (size_t)n);
        if (n < CLIENT_IN) break;
    }
    client_next(c);
}

// Calls of a connection that delivered responses before are retried on another one.
void client_http2_end(ClientConn *l, const char *fault) {
    Client *c = l->client;
    bool    fresh = l->answers == 0;
    for (ClientStream *s = c->all_streams; s != NULL; s = s->next_all) {
        ClientCall *call = s->call;
        if (s->line != l) continue;
        drop_stream(c, s);
        if (call == NULL) continue;
        if (fresh || call->again >= REFUSALS || s->status != 0)
            client_fail(c, call, fault);
        else
            client_again(c, call);
    }
    nghttp2_session_del(l->session);
    l->session = NULL;
    l->streams = 0;
}
