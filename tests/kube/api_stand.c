#include "tests/kube/api_stand.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

void api_conn_close(ApiConn *c) {
    if (c->fd.fd < 0) return;
    loop_forget(c->stand->loop, &c->fd);
    close(c->fd.fd);
    c->fd.fd = -1;
}

void api_conn_reset(ApiConn *c) {
    struct linger now = {1, 0};
    if (c->fd.fd >= 0) (void)setsockopt(c->fd.fd, SOL_SOCKET, SO_LINGER, &now, sizeof now);
    api_conn_close(c);
}

// The client runs on the same loop, so large answers must fit into the socket's buffers.
void api_conn_send(ApiConn *c, const char *bytes, size_t len) {
    if (c->fd.fd < 0) return;
    assert_int_equal(send(c->fd.fd, bytes, len, MSG_NOSIGNAL), (ssize_t)len);
}

void api_conn_say(ApiConn *c, const char *text) { api_conn_send(c, text, strlen(text)); }

void api_conn_answer(ApiConn *c, int status, const char *extra, const char *body) {
    char head[1024];
    (void)snprintf(head, sizeof head,
                   "HTTP/1.1 %d Status\r\nContent-Type: application/json\r\n%s"
                   "Content-Length: %zu\r\n\r\n",
                   status, extra, strlen(body));
    api_conn_say(c, head);
    api_conn_say(c, body);
}

void api_conn_begin_lines(ApiConn *c) {
    api_conn_say(c, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
                    "Transfer-Encoding: chunked\r\n\r\n");
}

void api_conn_chunk(ApiConn *c, const char *text) {
    char size[32];
    (void)snprintf(size, sizeof size, "%zx\r\n", strlen(text));
    api_conn_say(c, size);
    api_conn_say(c, text);
    api_conn_say(c, "\r\n");
}

void api_conn_line(ApiConn *c, const char *text) {
    char *line = NULL;
    assert_true(asprintf(&line, "%s\n", text) > 0);
    api_conn_chunk(c, line);
    free(line);
}

void api_conn_end_lines(ApiConn *c) { api_conn_say(c, "0\r\n\r\n"); }

// Handles one whole request at the start of the buffer; false: none is there.
static bool take_request(ApiConn *c) {
    c->in[c->len] = '\0';
    char *end = strstr(c->in, "\r\n\r\n");
    if (end == NULL) return false;
    const char *length = strcasestr(c->in, "\r\nContent-Length:");
    size_t      head = (size_t)(end - c->in) + 4;
    size_t      body = length != NULL && length < end ? strtoul(length + 17, NULL, 10) : 0;
    if (c->len < head + body) return false;
    char *copy = strndup(c->in, head + body), *text = strndup(copy + head, body), *rest = NULL;
    copy[head - 2] = '\0';
    c->len -= head + body;
    memmove(c->in, c->in + head + body, c->len);
    const char *method = strtok_r(copy, " ", &rest), *path = strtok_r(NULL, " ", &rest);
    ApiRequest  r = {.method = method, .path = path, .head = rest, .body = text};
    c->requests++;
    c->stand->requests++;
    c->stand->request(c->stand->self, c, &r);
    free(text);
    free(copy);
    return c->fd.fd >= 0;
}

static void ready(void *self, uint32_t events) {
    ApiConn *c = self;
    (void)events;
    ssize_t n = recv(c->fd.fd, c->in + c->len, sizeof c->in - 1 - c->len, MSG_DONTWAIT);
    if (n < 0 && errno == EAGAIN) return;
    if (n <= 0) {
        api_conn_close(c);
        return;
    }
    c->len += (size_t)n;
    while (take_request(c)) {
    }
}

static void accepts(void *self, uint32_t events) {
    ApiStand *s = self;
    int       fd = accept4(s->listener.fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    int       most = 8 << 20;
    (void)events;
    for (uint32_t i = 0; fd >= 0 && i < STAND_CONNS; i++) {
        ApiConn *c = &s->conns[i];
        if (c->fd.fd >= 0) continue;
        c->stand = s;
        c->len = c->requests = 0;
        c->fd = (LoopFd){.fd = fd, .events = EPOLLIN, .ready = ready, .self = c};
        s->accepted++;
        (void)setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &most, sizeof most);
        assert_int_equal(loop_watch(s->loop, &c->fd), ERR_OK);
        if (s->rejects) api_conn_reset(c);
        return;
    }
    if (fd >= 0) close(fd);
}

void api_stand_open(ApiStand *s, Loop *l, void (*request)(void *, ApiConn *, const ApiRequest *),
                    void *self) {
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t          len = sizeof a;
    int                fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    assert_true(fd >= 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&a, sizeof a), 0);
    assert_int_equal(listen(fd, 128), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&a, &len), 0);
    *s = (ApiStand){.loop = l, .request = request, .self = self};
    s->conns = calloc(STAND_CONNS, sizeof *s->conns);
    assert_non_null(s->conns);
    (void)snprintf(s->url, sizeof s->url, "http://127.0.0.1:%u", (unsigned)ntohs(a.sin_port));
    for (uint32_t i = 0; i < STAND_CONNS; i++) s->conns[i].fd.fd = -1;
    s->listener = (LoopFd){.fd = fd, .events = EPOLLIN, .ready = accepts, .self = s};
    assert_int_equal(loop_watch(l, &s->listener), ERR_OK);
}

void api_stand_close(ApiStand *s) {
    for (uint32_t i = 0; i < STAND_CONNS; i++) api_conn_close(&s->conns[i]);
    loop_forget(s->loop, &s->listener);
    close(s->listener.fd);
    free(s->conns);
}
