#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "net/http1_int.h"

// HTTP1_HEAD_BYTES: response head without the handler's headers. HTTP1_BATCH: bytes of small
// responses written together. HTTP1_LINGER_BYTES: input discarded after the last response.
// HTTP1_WRITE: bytes written before other connections run.
enum {
    HTTP1_HEAD_BYTES = 512,
    HTTP1_OUT = 8192 - 64,
    HTTP1_BATCH = 4096,
    HTTP1_LINGER_BYTES = 4 << 20,
    HTTP1_WRITE = 256 << 10
};

static const TimeNs HTTP1_LINGER_NS = 1000000000, HTTP1_PROBE_NS = 1000000000;
static const char   HTTP1_VERSION[] = "HTTP/1.1 ";  // begins every response

static const char *http1_phrase(uint32_t status) {
    switch (status) {
#define X(number, text)                                                                            \
    case number:                                                                                   \
        return text;
#include "net/http1_status.def"
#undef X
    default: return "Status";
    }
}

bool http1_unsent(const Http1 *c) { return c->out_at < c->out_len || c->n_pieces > 0; }

static void http1_put(Http1 *c, const char *at, size_t len) {
    memcpy(c->out->at + c->out_len, at, len);
    c->out_len += len;
}

static void http1_put_text(Http1 *c, const char *text) { http1_put(c, text, strlen(text)); }

// A header with CR or LF (response splitting) is left out.
static void http1_put_header(Http1 *c, const ExchangeHeader *h) {
    for (size_t i = 0; i < h->value.len; i++)
        if ((unsigned char)h->value.at[i] < ' ' && h->value.at[i] != '\t') return;
    http1_put(c, h->name.at, h->name.len);
    http1_put(c, ": ", 2);
    http1_put(c, h->value.at, h->value.len);
    http1_put(c, "\r\n", 2);
}

static void http1_put_number(Http1 *c, uint64_t n) {
    char  text[20];
    char *at = text + sizeof text;
    do *--at = (char)('0' + n % 10);
    while (n /= 10);
    http1_put(c, at, (size_t)(text + sizeof text - at));
}

static bool http1_room(Http1 *c, const Answer *a) {
    SlabPool *p = stream_pages(&c->stream);
    size_t    need = c->out_len + HTTP1_HEAD_BYTES + (a->type ? strlen(a->type) : 0);
    for (uint32_t i = 0; i < a->n_extra; i++)
        need += a->extra[i].name.len + a->extra[i].value.len + 4;
    if (c->out && need <= c->out->size) return true;
    Slab *more = slab_need(p, need > HTTP1_OUT ? need : HTTP1_OUT);
    if (!more) return false;
    if (c->out_len > 0) memcpy(more->at, c->out->at, c->out_len);
    slab_use(p, more, need > HTTP1_OUT ? need : HTTP1_OUT);
    slab_give(p, c->out);
    c->out = more;
    return true;
}

static bool http1_bodiless(uint32_t status) {
    return status == 204 || status == 304 || status < 200;
}

static void http1_put_head(Http1 *c, const Answer *a, uint32_t status, uint64_t len) {
    Str date = stream_date(&c->stream);
    http1_put_text(c, HTTP1_VERSION + c->probes);
    c->probes = 0;
    http1_put_number(c, status);
    http1_put(c, " ", 1);
    http1_put_text(c, http1_phrase(status));
    http1_put(c, "\r\n", 2);
    http1_put(c, date.at, date.len);
    if (a->type && !http1_bodiless(status)) {
        http1_put_text(c, "Content-Type: ");
        http1_put_text(c, a->type);
        http1_put(c, "\r\n", 2);
    }
    if (!http1_bodiless(status)) {
        http1_put_text(c, "Content-Length: ");
        http1_put_number(c, len);
        http1_put(c, "\r\n", 2);
    }
    for (uint32_t i = 0; i < a->n_extra; i++) http1_put_header(c, &a->extra[i]);
    if (c->last)
        http1_put_text(c, "Connection: close\r\n");
    else if (c->head.old)
        http1_put_text(c, "Connection: keep-alive\r\n");
    http1_put(c, "\r\n", 2);
}

static uint64_t http1_length(const Answer *a) {
    uint64_t len = 0;
    for (uint32_t i = 0; i < a->n_body; i++) len += a->body[i].iov_len;
    return len;
}

// A small response while another request is buffered: written together with the next response.
static bool http1_batches(const Http1 *c, uint64_t len) {
    return c->inside && !c->last && c->input == HTTP1_DONE && c->at < c->n &&
           c->out_len + len < HTTP1_BATCH && c->out_len + len <= c->out->size;
}

static void http1_batch(Http1 *c) {
    for (uint32_t i = 0; i < c->n_pieces; i++)
        if (c->pieces[i].iov_len) http1_put(c, c->pieces[i].iov_base, c->pieces[i].iov_len);
    c->n_pieces = 0;
    http1_ended(c, true);
}

// Queues the response; its head is in out. False: no memory.
static bool http1_compose(Http1 *c, const Answer *a, bool silent) {
    uint32_t status = a->status ? a->status : 200;
    if (!http1_room(c, a)) return false;
    if (c->out_at == c->out_len) c->out_at = c->out_len = 0;
    http1_put_head(c, a, status, http1_length(a));
    silent = silent || http1_bodiless(status);
    c->pieces = silent ? NULL : a->body;
    c->n_pieces = silent ? 0 : a->n_body;
    return true;
}

// Whether input beyond the current request is buffered.
static bool http1_more(const Http1 *c) { return c->input == HTTP1_DONE && c->at < c->n; }

void http1_send(Exchange *x, const Answer *a) {
    Http1 *c = (Http1 *)((char *)x - offsetof(Http1, x));
    bool   silent = x->method.len == 4 && memcmp(x->method.at, "HEAD", 4) == 0;
    // Without 100-continue it is unknown whether the body follows: close.
    bool unsure = c->head.expects && (c->input == HTTP1_BODY || c->input == HTTP1_CHUNKS);
    c->last = c->last || a->close || unsure || (c->stream.draining && !http1_more(c));
    if (!http1_compose(c, a, silent)) {
        stream_close(&c->stream);
        return;
    }
    if (http1_batches(c, c->n_pieces ? http1_length(a) : 0)) {
        http1_batch(c);
        return;
    }
    http1_flush(c);
    if (!c->stream.closed) http1_advance(c);
}

void http1_reject(Http1 *c, uint32_t status, const char *why) {
    char         later[] = "1";
    struct iovec fault[3] = {
        {"{\"error\":\"", 10}, {(void *)(uintptr_t)why, strlen(why)}, {"\"}", 2}};
    Answer a = {.status = status, .type = "application/json", .body = c->fault, .n_body = 3};
    if (status == 503) a.extra[a.n_extra++] = (ExchangeHeader){{"Retry-After", 11}, {later, 1}};
    if (status == 405)
        a.extra[a.n_extra++] = (ExchangeHeader){{"Allow", 5}, {"GET, HEAD, POST", 15}};
    stream_counts(&c->stream)->bad++;
    http1_ended(c, false);
    if (c->stream.closed) return;
    memcpy(c->fault, fault, sizeof fault);
    c->last = true;
    c->resume = false;
    c->input = HTTP1_LINGER;
    if (!http1_compose(c, &a, false)) {
        stream_close(&c->stream);
        return;
    }
    http1_flush(c);
    if (!c->stream.closed) http1_advance(c);
}

void http1_continue(Http1 *c) {
    Answer none = {0};
    if (!http1_room(c, &none)) {
        stream_close(&c->stream);
        return;
    }
    http1_put_text(c, "HTTP/1.1 100 Continue\r\n\r\n");
    http1_flush(c);
}

// The pauses double, so that the bytes last for four minutes.
void http1_probe(Http1 *c) {
    Answer   none = {0};
    uint32_t n = c->probes;
    c->probe = stream_now(&c->stream) + (HTTP1_PROBE_NS << n);
    if (HTTP1_VERSION[n] == '\0' || !http1_room(c, &none)) return;
    http1_put(c, HTTP1_VERSION + n, 1);
    c->probes = n + 1;
    http1_flush(c);
}

// Closing while the client still sends would reset the connection and lose the response.
static void http1_linger(Http1 *c) {
    int  unread = 0;
    bool more = c->input != HTTP1_DONE || c->at < c->n ||
                (ioctl(c->stream.watch.fd, FIONREAD, &unread) == 0 && unread > 0);
    if (c->eof || !more || shutdown(c->stream.watch.fd, SHUT_WR) != 0) {
        stream_close(&c->stream);
        return;
    }
    c->input = HTTP1_LINGER;
    c->left = HTTP1_LINGER_BYTES;
    stream_arm(&c->stream, stream_now(&c->stream) + HTTP1_LINGER_NS);
    stream_want(&c->stream, STREAM_INPUT);
}

void http1_drop(Http1 *c) {
    if (!http1_take_in(c)) {
        stream_close(&c->stream);
        return;
    }
    ssize_t n = stream_read(&c->stream, c->bytes, c->room);
    if (n > 0 && (uint64_t)n <= c->left)
        c->left -= (uint64_t)n;
    else if (n != STREAM_LATER)
        stream_close(&c->stream);
}

static void http1_all_sent(Http1 *c) {
    c->out_at = c->out_len = 0;
    c->stalled = false;
    stream_unread(&c->stream, 0);
    if (c->open && c->x.answered) {
        http1_ended(c, true);
        if (c->stream.closed) return;
        c->drop = c->input == HTTP1_BODY || c->input == HTTP1_CHUNKS;
        if (c->input == HTTP1_UNPACK) c->input = HTTP1_DONE;
    } else if (c->input != HTTP1_LINGER) {
        return;  // only small responses or 100-continue were written
    }
    if (c->last) http1_linger(c);
}

static void http1_advance_pieces(Http1 *c, size_t n) {
    size_t head = c->out_len - c->out_at < n ? c->out_len - c->out_at : n;
    c->sent += n;
    c->out_at += head;
    n -= head;
    while (c->n_pieces > 0 && n >= c->pieces->iov_len) {
        n -= c->pieces->iov_len;
        c->pieces++;
        c->n_pieces--;
    }
    if (c->n_pieces > 0) {
        c->pieces->iov_base = (char *)c->pieces->iov_base + n;
        c->pieces->iov_len -= n;
    }
}

static ssize_t http1_write(Http1 *c, size_t most) {
    struct iovec v[EXCHANGE_PIECES + 1];
    size_t       n = 0;
    if (c->out_at < c->out_len)
        v[n++] = (struct iovec){c->out->at + c->out_at, c->out_len - c->out_at};
    for (uint32_t i = 0; i < c->n_pieces && n <= EXCHANGE_PIECES && most > 0; i++) {
        v[n] = c->pieces[i];
        if (v[n].iov_len > most) v[n].iov_len = most;
        most -= v[n++].iov_len;
    }
    return stream_write(&c->stream, v, n);
}

static void http1_stall(Http1 *c) {
    if (c->stalled) return;
    size_t held = 0;
    for (uint32_t i = 0; i < c->n_pieces; i++) held += c->pieces[i].iov_len;
    c->stalled = true;
    c->sent = 0;
    c->write_began = stream_now(&c->stream);
    stream_unread(&c->stream, held + c->out_len - c->out_at);
}

// Up to HTTP1_WRITE bytes; the rest when the socket has space and other connections had their turn.
void http1_flush(Http1 *c) {
    for (size_t left = HTTP1_WRITE; http1_unsent(c);) {
        ssize_t n = left > 0 ? http1_write(c, left) : STREAM_LATER;
        if (n == STREAM_LATER) {
            http1_stall(c);
            return;
        }
        if (n < 0) {
            stream_close(&c->stream);
            return;
        }
        http1_advance_pieces(c, (size_t)n);
        stream_moved(&c->stream, (size_t)n);
        left -= (size_t)n < left ? (size_t)n : left;
    }
    http1_all_sent(c);
}
