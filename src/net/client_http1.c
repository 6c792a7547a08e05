// HTTP/1.1: one call at a time on a connection, which is kept for the next.
#include <errno.h>
#include <string.h>
#include <sys/epoll.h>

#include "base/clock.h"
#include "net/client_int.h"

static size_t request_bytes(const ClientRequest *r) { return r->head.iov_len + r->body.iov_len; }

static ssize_t write_some(ClientLine *l) {
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

// A server may close a connection that has been idle just when we use it: then the call is sent
// again. A fresh connection that is closed without an answer is a failure.
static void lost(ClientLine *l, const char *fault) {
    ClientCall *call = l->call;
    if (call != NULL && l->answers > 0 && !l->reading.begun) {
        Client *c = l->client;
        l->call = NULL;
        client_line_close(l, fault);
        client_again(c, call);
        return;
    }
    client_line_close(l, fault);
}

void client_http1_send(ClientLine *l) {
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
            // What it said before it hung up is still to be read.
            loop_events(l->client->loop, &l->fd, EPOLLIN);
            return;
        }
        l->written += (size_t)n;
    }
    loop_events(l->client->loop, &l->fd, EPOLLIN);
}

static void complete(ClientLine *l, bool keep) {
    Client              *c = l->client;
    ClientCall          *call = l->call;
    const ClientReading *r = &l->reading;
    ClientReply          reply = {.status = r->status,
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
    if (!keep) client_line_close(l, NULL);
    client_done(c, call, &reply);
    client_next(c);
}

static void take(ClientLine *l, size_t len) {
    size_t used = 0;
    if (l->call == NULL) {
        client_line_close(l, NULL);  // nobody asked
        client_next(l->client);
        return;
    }
    Err e = client_reading_take(&l->reading, l->client->in, len, &used);
    if (e != ERR_OK)
        client_line_close(l, e == ERR_LIMIT ? "its answer is too large" : "its answer is not HTTP");
    else if (l->reading.step == READING_DONE)
        complete(l, used == len);
}

static void hung_up(ClientLine *l) {
    bool whole = l->call != NULL && client_reading_end(&l->reading) == ERR_OK;
    if (whole)
        complete(l, false);
    else
        lost(l, l->reading.begun ? "it closed the connection in the middle of an answer"
                                 : "it closed the connection without an answer");
}

void client_http1_ready(ClientLine *l, uint32_t events) {
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
        if (n < CLIENT_IN) return;  // and the rest, if there is any, in the next round
    }
}
