#include <string.h>
#include <sys/epoll.h>

#include "net/http1_int.h"

// HTTP1_SPARE: buffer beyond a head, so that pipelined requests and chunks are read in large
// pieces. HTTP1_TURN: steps, about three per request, before other connections run.
enum { HTTP1_SPARE = 16384, HTTP1_TURN = 96 };

static const TimeNs HTTP1_PART_NS = 250000000;  // draining: grace for a request in flight

bool http1_take_in(Http1 *c) {
    if (c->in) return true;
    const ListenerLimits *limits = stream_limits(&c->stream);
    size_t                table = limits->headers * sizeof(ExchangeHeader);
    c->in = slab_need(stream_pages(&c->stream), table + limits->header_bytes + HTTP1_SPARE);
    if (!c->in) return false;
    slab_use(stream_pages(&c->stream), c->in, table);
    c->head.headers = (ExchangeHeader *)(void *)c->in->at;
    c->head.most_headers = limits->headers;
    c->bytes = (char *)c->in->at + table;
    c->room = c->in->size - table;
    c->at = c->n = c->floor = 0;
    return true;
}

static void http1_give_pages(Http1 *c) {
    slab_give(stream_pages(&c->stream), c->in);
    slab_give(stream_pages(&c->stream), c->out);
    c->in = c->out = NULL;
    c->at = c->n = c->floor = c->out_at = c->out_len = 0;
}

static bool http1_idle(const Http1 *c) { return c->input == HTTP1_HEAD && c->at == c->n; }

void http1_ended(Http1 *c, bool sent) {
    const ExchangeHandler *h = stream_handler(&c->stream);
    if (!c->open) return;
    c->open = false;
    h->ended(h->self, &c->x, sent);
    http1_body_free(c);
    c->floor = 0;
}

// The next request's head begins where the current request ends. If it is there already, the client
// did not wait for the response.
static void http1_next(Http1 *c) {
    c->input = HTTP1_HEAD;
    c->drop = false;
    c->scan = (Http1Scan){0};
    c->began = stream_now(&c->stream);
    stream_use(&c->stream, http1_idle(c) ? STREAM_IDLE : STREAM_PART);
}

static void http1_fill_exchange(Http1 *c) {
    const Http1Head *h = &c->head;
    c->x = (Exchange){
        .method = h->method,
        .path = h->path,
        .query = h->query,
        .headers = h->headers,
        .n_headers = h->n_headers,
        .declared = h->length,
        .packing = h->packing,
        .began = c->began,
        .arrived = stream_now(&c->stream),
        .most = stream_limits(&c->stream)->body_bytes,
        .send = http1_send,
        .take = http1_lend,
    };
    c->open = true;
    c->asked = false;
    c->probes = 0;
}

// The head of a request has end bytes.
static void http1_begin(Http1 *c, size_t end) {
    const ExchangeHandler *h = stream_handler(&c->stream);
    const char            *why = NULL;
    uint32_t               status = http1_head_read(&c->head, c->bytes + c->at, end, &why);
    if (status) {
        http1_reject(c, status, why);
        return;
    }
    c->at += end;
    c->floor = c->at;
    c->left = c->head.length == UINT64_MAX ? 0 : c->head.length;
    c->chunks = (Http1Chunks){0};
    c->input = c->head.chunked ? HTTP1_CHUNKS : c->left ? HTTP1_BODY : HTTP1_DONE;
    c->last = !c->head.keep_alive;
    http1_fill_exchange(c);
    if (h->head) h->head(h->self, &c->x);
    if (c->stream.closed || !c->open || c->x.answered || c->input == HTTP1_DONE) return;
    if (http1_body_begin(c) && c->head.expects && c->at == c->n) http1_continue(c);
}

static void http1_complete(Http1 *c) {
    const ExchangeHandler *h = stream_handler(&c->stream);
    stream_counts(&c->stream)->requests++;
    c->x.body = c->body ? c->body->at + c->body_from : (unsigned char *)c->bytes + c->floor;
    c->x.body_len = c->body_len;
    c->x.arrived = stream_now(&c->stream);
    c->asked = true;
    c->stream.requests++;
    h->request(h->self, &c->x);
}

// False: needs more input.
static bool http1_find_head(Http1 *c) {
    const size_t most = stream_limits(&c->stream)->header_bytes;
    const char  *why = NULL;
    size_t       end = 0, len = c->n - c->at;
    uint32_t     status = http1_scan(&c->scan, c->bytes + c->at, len, &end, &why);
    if (status) {
        http1_reject(c, status, why);
    } else if (end ? end > most : len >= most) {
        bool line = c->scan.lines == 0 || c->scan.first > most;
        http1_reject(c, line ? 414 : 431,
                     line ? "request target too long" : "request headers too large");
    } else if (end) {
        http1_begin(c, end);
    } else if (c->scan.lines > c->head.most_headers + 1) {
        http1_reject(c, 431, "too many headers");
    } else {
        return false;
    }
    return true;
}

// One step on the input at hand; false: needs input or output space.
static bool http1_step(Http1 *c) {
    switch (c->input) {
    case HTTP1_HEAD: return c->at < c->n && http1_find_head(c);
    case HTTP1_BODY:
    case HTTP1_CHUNKS: return c->at < c->n && http1_body_take(c);
    case HTTP1_UNPACK:
        c->resume = http1_body_unpack(c) && c->input == HTTP1_UNPACK;
        return c->input == HTTP1_DONE;
    case HTTP1_DONE:
        if (!c->open)
            http1_next(c);
        else if (c->asked || c->x.answered)
            return false;
        else
            http1_complete(c);
        return true;
    case HTTP1_LINGER: break;
    }
    return false;
}

static bool http1_reads(const Http1 *c) { return c->input <= HTTP1_CHUNKS && !http1_unsent(c); }
// The response is being computed.
static bool http1_computes(const Http1 *c) {
    return c->input == HTTP1_DONE && c->open && c->asked && !c->x.answered;
}

// Bytes that the client received since it has to be waited for.
static uint64_t http1_received(const Http1 *c) {
    size_t queued = stream_queued(&c->stream);
    return c->sent > queued ? c->sent - queued : 0;
}

static TimeNs http1_due(const Http1 *c) {
    const ListenerLimits *limits = stream_limits(&c->stream);
    TimeNs                now = stream_now(&c->stream);
    if (http1_unsent(c))  // one second more for each 64 KiB that the client read
        return c->write_began + limits->write_ns + (TimeNs)(http1_received(c) >> 16) * 1000000000;
    if (c->resume) return now;
    if (http1_idle(c)) return now + (c->stream.draining ? HTTP1_PART_NS : limits->idle_ns);
    if (c->input == HTTP1_HEAD) return c->began + limits->header_ns;
    if (http1_reads(c)) return c->began + limits->body_ns;
    return http1_computes(c) && c->leaves ? c->probe : INT64_MAX;
}

static StreamUse http1_use(const Http1 *c) {
    if (http1_unsent(c)) return STREAM_STALL;
    if (c->input == HTTP1_HEAD && c->stream.requests == 0) return STREAM_NEW;
    if (http1_idle(c)) return STREAM_IDLE;
    return c->open && !http1_reads(c) ? STREAM_BUSY : STREAM_PART;
}

// Sets the events and the deadline to wait for.
static void http1_settle(Http1 *c) {
    bool      idle = http1_idle(c) && !http1_unsent(c);
    StreamUse use = http1_use(c);
    if (use != c->stream.use) stream_use(&c->stream, use);
    if (c->input == HTTP1_LINGER && !http1_unsent(c)) return;
    stream_arm(&c->stream, http1_due(c));
    if (http1_unsent(c))
        stream_want(&c->stream, EPOLLOUT);
    else if (http1_reads(c) && !c->resume)
        stream_want(&c->stream, STREAM_INPUT);
    else if (c->stream.watch.events & EPOLLOUT)
        stream_want(&c->stream, c->leaves ? 0 : STREAM_INPUT);
    if (idle) http1_give_pages(c);
}

// The client closed its side, and its input was consumed.
static void http1_end_of_input(Http1 *c) {
    bool empty = c->input == HTTP1_HEAD && c->scan.lines == 0 && c->scan.at == c->scan.line;
    if (empty || c->drop)
        stream_close(&c->stream);
    else
        http1_reject(c, 400, "the connection closed before the request was complete");
}

void http1_advance(Http1 *c) {
    if (c->inside) return;
    c->inside = true;
    c->resume = false;
    for (int i = 0; !c->stream.closed && !c->n_pieces && !c->resume && http1_step(c); i++)
        c->resume = i == HTTP1_TURN || stream_overtime(&c->stream);
    if (!c->stream.closed && http1_unsent(c)) {
        http1_flush(c);  // the rest of a response: then the next request has its turn
        c->resume = c->resume || !http1_unsent(c);
    }
    if (!c->stream.closed && c->eof && http1_reads(c) && !c->resume) http1_end_of_input(c);
    c->inside = false;
    if (!c->stream.closed) http1_settle(c);
}

static ssize_t http1_read_bytes(Http1 *c) {
    if (!http1_take_in(c)) return STREAM_BROKEN;
    if (c->at == c->n) {
        c->at = c->n = c->floor;
        if (c->input == HTTP1_HEAD) c->began = stream_now(&c->stream);
    } else if (c->room - c->n < HTTP1_SPARE / 4 && c->at > c->floor) {
        memmove(c->bytes + c->floor, c->bytes + c->at, c->n - c->at);
        c->n -= c->at - c->floor;
        c->at = c->floor;
    }
    ssize_t n = stream_read(&c->stream, c->bytes + c->n, c->room - c->n);
    if (n <= 0) return n;
    c->n += (size_t)n;
    slab_use(stream_pages(&c->stream), c->in, c->in->size - c->room + c->n);
    stream_moved(&c->stream, (size_t)n);
    return n;
}

// Reads directly into the body's buffer.
static ssize_t http1_read_body(Http1 *c) {
    size_t         size = 0;
    unsigned char *to = http1_body_room(c, &size);
    ssize_t        n = stream_read(&c->stream, to, size);
    if (n <= 0) return n;
    stream_moved(&c->stream, (size_t)n);
    (void)http1_body_came(c, (size_t)n);
    return n;
}

static void http1_read(Http1 *c) {
    bool    whole = c->input == HTTP1_BODY && !c->drop;
    ssize_t n = whole ? http1_read_body(c) : http1_read_bytes(c);
    if (c->stream.closed) return;
    if (n == STREAM_BROKEN)
        stream_close(&c->stream);
    else if (n == STREAM_END)
        c->eof = true;
    if (!c->stream.closed) http1_advance(c);
}

// A client that closed both sides looks the same as one that still waits for its response, which is
// not computed for a client that is gone.
static void http1_client_leaves(Http1 *c) {
    c->leaves = true;
    c->probe = stream_now(&c->stream);
    stream_want(&c->stream, c->stream.watch.events & ~STREAM_INPUT);
    if (http1_computes(c) && !http1_unsent(c)) http1_probe(c);
    if (!c->stream.closed) http1_settle(c);
}

static void http1_ready(Stream *s, uint32_t events) {
    Http1 *c = (Http1 *)s;
    if (events & EPOLLOUT) {
        http1_flush(c);
        if (!s->closed) http1_advance(c);
    } else if (c->input == HTTP1_LINGER) {
        http1_drop(c);
    } else if (http1_reads(c) && !c->resume) {
        http1_read(c);
    } else if (events & (EPOLLERR | EPOLLHUP)) {
        stream_close(s);
    } else if (events & EPOLLRDHUP) {
        http1_client_leaves(c);
    } else {
        stream_want(s, s->watch.events & ~(uint32_t)EPOLLIN);
    }
}

// A request may have arrived just now.
static void http1_part(Http1 *c) {
    http1_read(c);
    if (!c->stream.closed && http1_idle(c)) stream_close(&c->stream);
}

static void http1_expire(Stream *s) {
    Http1 *c = (Http1 *)s;
    if (http1_unsent(c) && http1_due(c) > stream_now(s)) {
        stream_arm(s, http1_due(c));  // it read meanwhile
    } else if (http1_unsent(c)) {
        stream_counts(s)->bad++;
        stream_close(s);
    } else if (c->resume) {
        http1_advance(c);
    } else if (http1_computes(c)) {
        http1_probe(c);
        if (!s->closed) http1_settle(c);
    } else if (http1_idle(c) && !c->drop) {
        http1_part(c);
    } else if (c->drop || c->input == HTTP1_LINGER) {
        stream_close(s);
    } else if (http1_reads(c)) {
        http1_reject(c, 408, "request timed out");
    }
}

// Requests received or being received are still answered, with
// "Connection: close".
static void http1_drain(Stream *s) {
    Http1 *c = (Http1 *)s;
    if (http1_idle(c) && http1_reads(c)) stream_arm(s, http1_due(c));
}

static Err http1_open(Stream *s) {
    stream_arm(s, stream_now(s) + stream_limits(s)->idle_ns);
    return ERR_OK;
}

static size_t http1_late(Stream *s, const Budget *b, bool end) {
    Http1 *c = (Http1 *)s;
    size_t held = s->unread;
    if (!stream_charged(&c->x, b) || !stream_late(s, c->write_began, http1_received(c), true))
        return 0;
    if (end) stream_close(s);
    return held;
}

static void http1_finish(Stream *s) {
    Http1 *c = (Http1 *)s;
    http1_ended(c, false);
    http1_body_free(c);
    http1_give_pages(c);
}

const StreamKind stream_http1 = {
    .bytes = sizeof(Http1),
    .open = http1_open,
    .ready = http1_ready,
    .expire = http1_expire,
    .drain = http1_drain,
    .finish = http1_finish,
    .late = http1_late,
};
