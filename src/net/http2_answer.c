#include <stdio.h>
#include <string.h>

#include <sys/epoll.h>

#include "net/http2_int.h"

enum { ANSWER_HEADERS = 3 + EXCHANGE_EXTRA + HTTP2_TRAILERS, SPAN = 24 };

static nghttp2_nv pair(Str name, Str value) {
    return (nghttp2_nv){.name = (uint8_t *)(uintptr_t)name.at,
                        .namelen = name.len,
                        .value = (uint8_t *)(uintptr_t)value.at,
                        .valuelen = value.len};
}

static Str text(const char *s) { return (Str){s, strlen(s)}; }

static size_t left_of(const Http2Call *c) {
    size_t left = 0;
    for (uint32_t i = c->piece; i < c->n_pieces; i++) left += c->pieces[i].iov_len;
    return left - c->offset;
}

// As many of the next pieces as one write takes.
static size_t next_of(const Http2Call *c, size_t most) {
    size_t   n = 0;
    uint32_t end = c->n_pieces - c->piece < SPAN ? c->n_pieces : c->piece + SPAN;
    for (uint32_t i = c->piece; i < end; i++) n += c->pieces[i].iov_len;
    n -= c->offset;
    return n < most ? n : most;
}

static ssize_t read_body(nghttp2_session *s, int32_t id, uint8_t *to, size_t most, uint32_t *flags,
                         nghttp2_data_source *source, void *self) {
    Http2Call *c = source->ptr;
    (void)to;
    (void)self;
    size_t n = next_of(c, most), left = left_of(c);
    if (left == 0 && !c->last) return NGHTTP2_ERR_DEFERRED;
    *flags |= NGHTTP2_DATA_FLAG_NO_COPY;
    if (n < left || !c->last) return (ssize_t)n;
    *flags |= NGHTTP2_DATA_FLAG_EOF;
    if (c->n_trailers == 0) return (ssize_t)n;
    nghttp2_nv nv[HTTP2_TRAILERS];
    for (uint32_t i = 0; i < c->n_trailers; i++)
        nv[i] = pair(c->trailers[i].name, c->trailers[i].value);
    *flags |= NGHTTP2_DATA_FLAG_NO_END_STREAM;
    if (nghttp2_submit_trailer(s, id, nv, c->n_trailers) != 0)
        return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
    return (ssize_t)n;
}

static void put_piece(Http2 *h, const void *at, size_t len) {
    h->pieces[h->n_pieces++] = (struct iovec){(void *)(uintptr_t)at, len};
    h->queued += len;
}

static void put_small(Http2 *h, const uint8_t *at, size_t len) {
    memcpy(h->small + h->small_len, at, len);
    struct iovec *last = h->n_pieces > 0 ? &h->pieces[h->n_pieces - 1] : NULL;
    if (last && (unsigned char *)last->iov_base + last->iov_len == h->small + h->small_len) {
        last->iov_len += len;
        h->queued += len;
    } else {
        put_piece(h, h->small + h->small_len, len);
    }
    h->small_len += len;
}

int http2_send_data(Http2 *h, Http2Call *c, const uint8_t *head, size_t len) {
    enum { FRAME_HEAD = 9 };
    if (h->stuck || h->n_pieces + SPAN + 1 > HTTP2_PIECES ||
        h->small_len + FRAME_HEAD > HTTP2_SMALL)
        return NGHTTP2_ERR_WOULDBLOCK;
    put_small(h, head, FRAME_HEAD);
    c->sent += len;
    while (len > 0) {
        const struct iovec *p = &c->pieces[c->piece];
        size_t              n = p->iov_len - c->offset < len ? p->iov_len - c->offset : len;
        if (n > 0) put_piece(h, (const char *)p->iov_base + c->offset, n);
        c->offset += n;
        len -= n;
        if (c->offset < p->iov_len) continue;
        c->piece++;
        c->offset = 0;
    }
    c->moved = stream_now(&c->h->stream);
    if (c->last || left_of(c) > 0) return 0;
    c->part = true;
    c->leaves = h->queued;
    h->n_parts++;
    return 0;
}

// False: out of memory, only the first is kept.
static void keep_trailers(Http2Call *c, const Answer *a) {
    size_t bytes = 0;
    char  *to = c->small_trail;
    for (uint32_t i = 0; i < a->n_trailers; i++)
        bytes += a->trailers[i].name.len + a->trailers[i].value.len;
    size_t room = sizeof c->small_trail;
    if (bytes > room) {
        c->more_trail = slab_take(c->pages, bytes);
        if (c->more_trail && slab_touch(c->pages, c->more_trail, bytes)) {
            to = (char *)c->more_trail->at;
            room = bytes;
        }
    }
    for (uint32_t i = 0; i < a->n_trailers && i < HTTP2_TRAILERS; i++) {
        Str name = a->trailers[i].name, value = a->trailers[i].value;
        if (name.len + value.len > room) continue;
        memcpy(to, name.at, name.len);
        memcpy(to + name.len, value.at, value.len);
        c->trailers[c->n_trailers++] = (ExchangeHeader){{to, name.len}, {to + name.len, value.len}};
        to += name.len + value.len;
        room -= name.len + value.len;
    }
}

static size_t head_of(const Answer *a, bool body, char status[4], nghttp2_nv *nv) {
    size_t n = 0;
    (void)snprintf(status, 4, "%u", a->status >= 100 && a->status <= 999 ? a->status : 200);
    nv[n++] = pair(text(":status"), text(status));
    if (a->type) nv[n++] = pair(text("content-type"), text(a->type));
    for (uint32_t i = 0; i < a->n_extra; i++) nv[n++] = pair(a->extra[i].name, a->extra[i].value);
    for (uint32_t i = 0; !body && i < a->n_trailers;
         i++)  // without a body, trailers go with the head
        nv[n++] = pair(a->trailers[i].name, a->trailers[i].value);
    return n;
}

static void reset(Http2Call *c) {
    if (nghttp2_submit_rst_stream(c->h->session, NGHTTP2_FLAG_NONE, c->id,
                                  NGHTTP2_INTERNAL_ERROR) != 0)
        c->h->over = true;
}

// Sends the head, unless the first part did.
static void submit(Http2Call *c, const Answer *a) {
    nghttp2_nv            nv[ANSWER_HEADERS];
    char                  status[4];
    nghttp2_data_provider body = {.source = {.ptr = c}, .read_callback = read_body};
    bool                  some = left_of(c) > 0 || !c->last || c->begun;
    if (some && c->last) keep_trailers(c, a);
    size_t n = head_of(a, some, status, nv);
    int    e = c->begun ? nghttp2_session_resume_data(c->h->session, c->id)
                        : nghttp2_submit_response(c->h->session, c->id, nv, n, some ? &body : NULL);
    if (e != 0 && !(c->begun && e == NGHTTP2_ERR_INVALID_ARGUMENT)) reset(c);  // not submitted yet
}

// The handler's memory is held until the call has ended, or the part was written.
static void hold_answer(Http2Call *c) {
    Http2 *h = c->h;
    c->held = left_of(c);
    c->sent = 0;
    c->mark = h->written;
    c->answer = c->moved;
    h->unread += c->held;
    if (c->held > h->largest) h->largest = c->held;
    if (c->asked) h->n_asked--;
    c->asked = false;
}

void http2_release(Http2Call *c) {
    c->h->unread -= c->held;
    c->held = 0;
}

static void give(Http2Call *c, const Answer *a) {
    Http2 *h = c->h;
    c->pieces = a->body;
    c->n_pieces = a->n_body;
    c->piece = 0;
    c->offset = 0;
    c->moved = stream_now(&h->stream);
    http2_release(c);
    hold_answer(c);
    submit(c, a);
    c->begun = true;
    if (a->close) http2_part(h);
    if (!h->inside) http2_pump(h);
    http2_tick(h);
}

void http2_send(Exchange *x, const Answer *a) {
    Http2Call *c = (Http2Call *)x;
    c->last = true;
    give(c, a);
}

void http2_push(Exchange *x, const Answer *a) {
    x->pushing = true;
    give((Http2Call *)x, a);
}

static uint32_t grpc_status(uint32_t status) {
    switch (status) {
    case 413:
    case 431: return 8;
    case 408: return 4;
    case 415: return 12;
    case 503: return 14;
    default: return 13;
    }
}

void http2_call_reject(Http2Call *c, uint32_t status, const char *why) {
    char   code[8];
    Answer a = {.status = status, .type = "text/plain"};
    stream_counts(&c->h->stream)->bad++;
    c->refused = true;
    if (c->begun) {  // parts of a response may be queued: no error can be inserted
        reset(c);
        return;
    }
    c->x.answered = true;
    slab_give(c->slabs, c->slab);
    c->slab = NULL;
    c->x.body = NULL;
    c->x.body_len = 0;
    if (c->grpc) {
        (void)snprintf(code, sizeof code, "%u", grpc_status(status));
        a.status = 200;
        a.type = "application/grpc";
        a.trailers[a.n_trailers++] = (ExchangeHeader){text("grpc-status"), text(code)};
        a.trailers[a.n_trailers++] = (ExchangeHeader){text("grpc-message"), text(why)};
    } else {
        c->fault = (struct iovec){(void *)(uintptr_t)why, strlen(why)};
        a.body = &c->fault;
        a.n_body = 1;
    }
    http2_send(&c->x, &a);
}

// Queues the session's frames while there is space.
static void fill(Http2 *h) {
    while (!h->stuck && h->n_pieces + 2 <= HTTP2_PIECES && h->small_len < HTTP2_SMALL) {
        const uint8_t *at;
        ssize_t        n = nghttp2_session_mem_send(h->session, &at);
        if (n < 0) h->over = true;
        if (n <= 0) return;
        if ((size_t)n <= HTTP2_SMALL - h->small_len) {
            put_small(h, at, (size_t)n);
        } else {
            put_piece(h, at, (size_t)n);
            h->stuck = true;
        }
    }
}

static void settle(Http2 *h) {
    for (Http2Call *c = h->leaving.first; c && c->leaves <= h->written; c = h->leaving.first) {
        http2_list_remove(&h->leaving, c);
        http2_call_ended(c, c->done);
    }
}

// Calls more() for calls with a part just written; true: there were some.
static bool settle_parts(Http2 *h) {
    bool some = false;
    for (Http2Call *c = h->calls.first, *next; c && h->n_parts > 0; c = next) {
        next = c->next;
        if (!c->part || c->leaves > h->written) continue;
        c->part = false;
        h->n_parts--;
        c->x.pushing = false;
        http2_release(c);
        some = true;
        http2_call_more(c);
    }
    return some;
}

static void advance(Http2 *h, size_t n) {
    h->written += n;
    stream_moved(&h->stream, n);
    h->flushed = stream_now(&h->stream);
    while (n > 0) {
        struct iovec *p = &h->pieces[h->piece];
        size_t        part = p->iov_len < n ? p->iov_len : n;
        p->iov_base = (char *)p->iov_base + part;
        p->iov_len -= part;
        n -= part;
        if (p->iov_len == 0) h->piece++;
    }
    if (h->piece < h->n_pieces) return;
    h->piece = h->n_pieces = 0;
    h->small_len = 0;
    h->stuck = false;
}

static void finish_if_done(Http2 *h) {
    bool empty = h->n_pieces == 0;
    bool idle = h->n_calls == 0 && !h->leaving.first;
    bool dead = !nghttp2_session_want_read(h->session) && !nghttp2_session_want_write(h->session);
    h->parted = empty && h->parting && idle && !h->calm;
    if (empty && (h->calm || dead || h->parted)) h->over = true;
}

void http2_pump(Http2 *h) {
    h->inside = true;
    h->yields = false;
    while (!h->over && !h->yields) {
        if (h->n_pieces == 0) {
            h->flushed = stream_now(&h->stream);
            fill(h);
        }
        settle(h);
        bool again = h->n_parts > 0 && settle_parts(h);
        again |= h->n_waiting > 0 && http2_call_next(h);
        if (h->n_pieces == 0 && !again) break;
        h->yields = stream_overtime(&h->stream);
        if (h->n_pieces == 0) continue;
        ssize_t n = stream_write(&h->stream, h->pieces + h->piece, h->n_pieces - h->piece);
        if (n == STREAM_LATER) break;
        if (n < 0)
            h->over = true;
        else
            advance(h, (size_t)n);
    }
    h->inside = false;
    finish_if_done(h);
    http2_account(h);
    if (!h->over)
        stream_want(&h->stream, STREAM_INPUT | (h->n_pieces > 0 || h->yields ? EPOLLOUT : 0U));
    else
        stream_arm(&h->stream, 0);
}
