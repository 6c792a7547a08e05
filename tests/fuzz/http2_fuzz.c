// Feeds bytes to a connection that speaks HTTP/2; whatever they are, all that began ends and
// nothing is held.
#include <stdint.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "net/listener.h"
#include "net/stream.h"
#include "tests/fuzz/fuzz.h"

static Loop     *loop;
static Listener *listener;
static LoopPost  look;
static int       client;
static uint64_t  begun, ended;

static void on_head(void *self, Exchange *x) {
    (void)self;
    begun++;
    x->aligned = x->path.len % 64;
}

static void on_request(void *self, Exchange *x) {
    (void)self;
    static struct iovec piece;
    Answer a = {.type = "application/grpc", .body = &piece, .n_body = 1, .n_trailers = 1};
    piece = (struct iovec){(void *)(uintptr_t) "\0\0\0\0\0", 5};
    a.trailers[0] = (ExchangeHeader){{"grpc-status", 11}, {"0", 1}};
    if (x->body_len != 3) exchange_answer(x, &a);
}

static void on_ended(void *self, Exchange *x, bool sent) {
    (void)self;
    if (sent && !x->answered) abort();
    ended++;
}

static void on_look(void *self) {
    (void)self;
    char bytes[4096];
    while (recv(client, bytes, sizeof bytes, MSG_DONTWAIT) > 0) {
    }
    if (listener_counts(listener).open == 0)
        loop_stop(loop);
    else
        loop_post(loop, &look);
}

static void begin(void) {
    ListenerOptions o = {.address = "127.0.0.1:0",
                         .protocol = LISTENER_HTTP2,
                         .limits = {.body_bytes = 1 << 16, .held_bytes = 1 << 18},
                         .handler = {.head = on_head, .request = on_request, .ended = on_ended}};
    if (loop_create(&loop) != ERR_OK || listener_open(&listener, loop, &o) != ERR_OK) abort();
}

FUZZ_TARGET(data, size) {
    static const char preface[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0\0";
    int               pair[2], room = 1 << 20;
    if (size > 60000) return 0;
    if (loop == NULL) begin();
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair) != 0) abort();
    (void)setsockopt(pair[0], SOL_SOCKET, SO_SNDBUF, &room, sizeof room);
    client = pair[0];
    bool greet = size == 0 || data[0] != 'P';
    if (stream_adopt(listener, pair[1]) != NULL) {
        if (greet) (void)send(client, preface, sizeof preface - 1, MSG_NOSIGNAL);
        (void)send(client, data, size, MSG_NOSIGNAL);
        (void)shutdown(client, SHUT_WR);
        look.run = on_look;
        loop_post(loop, &look);
        if (loop_run(loop) != ERR_OK) abort();
    }
    close(client);
    if (begun != ended || listener_counts(listener).held_bytes != 0) abort();
    return 0;
}
