// How many HTTP/1.1 requests per second does one core serve if the response costs nothing? With an
// address and seconds as arguments, it only serves there, for other clients.
#include <inttypes.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "net/listener.h"

enum { CONNECTIONS = 32, SECONDS = 2 };

typedef struct Echo {
    Loop        *loop;
    Listener    *listener;
    double       cpu;
    struct iovec answer;
    LoopTimer    end;
} Echo;

typedef struct Row {
    const char *name;
    size_t      body;
    int         at_once;  // requests in flight per connection
} Row;

static void echo_request(void *self, Exchange *x) {
    Echo  *e = self;
    Answer a = {.type = "application/json", .body = &e->answer, .n_body = 1};
    e->answer = (struct iovec){(char[]){"{\"outputs\":[]}"}, 14};
    exchange_answer(x, &a);
}

static void echo_ended(void *self, Exchange *x, bool sent) { (void)self, (void)x, (void)sent; }
static void echo_end(void *self) { loop_stop(((Echo *)self)->loop); }

static void *echo_main(void *self) {
    Echo           *e = self;
    struct timespec t;
    if (loop_run(e->loop) != ERR_OK) return e;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    e->cpu = (double)t.tv_sec + (double)t.tv_nsec / 1e9;
    return NULL;
}

static Err echo_open(Echo *e, const char *address) {
    ListenerOptions o = {.address = address,
                         .handler = {.request = echo_request, .ended = echo_ended, .self = e}};
    e->end = (LoopTimer){.fire = echo_end, .self = e};
    TRY(loop_create(&e->loop));
    return listener_open(&e->listener, e->loop, &o);
}

static int echo_connect(const Echo *e) {
    const char        *port = strrchr(listener_address(e->listener), ':') + 1;
    struct sockaddr_in to = {.sin_family = AF_INET,
                             .sin_port = htons((uint16_t)strtoul(port, NULL, 10)),
                             .sin_addr = {htonl(INADDR_LOOPBACK)}};
    int                one = 1, fd = socket(AF_INET, SOCK_STREAM, 0);
    if (fd < 0 || connect(fd, (struct sockaddr *)&to, sizeof to) != 0) return -1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    return fd;
}

static int send_all(int fd, const char *at, size_t len) {
    for (ssize_t n; len > 0; at += n, len -= (size_t)n)
        if ((n = send(fd, at, len, MSG_NOSIGNAL)) <= 0) return -1;
    return 0;
}

static int receive(int fd, size_t len) {
    char buffer[16384];
    for (ssize_t n; len > 0; len -= (size_t)n)
        if ((n = recv(fd, buffer, len < sizeof buffer ? len : sizeof buffer, 0)) <= 0) return -1;
    return 0;
}

// Sends rounds of requests on all connections; returns the number of responses.
static uint64_t ask(const int *fds, const char *text, size_t len, size_t answer, int at_once) {
    uint64_t done = 0;
    TimeNs   until = clock_now(clock_monotonic()) + (TimeNs)SECONDS * 1000000000;
    while (clock_now(clock_monotonic()) < until) {
        for (int i = 0; i < CONNECTIONS; i++)
            if (send_all(fds[i], text, len * (size_t)at_once) != 0) return 0;
        for (int i = 0; i < CONNECTIONS; i++)
            if (receive(fds[i], answer * (size_t)at_once) != 0) return 0;
        done += (uint64_t)CONNECTIONS * (uint64_t)at_once;
    }
    return done;
}

// Length of a response, from one request.
static size_t probe(int fd, const char *text, size_t len) {
    char buffer[4096];
    if (send_all(fd, text, len) != 0) return 0;
    ssize_t n = recv(fd, buffer, sizeof buffer, 0);
    return n > 0 ? (size_t)n : 0;
}

static int measure(const Row *row) {
    Echo      e = {0};
    pthread_t thread;
    int       fds[CONNECTIONS];
    char      head[256];
    size_t    n = (size_t)snprintf(head, sizeof head,
                                   "POST /v2/models/m/infer HTTP/1.1\r\nHost: localhost\r\n"
                                      "Content-Type: application/json\r\nContent-Length: %zu\r\n\r\n",
                                   row->body);
    size_t    len = n + row->body;
    char     *text = calloc((size_t)row->at_once, len);
    if (!text || echo_open(&e, "127.0.0.1:0") != ERR_OK) return 1;
    for (int i = 0; i < row->at_once; i++) memcpy(text + (size_t)i * len, head, n);
    for (int i = 0; i < CONNECTIONS; i++)
        if ((fds[i] = echo_connect(&e)) < 0) return 1;
    if (pthread_create(&thread, NULL, echo_main, &e) != 0) return 1;
    size_t   answer = probe(fds[0], text, len);
    TimeNs   start = clock_now(clock_monotonic());
    uint64_t done = ask(fds, text, len, answer, row->at_once);
    double   seconds = (double)(clock_now(clock_monotonic()) - start) / 1e9;
    loop_stop(e.loop);
    pthread_join(thread, NULL);
    for (int i = 0; i < CONNECTIONS; i++) close(fds[i]);
    listener_close(e.listener);
    loop_destroy(e.loop);
    free(text);
    printf("%-12s %9.0f %12.0f %10.2f\n", row->name, (double)done / seconds, (double)done / e.cpu,
           e.cpu * 1e6 / (double)done);
    return done == 0;
}

static int serve(const char *address, const char *seconds) {
    Echo e = {0};
    if (echo_open(&e, address) != ERR_OK ||
        loop_arm(e.loop, &e.end, loop_now(e.loop) + strtol(seconds, NULL, 10) * 1000000000L) !=
            ERR_OK) {
        fprintf(stderr, "%s\n", err_why());
        return 1;
    }
    echo_main(&e);
    printf("%" PRIu64 " requests, %.2f s of a core, %.2f us each\n",
           listener_counts(e.listener).requests, e.cpu,
           e.cpu * 1e6 / (double)listener_counts(e.listener).requests);
    listener_close(e.listener);
    loop_destroy(e.loop);
    return 0;
}

int main(int argc, char **argv) {
    const Row rows[] = {
        {"100 B", 100, 1}, {"100 B x 16", 100, 16}, {"16 kB", 16384, 1}, {"602 kB", 602112, 1}};
    if (argc == 3) return serve(argv[1], argv[2]);
    printf("%d connections    /s   /s of a core   us of it\n", CONNECTIONS);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (measure(&rows[i]) != 0) return 1;
    return 0;
}
