// HTTP/1.1 client: one call at a time on a connection, with keep-alive.
#include <errno.h>
#include <string.h>
#include <sys/epoll.h>

#include "base/clock.h"
#include "net/client_int.h"

static size_t request_bytes(const ClientRequest *r) { return r->head.iov_len + r->body.iov_len; }

static ssize_t write_some(ClientConn *l) {
    const ClientRequest *r = l->call->request;
    struct iovec         parts[2] = {r->head, r->body};
    struct msghdr        m = {.msg_iov = parts, .msg_iovlen = 2};
    size_t               skip = l->written;
    if (skip >= parts[0].iov_len) {
        skip -= parts[0].iov_len;
        m.msg_iov = &parts[1];
        m.msg_iovlen = 1;
    }
    m.msg_iov[0].iov_base = (char *)m.msg_iov[0].iov_base + skip;
    m.msg_iov[0].iov_len -= skip;
    return sendmsg(l->fd.fd, &m, MSG_NOSIGNAL);
}

// A server may close an idle connection just as it is reused: the call is then retried.
// A new connection that is closed without a response is a failure.
static void lost(ClientConn *l, const char *fault) {
    ClientCall *call = l->call;
    if (call != NULL && l->answers > 0 && !l->reading.begun) {
        Client *c = l->client;
        l->call = NULL;
        client_conn_close(l, fault);
        client_again(c, call);
        return;
    }
    client_conn_close(l, fault);
}

void client_http1_send(ClientConn *l) {
    size_t all = request_bytes(l->call->request);
    if (l->call->sent == 0) l->call->sent = clock_now(clock_monotonic());
    while (l->written < all) {
        ssize_t n = write_some(l);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
            loop_events(l->client->loop, &l->fd, EPOLLIN | EPOLLOUT);
            return;
        }
        if (n < 0) {
            // The response may precede the reset: read it first.
            loop_events(l->client->loop, &l->fd, EPOLLIN);
            return;
        }
        l->written += (size_t)n;
    }
    loop_events(l->client->loop, &l->fd, EPOLLIN);
}

static void complete(ClientConn *l, bool keep) {
    Client               *c = l->client;
    ClientCall           *call = l->call;
    const ResponseParser *r = &l->reading;
    ClientReply           reply = {.status = r->status,
                                   .grpc = UINT32_MAX,
                                   .json_len = r->json_len,
                                   .body = r->body.at,
                                   .kept = r->body.kept,
                                   .len = r->body.len,
                                   .message = ""};
    keep = keep && !r->close && l->written == request_bytes(call->request);
    l->call = NULL;
    l->answers++;
    l->next_free = c->idle;
    c->idle = l;
    if (!keep) client_conn_close(l, NULL);
    client_done(c, call, &reply);
    client_next(c);
}

static void take(ClientConn *l, size_t len) {
    size_t used = 0;
    if (l->call == NULL) {
        client_conn_close(l, NULL);  // unsolicited data
        client_next(l->client);
        return;
    }
    Err e = response_parser_take(&l->reading, l->client->in, len, &used);
    if (e != ERR_OK)
        client_conn_close(l, e == ERR_LIMIT ? "the response is too large"
                                            : "the response is not HTTP");
    else if (l->reading.step == RESPONSE_DONE)
        complete(l, used == len);
}

static void hung_up(ClientConn *l) {
    bool whole = l->call != NULL && response_parser_end(&l->reading) == ERR_OK;
    if (whole)
        complete(l, false);
    else
        lost(l, l->reading.begun ? "the server closed the connection in the middle of a response"
                                 : "the server closed the connection without a response");
}

void client_http1_ready(ClientConn *l, uint32_t events) {
    if ((events & EPOLLOUT) != 0 && l->call != NULL) client_http1_send(l);
    if ((events & (EPOLLIN | EPOLLHUP | EPOLLERR)) == 0) return;
    for (uint32_t rounds = 0; rounds < 8 && l->state == LINE_OPEN; rounds++) {
        ssize_t n = recv(l->fd.fd, l->client->in, CLIENT_IN, 0);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return;
        if (n <= 0) {
            hung_up(l);
            return;
        }
        take(l, (size_t)n);
        if (n < CLIENT_IN) return;  // the rest, if any, in the next iteration
    }
}
