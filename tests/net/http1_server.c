#include "tests/net/http1_server.h"

#include <arpa/inet.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

typedef struct DelayedAnswer {
    LoopTimer           timer;
    struct Http1Server *host;
    Exchange           *x;
    struct iovec        piece;
} DelayedAnswer;

struct Http1Server {
    Loop          *loop;
    Listener      *listener;
    pthread_t      thread;
    LoopPost       post;
    atomic_int     asked, answered;  // a question to the thread
    int            question;
    ListenerCounts counts;
    bool           drained;
    atomic_int     heads, requests, ended, lost;
    Budget        *budget;
    char          *big;
    size_t         big_len;
};

static bool http1_server_is(Str s, const char *text) {
    return s.len == strlen(text) && memcmp(s.at, text, s.len) == 0;
}

static size_t http1_server_number(Str s) {
    size_t n = 0;
    for (size_t i = 0; i < s.len; i++)
        if (s.at[i] >= '0' && s.at[i] <= '9') n = n * 10 + (size_t)(s.at[i] - '0');
    return n;
}

static void http1_server_head(void *self, Exchange *x) {
    Http1Server *h = self;
    atomic_fetch_add(&h->heads, 1);
    if (x->query.len > 5 && memcmp(x->query.at, "most=", 5) == 0)
        x->most = http1_server_number(x->query);
    if (http1_server_is(x->path, "/aligned")) x->aligned = http1_server_number(x->query);
    x->keep_packed = http1_server_is(x->path, "/packed");
    x->budget = h->budget;
    if (http1_server_is(x->path, "/early")) {
        Answer a = {.status = 503, .type = "text/plain"};
        exchange_answer(x, &a);
    }
}

static void http1_server_fire(void *self) {
    DelayedAnswer *d = self;
    Answer         a = {.type = "text/plain", .body = &d->piece, .n_body = 1};
    d->piece = (struct iovec){d->x->body, d->x->body_len};
    exchange_answer(d->x, &a);
}

static void http1_server_later(Http1Server *h, Exchange *x) {
    DelayedAnswer *d = calloc(1, sizeof *d);
    *d = (DelayedAnswer){.timer = {.fire = http1_server_fire, .self = d}, .host = h, .x = x};
    x->user = d;
    TimeNs ms = x->query.len > 0 ? (TimeNs)http1_server_number(x->query) : 2;
    if (loop_arm(h->loop, &d->timer, loop_now(h->loop) + ms * 1000000) != ERR_OK) abort();
}

static void http1_server_request(void *self, Exchange *x) {
    Http1Server *h = self;
    char         text[32];
    struct iovec piece = {x->body, x->body_len};
    Answer       a = {.type = "text/plain", .body = &piece, .n_body = 1};
    atomic_fetch_add(&h->requests, 1);
    if (http1_server_is(x->path, "/hold")) return;
    if (http1_server_is(x->path, "/later")) {
        http1_server_later(h, x);
        return;
    }
    struct iovec *kept = x->user = calloc(2, sizeof *kept);  // the second: bytes charged
    if (http1_server_is(x->path, "/big")) {
        piece = (struct iovec){h->big, http1_server_number(x->query)};
        if (piece.iov_len > h->big_len) abort();
        if (budget_take(h->budget, piece.iov_len))
            kept[1].iov_len = piece.iov_len;
        else
            a = (Answer){.status = 503};
    } else if (http1_server_is(x->path, "/aligned")) {
        snprintf(text, sizeof text, "%u %zu", (unsigned)(((uintptr_t)x->body + x->aligned) % 64),
                 x->body_len);
        memcpy(h->big, text, sizeof text);
        piece = (struct iovec){h->big, strlen(text)};
    } else if (http1_server_is(x->path, "/none")) {
        a = (Answer){.status = 204};
    } else if (http1_server_is(x->path, "/close")) {
        a.close = true;
    } else if (http1_server_is(x->path, "/extra")) {
        a.extra[0] = (ExchangeHeader){{"X-Bad", 5}, {"a\r\nX-Worse: b", 13}};
        a.extra[1] = (ExchangeHeader){{"X-Long", 6}, {h->big, http1_server_number(x->query)}};
        a.n_extra = 2;
    } else if (http1_server_is(x->path, "/packed")) {
        if ((uintptr_t)x->body % 64 != 0) abort();
        if (x->packing != INFLATE_GZIP) a.status = 404;
    } else if (!http1_server_is(x->path, "/echo")) {
        a.status = 404;
    }
    *kept = piece;
    if (a.body) a.body = kept;
    exchange_answer(x, &a);
}

static void http1_server_gone(void *self, Exchange *x, bool sent) {
    Http1Server *h = self;
    atomic_fetch_add(&h->ended, 1);
    if (!sent) atomic_fetch_add(&h->lost, 1);
    if (http1_server_is(x->path, "/later") && x->user)
        loop_disarm(h->loop, &((DelayedAnswer *)x->user)->timer);
    else if (x->user)
        budget_give(h->budget, ((struct iovec *)x->user)[1].iov_len);
    free(x->user);
}

static void *http1_server_main(void *self) {
    Http1Server *h = self;
    if (loop_run(h->loop) != ERR_OK) abort();
    return NULL;
}

static void http1_server_reply(void *self) {
    Http1Server *h = self;
    if (h->question == 1) listener_drain(h->listener);
    h->counts = listener_counts(h->listener);
    h->drained = listener_drained(h->listener);
    atomic_store(&h->answered, 1);
}

static void http1_server_question(Http1Server *h, int question) {
    struct timespec moment = {.tv_nsec = 100000};
    atomic_store(&h->answered, 0);
    h->question = question;
    h->post = (LoopPost){.run = http1_server_reply, .self = h};
    loop_post(h->loop, &h->post);
    while (!atomic_load(&h->answered)) nanosleep(&moment, NULL);
}

Http1Server *http1_server_open_shared(const ListenerLimits *limits, const char *address,
                                      Budget *budget) {
    Http1Server    *h = calloc(1, sizeof *h);
    ListenerOptions o = {
        .address = address,
        .limits = limits ? *limits : (ListenerLimits){0},
        .budget = budget,
        .handler = {http1_server_head, http1_server_request, http1_server_gone, h, NULL}};
    h->budget = budget;
    h->big_len = (size_t)8 << 20;
    h->big = malloc(h->big_len);
    for (size_t i = 0; i < h->big_len; i++) h->big[i] = (char)('a' + i % 23);
    assert_int_equal(loop_create(&h->loop), ERR_OK);
    assert_int_equal(listener_open(&h->listener, h->loop, &o), ERR_OK);
    assert_int_equal(pthread_create(&h->thread, NULL, http1_server_main, h), 0);
    return h;
}

Http1Server *http1_server_open_at(const ListenerLimits *limits, const char *address) {
    return http1_server_open_shared(limits, address, NULL);
}

Http1Server *http1_server_open(const ListenerLimits *limits) {
    return http1_server_open_at(limits, "127.0.0.1:0");
}

void http1_server_close(Http1Server *h) {
    loop_stop(h->loop);
    pthread_join(h->thread, NULL);
    listener_close(h->listener);
    loop_destroy(h->loop);
    assert_int_equal(h->heads, h->ended);
    free(h->big);
    free(h);
}

const char *http1_server_address(const Http1Server *h) { return listener_address(h->listener); }

ListenerCounts http1_server_counts(Http1Server *h) {
    http1_server_question(h, 0);
    return h->counts;
}

void http1_server_drain(Http1Server *h) { http1_server_question(h, 1); }

bool http1_server_drained(Http1Server *h) {
    http1_server_question(h, 0);
    return h->drained;
}

int http1_server_heads(const Http1Server *h) { return atomic_load(&h->heads); }
int http1_server_requests(const Http1Server *h) { return atomic_load(&h->requests); }
int http1_server_ended(const Http1Server *h) { return atomic_load(&h->ended); }
int http1_server_lost(const Http1Server *h) { return atomic_load(&h->lost); }

static int http1_server_connect_local(const char *path) {
    int                fd = socket(AF_UNIX, SOCK_STREAM, 0);
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    snprintf(to.sun_path, sizeof to.sun_path, "%s", path);
    assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof to), 0);
    return fd;
}

int http1_server_connect(const Http1Server *h) {
    const char *text = http1_server_address(h), *colon = strrchr(text, ':');
    int         fd;
    if (strncmp(text, "unix:", 5) == 0) {
        fd = http1_server_connect_local(text + 5);
    } else if (text[0] == '[') {
        struct sockaddr_in6 to = {.sin6_family = AF_INET6,
                                  .sin6_port = htons((uint16_t)strtoul(colon + 1, NULL, 10)),
                                  .sin6_addr = in6addr_loopback};
        fd = socket(AF_INET6, SOCK_STREAM, 0);
        assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof to), 0);
    } else {
        struct sockaddr_in to = {.sin_family = AF_INET,
                                 .sin_port = htons((uint16_t)strtoul(colon + 1, NULL, 10)),
                                 .sin_addr = {htonl(INADDR_LOOPBACK)}};
        fd = socket(AF_INET, SOCK_STREAM, 0);
        assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof to), 0);
    }
    struct timeval patience = {.tv_sec = 5};
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
    return fd;
}

void http1_server_send(int fd, const char *bytes, size_t len) {
    while (len > 0) {
        ssize_t n = send(fd, bytes, len, MSG_NOSIGNAL);
        if (n <= 0) return;  // refused already: the answer tells
        bytes += n;
        len -= (size_t)n;
    }
}

void http1_server_text(int fd, const char *text) { http1_server_send(fd, text, strlen(text)); }

size_t http1_server_receive(int fd, char *out, size_t size) {
    size_t len = 0;
    for (ssize_t n; len + 1 < size && (n = recv(fd, out + len, size - len - 1, 0)) > 0;)
        len += (size_t)n;
    out[len] = '\0';
    return len;
}

// Byte by byte, so that nothing of the next answer is taken.
static size_t http1_server_read_head(int fd, char *out, size_t size) {
    size_t len = 0;
    while (len + 1 < size && recv(fd, out + len, 1, 0) == 1) {
        out[++len] = '\0';
        if (len >= 4 && strcmp(out + len - 4, "\r\n\r\n") == 0) return len;
    }
    return 0;
}

int http1_server_answer(int fd, char *body, size_t size) {
    char head[4096];
    body[0] = '\0';
    if (http1_server_read_head(fd, head, sizeof head) == 0) return 0;
    const char *length = strstr(head, "Content-Length: ");
    size_t      want = length ? strtoul(length + 16, NULL, 10) : 0, len = 0;
    assert_true(want < size);
    for (ssize_t n; len < want && (n = recv(fd, body + len, want - len, 0)) > 0;) len += (size_t)n;
    body[len] = '\0';
    assert_memory_equal(head, "HTTP/1.1 ", 9);
    return len == want ? (int)strtol(head + 9, NULL, 10) : -1;
}

int http1_server_ask(const Http1Server *h, const char *text) {
    static char body[1 << 16];
    int         fd = http1_server_connect(h);
    http1_server_text(fd, text);
    shutdown(fd, SHUT_WR);
    int status = http1_server_answer(fd, body, sizeof body);
    close(fd);
    return status;
}
