#include "tests/net/scripted_server.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <nghttp2/nghttp2.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

static void drop(ScriptedConn *l) {
    if (l->fd.fd < 0) return;
    loop_forget(l->server->loop, &l->fd);
    close(l->fd.fd);
    l->fd.fd = -1;
    nghttp2_session_del(l->session);
    l->session = NULL;
}

static void say(ScriptedConn *l) {
    ScriptedServer *p = l->server;
    size_t          len = p->len > 0 ? p->len : strlen(p->response);
    ssize_t         n = send(l->fd.fd, p->response, len, MSG_NOSIGNAL);
    (void)n;
    if (p->then_close) drop(l);
}

static ssize_t no_data(nghttp2_session *s, int32_t id, uint8_t *to, size_t room, uint32_t *flags,
                       nghttp2_data_source *source, void *user) {
    ScriptedConn *l = user;
    nghttp2_nv trailer = {(uint8_t *)(uintptr_t) "grpc-status", (uint8_t *)(uintptr_t) "0", 11, 1,
                          NGHTTP2_NV_FLAG_NONE};
    size_t     len = strlen(l->server->response);
    (void)source, (void)room;
    memcpy(to, l->server->response, len);
    *flags = NGHTTP2_DATA_FLAG_EOF | NGHTTP2_DATA_FLAG_NO_END_STREAM;
    assert_int_equal(nghttp2_submit_trailer(s, id, &trailer, 1), 0);
    return (ssize_t)len;
}

static int on_frame(nghttp2_session *s, const nghttp2_frame *f, void *user) {
    ScriptedConn *l = user;
    nghttp2_nv    status = {(uint8_t *)(uintptr_t) ":status", (uint8_t *)(uintptr_t) "200", 7, 3,
                            NGHTTP2_NV_FLAG_NONE};
    nghttp2_data_provider from = {.read_callback = no_data};
    if (f->hd.type != NGHTTP2_HEADERS && f->hd.type != NGHTTP2_DATA) return 0;
    if ((f->hd.flags & NGHTTP2_FLAG_END_STREAM) == 0) return 0;
    l->server->requests++;
    if (l->server->resets)
        return nghttp2_submit_rst_stream(s, 0, f->hd.stream_id, NGHTTP2_INTERNAL_ERROR);
    return nghttp2_submit_response(s, f->hd.stream_id, &status, 1, &from);
}

static void begin_http2(ScriptedConn *l) {
    nghttp2_session_callbacks *on = NULL;
    nghttp2_session           *s = NULL;
    nghttp2_settings_entry     set = {NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, 8};
    assert_int_equal(nghttp2_session_callbacks_new(&on), 0);
    nghttp2_session_callbacks_set_on_frame_recv_callback(on, on_frame);
    assert_int_equal(nghttp2_session_server_new(&s, on, l), 0);
    nghttp2_session_callbacks_del(on);
    assert_int_equal(nghttp2_submit_settings(s, 0, &set, 1), 0);
    l->session = s;
}

static void flush(ScriptedConn *l) {
    const uint8_t *bytes = NULL;
    for (ssize_t n; (n = nghttp2_session_mem_send(l->session, &bytes)) > 0;)
        assert_int_equal(send(l->fd.fd, bytes, (size_t)n, MSG_NOSIGNAL), n);
}

static void ready(void *self, uint32_t events) {
    ScriptedConn   *l = self;
    ScriptedServer *p = l->server;
    char            in[65536];
    (void)events;
    ssize_t n = recv(l->fd.fd, in, sizeof in, MSG_DONTWAIT);
    if (n <= 0 || p->mode == SCRIPTED_CLOSES) {
        drop(l);
    } else if (p->mode == SCRIPTED_HTTP2) {
        if (nghttp2_session_mem_recv(l->session, (uint8_t *)in, (size_t)n) < 0)
            drop(l);
        else
            flush(l);
    } else if (p->mode == SCRIPTED_RESPONDS && memmem(in, (size_t)n, "\r\n\r\n", 4) != NULL) {
        p->requests++;
        say(l);
    }
}

static void accepts(void *self, uint32_t events) {
    ScriptedServer *p = self;
    int             fd = accept4(p->listener.fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    (void)events;
    for (uint32_t i = 0; fd >= 0 && i < SCRIPTED_CONNS; i++) {
        ScriptedConn *l = &p->lines[i];
        if (l->fd.fd >= 0) continue;
        *l = (ScriptedConn){.server = p,
                            .fd = {.fd = fd, .events = EPOLLIN, .ready = ready, .self = l}};
        p->accepted++;
        assert_int_equal(loop_watch(p->loop, &l->fd), ERR_OK);
        if (p->mode == SCRIPTED_HTTP2) begin_http2(l);
        if (p->unsolicited) say(l);
        return;
    }
    if (fd >= 0) close(fd);
}

void scripted_server_open(ScriptedServer *p, Loop *l) {
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t          len = sizeof a;
    int                fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    assert_true(fd >= 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&a, sizeof a), 0);
    assert_int_equal(listen(fd, 128), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&a, &len), 0);
    (void)snprintf(p->port, sizeof p->port, "%u", (unsigned)ntohs(a.sin_port));
    for (uint32_t i = 0; i < SCRIPTED_CONNS; i++) p->lines[i].fd.fd = -1;
    p->loop = l;
    p->listener = (LoopFd){.fd = fd, .events = EPOLLIN, .ready = accepts, .self = p};
    assert_int_equal(loop_watch(l, &p->listener), ERR_OK);
}

void scripted_server_hang_up(ScriptedServer *p) {
    for (uint32_t i = 0; i < SCRIPTED_CONNS; i++) drop(&p->lines[i]);
}

void scripted_server_close(ScriptedServer *p) {
    scripted_server_hang_up(p);
    loop_forget(p->loop, &p->listener);
    close(p->listener.fd);
}
