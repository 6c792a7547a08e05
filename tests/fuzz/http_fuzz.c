// HTTP/1.1: any bytes, in pieces, down a real connection. What it takes for a request is exactly
// what llhttp alone sees at that place of the stream, whatever is refused besides.
#include <llhttp.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "net/stream.h"
#include "tests/fuzz/fuzz.h"

enum { MOST = 512 };

typedef struct Seen {
    uint64_t sum;  // of method, target, headers and body
    bool     whole;
} Seen;

typedef struct Case {
    Loop       *loop;
    Listener   *listener;
    int         fd;
    const char *at;
    size_t      left, piece;
    bool        later, shut;
    Exchange   *waiting;
    LoopPost    post;
    Seen        ours[MOST], theirs[MOST];
    size_t      n_ours, n_theirs, open;
    bool        body, trailer;
} Case;

static Case fuzz;

static void add(uint64_t *sum, const char *at, size_t len) {
    for (size_t i = 0; i < len; i++) *sum = (*sum ^ (unsigned char)at[i]) * 1099511628211u;
}

static void add_lower(uint64_t *sum, const char *at, size_t len) {
    for (size_t i = 0; i < len; i++) {
        char c = at[i] >= 'A' && at[i] <= 'Z' ? (char)(at[i] + 32) : at[i];
        add(sum, &c, 1);
    }
}

static void answer(Exchange *x) {
    static struct iovec piece;
    Answer              a = {.type = "text/plain", .body = &piece, .n_body = 1};
    piece = (struct iovec){x->body, x->body_len < 100 ? x->body_len : 100};
    exchange_answer(x, &a);
}

static void on_head(void *self, Exchange *x) {
    (void)self;
    fuzz.open++;
    x->aligned = x->path.len;
    if (x->path.len == 7) x->most = 3;
}

// A body that was decompressed is not what is on the wire.
static void on_request(void *self, Exchange *x) {
    (void)self;
    Str encoding = exchange_header(x, "content-encoding");
    if (((uintptr_t)x->body + x->aligned) % 64 != 0 && x->body_len > 0) abort();
    if (fuzz.n_ours < MOST) {
        Seen *s = &fuzz.ours[fuzz.n_ours++];
        *s = (Seen){.whole = !encoding.at};
        add(&s->sum, x->method.at, x->method.len);
        for (uint32_t i = 0; i < x->n_headers; i++) {
            add(&s->sum, x->headers[i].name.at, x->headers[i].name.len);
            add(&s->sum, ":", 1);
            add(&s->sum, x->headers[i].value.at, x->headers[i].value.len);
        }
        add(&s->sum, (char *)x->body, x->body_len);
    }
    if (fuzz.later && !fuzz.waiting)
        fuzz.waiting = x;
    else
        answer(x);
}

static void on_ended(void *self, Exchange *x, bool sent) {
    (void)self, (void)sent;
    fuzz.open--;
    if (fuzz.waiting == x) fuzz.waiting = NULL;
}

// Once a round: answers what waits, sends a piece, takes what came back.
static void on_round(void *self) {
    (void)self;
    char back[65536];
    if (fuzz.waiting) {
        Exchange *x = fuzz.waiting;
        fuzz.waiting = NULL;
        answer(x);
    }
    size_t n = fuzz.left < fuzz.piece ? fuzz.left : fuzz.piece;
    if (n > 0) {
        ssize_t sent = send(fuzz.fd, fuzz.at, n, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (sent < 0 && recv(fuzz.fd, back, 1, MSG_PEEK | MSG_DONTWAIT) <= 0) fuzz.left = 0;
        if (sent > 0) fuzz.at += sent, fuzz.left -= (size_t)sent;
    } else if (!fuzz.shut) {
        fuzz.shut = true;
        shutdown(fuzz.fd, SHUT_WR);
    }
    while (recv(fuzz.fd, back, sizeof back, MSG_DONTWAIT) > 0) {
    }
    if (listener_counts(fuzz.listener).open == 0)
        loop_stop(fuzz.loop);
    else
        loop_post(fuzz.loop, &fuzz.post);
}

static void fuzz_start(void) {
    ListenerOptions o = {.address = "127.0.0.1:0",
                         .handler = {.head = on_head, .request = on_request, .ended = on_ended},
                         .limits = {.header_bytes = 4096, .headers = 16, .body_bytes = 65536}};
    if (loop_create(&fuzz.loop) != ERR_OK) abort();
    if (listener_open(&fuzz.listener, fuzz.loop, &o) != ERR_OK) abort();
    fuzz.post = (LoopPost){.run = on_round};
}

static Seen *their(void) { return &fuzz.theirs[fuzz.n_theirs]; }

static int their_bytes(llhttp_t *p, const char *at, size_t len) {
    (void)p;
    add(&their()->sum, at, len);
    return 0;
}

static int their_name(llhttp_t *p, const char *at, size_t len) {
    (void)p;
    fuzz.trailer = fuzz.body;
    if (!fuzz.body) add_lower(&their()->sum, at, len);
    return 0;
}

static int their_name_end(llhttp_t *p) {
    (void)p;
    if (!fuzz.body) add(&their()->sum, ":", 1);
    return 0;
}

// Spaces at the end are not part of a value; llhttp leaves them there.
static int their_value(llhttp_t *p, const char *at, size_t len) {
    (void)p;
    while (len > 0 && (at[len - 1] == ' ' || at[len - 1] == '\t')) len--;
    if (!fuzz.body) add(&their()->sum, at, len);
    return 0;
}

static int their_head(llhttp_t *p) {
    (void)p;
    fuzz.body = true;
    return 0;
}

static int their_end(llhttp_t *p) {
    (void)p;
    if (fuzz.n_theirs + 1 < MOST) fuzz.n_theirs++;
    fuzz.theirs[fuzz.n_theirs] = (Seen){0};
    fuzz.body = fuzz.trailer = false;
    return 0;
}

static void fuzz_reference(const char *at, size_t len) {
    static const llhttp_settings_t on = {.on_method = their_bytes,
                                         .on_header_field = their_name,
                                         .on_header_field_complete = their_name_end,
                                         .on_header_value = their_value,
                                         .on_headers_complete = their_head,
                                         .on_body = their_bytes,
                                         .on_message_complete = their_end};
    llhttp_t                       p;
    const char                    *end = at + len;
    llhttp_init(&p, HTTP_REQUEST, &on);
    fuzz.theirs[0] = (Seen){0};
    fuzz.n_theirs = 0;
    fuzz.body = fuzz.trailer = false;
    while (at < end && llhttp_execute(&p, at, (size_t)(end - at)) == HPE_PAUSED_UPGRADE) {
        at = llhttp_get_error_pos(&p);
        llhttp_resume_after_upgrade(&p);
    }
}

// Trailers are dropped unread here. llhttp may still find one that it does not like.
static void fuzz_compare(void) {
    for (size_t i = 0; i < fuzz.n_ours && i + 1 < MOST; i++) {
        if (i == fuzz.n_theirs && fuzz.trailer) return;
        if (i >= fuzz.n_theirs) abort();
        if (fuzz.ours[i].whole && fuzz.ours[i].sum != fuzz.theirs[i].sum) abort();
    }
}

// The first byte: how large the pieces are, and whether answers come at once.
FUZZ_TARGET(data, size) {
    int pair[2];
    if (size < 1 || size > 65536) return 0;
    if (!fuzz.loop) fuzz_start();
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair) != 0) abort();
    fuzz.fd = pair[0];
    fuzz.at = (const char *)data + 1;
    fuzz.left = size - 1;
    fuzz.piece = data[0] & 1 ? SIZE_MAX : 1 + (size_t)(data[0] >> 2) * 8;
    fuzz.later = data[0] & 2;
    fuzz.shut = false;
    fuzz.n_ours = 0;
    if (!stream_adopt(fuzz.listener, pair[1])) abort();
    loop_post(fuzz.loop, &fuzz.post);
    if (loop_run(fuzz.loop) != ERR_OK) abort();
    close(pair[0]);
    if (fuzz.open != 0 || listener_counts(fuzz.listener).held_bytes != 0) abort();
    fuzz_reference((const char *)data + 1, size - 1);
    fuzz_compare();
    return 0;
}
