#include <string.h>

#include "net/http2_int.h"

_Static_assert(sizeof(Http2Call) <= 4096 - 64, "Http2Call fits the smallest slab");

// UNREAD_MOST: bytes of responses that a connection may leave unread before further calls wait.
enum { UNREAD_MOST = 32 << 20 };
enum { HEADER_EXTRA = 32, BODY_FIRST = 4000, GRPC_PREFIX = 5, TINY_BYTES = 64, TINY_MOST = 2048 };

void http2_list_add(Http2List *l, Http2Call *c) {
    c->prev = l->last;
    c->next = NULL;
    if (l->last)
        l->last->next = c;
    else
        l->first = c;
    l->last = c;
}

void http2_list_remove(Http2List *l, Http2Call *c) {
    if (c->prev)
        c->prev->next = c->next;
    else
        l->first = c->next;
    if (c->next)
        c->next->prev = c->prev;
    else
        l->last = c->prev;
}

static void call_give(ExchangeBody *b) {
    Http2Call *c = (Http2Call *)((char *)b - offsetof(Http2Call, body));
    slab_give(c->slabs, c->slab);
    slab_give(c->pages, c->own);
}

static ExchangeBody *call_take(Exchange *x) {
    Http2Call *c = (Http2Call *)x;
    if (!c->slab) return NULL;
    c->lent = true;
    return &c->body;
}

// Credits the flow-control window, unless the handler holds it.
static void acknowledge(Http2Call *c) {
    if (c->owed == 0 || c->x.hold) return;
    if (nghttp2_session_consume_stream(c->h->session, c->id, c->owed) != 0) c->h->over = true;
    c->owed = 0;
}

static void call_eat(Exchange *x, size_t n) {
    Http2Call *c = (Http2Call *)x;
    if (n > 0) {
        memmove(x->body, x->body + n, x->body_len - n);
        x->body_len -= n;
        c->tiny = 0;
        stream_use(&c->h->stream, c->h->stream.use);
    }
    acknowledge(c);
}

// What follows the first n bytes moves to a slab of its own.
static ExchangeBody *call_cut(Exchange *x, size_t n) {
    Http2Call *c = (Http2Call *)x;
    Slab      *old = c->slab, *more = NULL;
    size_t     rest = x->body_len - n;
    if (rest > 0) {
        more = slab_take(c->slabs, rest);
        if (!more || !slab_touch(c->slabs, more, rest)) {
            slab_give(c->slabs, more);
            return NULL;
        }
        memcpy(more->at, x->body + n, rest);
    }
    c->slab = more;
    c->from = 0;
    x->body = more ? more->at : NULL;
    x->body_len = rest;
    c->tiny = 0;
    acknowledge(c);
    return slab_lend(c->slabs, old);
}

// A connection's first call is taken even if memory is short: it may ask for the server's health.
static Slab *open_slab(Http2 *h) {
    SlabPool *p = stream_pages(&h->stream);
    Slab *s = h->n_calls == 0 ? slab_need(p, sizeof(Http2Call)) : slab_take(p, sizeof(Http2Call));
    if (s && h->n_calls == 0) slab_use(p, s, sizeof(Http2Call));
    if (!s || slab_touch(p, s, sizeof(Http2Call))) return s;
    slab_give(p, s);
    return NULL;
}

Http2Call *http2_call_open(Http2 *h, int32_t id) {
    Slab *own = open_slab(h);
    if (!own) return NULL;
    Http2Call *c = (Http2Call *)own->at;
    memset(c, 0, offsetof(Http2Call, headers));
    memset(&c->text, 0, sizeof *c - offsetof(Http2Call, text));
    c->h = h;
    c->own = own;
    c->id = id;
    c->text = c->small_text;
    c->text_room = sizeof c->small_text;
    c->body.give = call_give;
    c->slabs = stream_slabs(&h->stream);
    c->pages = stream_pages(&h->stream);
    c->x = (Exchange){.http2 = true,
                      .declared = UINT64_MAX,
                      .began = stream_now(&h->stream),
                      .headers = c->headers,
                      .send = http2_send,
                      .take = call_take,
                      .eat = call_eat,
                      .cut = call_cut,
                      .push = http2_push};
    c->moved = c->x.began;
    http2_list_add(&h->calls, c);
    h->n_calls++;
    return c;
}

static void move(Str *s, const char *from, char *to) {
    if (s->at) s->at = to + (s->at - from);
}

// Moves the headers out of the record into their own memory.
static bool more_text(Http2Call *c) {
    size_t most = stream_limits(&c->h->stream)->header_bytes;
    if (c->more_text || most <= c->text_room) return false;
    Slab *s = slab_take(c->pages, most);
    if (!s || !slab_touch(c->pages, s, most)) {
        slab_give(c->pages, s);
        return false;
    }
    char *to = (char *)s->at;
    memcpy(to, c->text, c->text_len);
    for (uint32_t i = 0; i < c->x.n_headers; i++) {
        move(&c->headers[i].name, c->text, to);
        move(&c->headers[i].value, c->text, to);
    }
    move(&c->x.method, c->text, to);
    move(&c->x.path, c->text, to);
    c->more_text = s;
    c->text = to;
    c->text_room = most;
    return true;
}

static Str keep(Http2Call *c, Str s) {
    Str kept = {c->text + c->text_len, s.len};
    if (s.len > 0) memcpy(c->text + c->text_len, s.at, s.len);
    c->text_len += s.len;
    return kept;
}

static bool is(Str s, const char *word) {
    return s.len == strlen(word) && memcmp(s.at, word, s.len) == 0;
}

bool http2_call_header(Http2Call *c, Str name, Str value) {
    size_t most = stream_limits(&c->h->stream)->header_bytes;
    c->list_bytes += name.len + value.len + HEADER_EXTRA;
    if (c->list_bytes > 4 * most) return false;
    c->bad |= c->list_bytes > most;
    bool pseudo = name.len > 0 && name.at[0] == ':';
    bool host = is(name, ":authority");
    if (host) name = (Str){"host", 4};
    if (pseudo && !host && !is(name, ":method") && !is(name, ":path")) return true;
    if (c->x.n_headers == HTTP2_HEADERS || c->x.n_headers == stream_limits(&c->h->stream)->headers)
        c->bad = true;
    size_t need = name.len + value.len;
    if (!c->bad && need > c->text_room - c->text_len)
        c->bad = !more_text(c) || need > c->text_room - c->text_len;
    if (c->bad) return true;
    if (is(name, ":method"))
        c->x.method = keep(c, value);
    else if (is(name, ":path"))
        c->x.path = keep(c, value);
    else
        c->headers[c->x.n_headers++] = (ExchangeHeader){keep(c, name), keep(c, value)};
    return true;
}

static uint64_t length_of(Str s) {
    uint64_t n = 0;
    for (size_t i = 0; i < s.len; i++) {
        if (s.at[i] < '0' || s.at[i] > '9' || n > UINT64_MAX / 10 - 9) return UINT64_MAX - 1;
        n = n * 10 + (uint64_t)(s.at[i] - '0');
    }
    return n;
}

static size_t most_of(const Http2Call *c) {
    size_t most = stream_limits(&c->h->stream)->body_bytes;
    return c->x.most > 0 && c->x.most < most ? c->x.most : most;
}

static void split_path(Http2Call *c) {
    Str        *path = &c->x.path;
    const char *mark = path->len > 0 ? memchr(path->at, '?', path->len) : NULL;
    if (!mark) return;
    c->x.query = (Str){mark + 1, path->len - (size_t)(mark + 1 - path->at)};
    path->len = (size_t)(mark - path->at);
}

void http2_call_head(Http2Call *c) {
    const ExchangeHandler *handler = stream_handler(&c->h->stream);
    Str                    type = exchange_header(&c->x, "content-type");
    Str                    length = exchange_header(&c->x, "content-length");
    Str                    encoding = exchange_header(&c->x, "content-encoding");
    c->grpc = type.len >= 16 && memcmp(type.at, "application/grpc", 16) == 0;
    split_path(c);
    if (c->bad) {
        http2_call_reject(c, 431, "request headers too large");
        return;
    }
    if (length.at) c->x.declared = length_of(length);
    if (encoding.at && !is(encoding, "identity")) {
        http2_call_reject(c, 415, "Content-Encoding is not supported on this listener");
        return;
    }
    c->open = true;
    if (handler->head) handler->head(handler->self, &c->x);
    c->h->n_flows += c->x.flows;
    if (!c->x.answered && length.at && c->x.declared > most_of(c))
        http2_call_reject(c, 413, "request body too large");
}

// Expected body size: Content-Length, or the length prefix of a gRPC message.
static size_t expected(const Http2Call *c, const uint8_t *at, size_t len) {
    size_t most = most_of(c), n = len > BODY_FIRST ? len : BODY_FIRST;
    if (c->x.declared != UINT64_MAX)
        n = (size_t)c->x.declared;
    else if (c->grpc && c->x.body_len == 0 && len >= GRPC_PREFIX)
        n = GRPC_PREFIX +
            ((size_t)at[1] << 24 | (size_t)at[2] << 16 | (size_t)at[3] << 8 | (size_t)at[4]);
    if (n < len) n = len;
    return n < most ? n : most;
}

static bool grow(Http2Call *c, size_t len) {
    size_t used = c->from + c->x.body_len, size = 2 * c->slab->size;
    if (size < used + len) size = used + len;
    Slab *more = stream_grow(&c->h->stream, c->slab, used, size);
    if (!more) return false;
    c->slab = more;
    c->x.body = more->at + c->from;
    return true;
}

static bool room(Http2Call *c, const uint8_t *at, size_t len) {
    if (!c->slab) {
        c->from = (64 - c->x.aligned % 64) % 64;
        c->slab = stream_take(&c->h->stream, c->from + expected(c, at, len));
        if (!c->slab) return false;
        c->x.body = c->slab->at + c->from;
    }
    size_t used = c->from + c->x.body_len;
    if (len > c->slab->size - used && !grow(c, len)) return false;
    return stream_touch(&c->h->stream, c->slab, used + len);
}

void http2_call_more(Http2Call *c) {
    const ExchangeHandler *handler = stream_handler(&c->h->stream);
    if (!c->x.answered && !c->refused) handler->more(handler->self, &c->x);
}

void http2_call_data(Http2Call *c, const uint8_t *at, size_t len) {
    c->owed += len;
    if (!c->x.flows) acknowledge(c);
    if (c->x.answered || c->refused || len == 0) return;
    if (len < TINY_BYTES && c->tiny++ > TINY_MOST) {
        http2_calm(c->h);
    } else if (len > most_of(c) - c->x.body_len) {
        http2_call_reject(c, 413, "request body too large");
    } else if (!room(c, at, len)) {
        http2_call_reject(c, 503, "server at its memory limit (buffered_mb); retry later");
    } else {
        memcpy(c->x.body + c->x.body_len, at, len);
        c->x.body_len += len;
        c->moved = stream_now(&c->h->stream);
        stream_moved(&c->h->stream, len);
        if (!c->x.flows) return;
        http2_call_more(c);
        acknowledge(c);
    }
}

static void ask(Http2Call *c) {
    const ExchangeHandler *handler = stream_handler(&c->h->stream);
    c->asked = true;
    c->h->n_asked++;
    handler->request(handler->self, &c->x);
}

// Whether the responses that wait for the client, and those being made, leave room for one more.
static bool may_ask(const Http2 *h) {
    return h->unread + (h->n_asked + 1) * h->largest <= UNREAD_MOST ||
           (h->n_asked == 0 && h->unread < UNREAD_MOST / 2);
}

bool http2_call_next(Http2 *h) {
    Http2Call *c = h->calls.first;
    if (!may_ask(h)) return false;
    while (c && !c->waits) c = c->next;
    if (!c) return false;
    c->waits = false;
    h->n_waiting--;
    if (!c->x.answered && !c->refused && !c->doomed) ask(c);
    return true;
}

void http2_call_complete(Http2Call *c) {
    c->complete = c->x.whole = true;
    c->x.arrived = stream_now(&c->h->stream);
    if (c->x.answered || c->refused) return;
    stream_counts(&c->h->stream)->requests++;
    c->h->stream.requests++;
    if (c->x.flows) {
        http2_call_more(c);
    } else if (c->h->n_waiting == 0 && may_ask(c->h)) {
        ask(c);
    } else {
        c->waits = true;
        c->h->n_waiting++;
    }
}

void http2_call_ended(Http2Call *c, bool sent) {
    const ExchangeHandler *handler = stream_handler(&c->h->stream);
    if (c->open) handler->ended(handler->self, &c->x, sent);
    http2_release(c);
    slab_give(c->pages, c->more_text);
    slab_give(c->pages, c->more_trail);
    if (!c->lent) call_give(&c->body);
}

void http2_call_closed(Http2Call *c, uint32_t code) {
    Http2 *h = c->h;
    http2_list_remove(&h->calls, c);
    h->n_calls--;
    h->active = stream_now(&h->stream);
    h->n_asked -= c->asked;
    h->n_waiting -= c->waits;
    h->n_flows -= c->x.flows;
    c->asked = c->waits = false;
    if (h->n_calls == 0 && h->stream.requests > 0) stream_use(&h->stream, STREAM_IDLE);
    c->done &= code == NGHTTP2_NO_ERROR;
    if (c->part) h->n_parts--;
    c->part = false;
    if (!c->x.answered && !c->begun) {
        http2_call_ended(c, false);
        return;
    }
    c->leaves = h->queued;  // its body may still be queued
    http2_list_add(&h->leaving, c);
}
