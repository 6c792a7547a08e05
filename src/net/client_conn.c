// Opens and closes the client's connections, for either protocol.
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "net/client_int.h"

static const char *why(int code) {
    switch (code) {
    case ECONNREFUSED: return "connection refused";
    case EMFILE:
    case ENFILE:
        return "out of file descriptors: raise the limit (ulimit -n) or use fewer connections";
    case EADDRNOTAVAIL: return "out of local ports for connections";
    default: return "cannot connect";
    }
}

static void ready(void *self, uint32_t events) {
    ClientConn *l = self;
    const char *fault = NULL;
    if (l->state == LINE_CONNECTING && !client_conn_connected(l, &fault))
        client_conn_close(l, fault);
    else if (l->client->options.protocol == CLIENT_HTTP2)
        client_http2_ready(l, events);
    else
        client_http1_ready(l, events);
}

bool client_conn_connected(ClientConn *l, const char **fault) {
    int       code = 0;
    socklen_t len = sizeof code;
    if (getsockopt(l->fd.fd, SOL_SOCKET, SO_ERROR, &code, &len) != 0) code = errno;
    if (code != 0) {
        *fault = why(code);
        return false;
    }
    l->state = LINE_OPEN;
    return true;
}

static bool begin(ClientConn *l, const char **fault) {
    Client *c = l->client;
    int     one = 1;
    (void)setsockopt(l->fd.fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    int code = connect(l->fd.fd, (struct sockaddr *)&c->address, c->address_len);
    if (code != 0 && errno != EINPROGRESS) {
        *fault = why(errno);
        return false;
    }
    l->state = code == 0 ? LINE_OPEN : LINE_CONNECTING;
    l->fd.events = EPOLLIN | (code == 0 ? 0 : EPOLLOUT);
    l->fd.ready = ready;
    l->fd.self = l;
    if (loop_watch(c->loop, &l->fd) != ERR_OK) {
        *fault = "epoll rejected the socket";
        return false;
    }
    if (c->options.protocol == CLIENT_HTTP2 && !client_http2_begin(l)) {
        loop_forget(c->loop, &l->fd);
        *fault = "no memory for HTTP/2";
        return false;
    }
    return true;
}

bool client_conn_open(ClientConn *l, const char **fault) {
    Client *c = l->client;
    l->fd.fd = socket(c->address.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (l->fd.fd < 0) {
        *fault = why(errno);
        return false;
    }
    l->answers = 0;
    l->call = NULL;
    if (!begin(l, fault)) {
        close(l->fd.fd);
        l->fd.fd = -1;
        l->state = LINE_CLOSED;
        return false;
    }
    c->closed = l->next_free;
    if (c->n_used < (uint32_t)(l - c->conns) + 1) c->n_used = (uint32_t)(l - c->conns) + 1;
    c->counts.connects++;
    c->counts.open++;
    return true;
}

static void leave_idle(ClientConn *l) {
    for (ClientConn **at = &l->client->idle; *at != NULL; at = &(*at)->next_free)
        if (*at == l) {
            *at = l->next_free;
            return;
        }
}

void client_conn_close(ClientConn *l, const char *fault) {
    Client     *c = l->client;
    ClientCall *call = l->call;
    if (l->state == LINE_CLOSED) return;
    if (c->options.protocol == CLIENT_HTTP1 && call == NULL) leave_idle(l);
    loop_forget(c->loop, &l->fd);
    close(l->fd.fd);
    l->fd.fd = -1;
    l->state = LINE_CLOSED;
    l->call = NULL;
    l->next_free = c->closed;
    c->closed = l;
    c->counts.open--;
    if (call != NULL) client_fail(c, call, fault);
    if (l->session != NULL) client_http2_end(l, fault);
}
