#include <string.h>

#include "net/http1_int.h"

// HTTP1_PIECE: bytes read at once. HTTP1_UNPACKED: bytes decompressed at once. HTTP1_STATE: memory
// of a decompressor.
enum {
    HTTP1_FIRST = 16384,
    HTTP1_PIECE = 262144,
    HTTP1_UNPACKED = 65536,
    HTTP1_STATE = 48 << 10,
    HTTP1_ALIGN = 64
};

static bool http1_full(Http1 *c) {
    http1_reject(c, 503, "server at its memory limit (buffered_mb); retry later");
    return false;
}

static bool http1_too_large(Http1 *c) {
    http1_reject(c, 413, "request body too large");
    return false;
}

static size_t http1_most(const Http1 *c) {
    size_t most = stream_limits(&c->stream)->body_bytes;
    return c->x.most < most ? c->x.most : most;
}

// Offset of a body in its slab.
static size_t http1_from(const Http1 *c) {
    return (HTTP1_ALIGN - c->x.aligned % HTTP1_ALIGN) % HTTP1_ALIGN;
}

bool http1_body_begin(Http1 *c) {
    bool packed = c->head.packing != INFLATE_NONE;
    if (c->input == HTTP1_BODY && c->left > http1_most(c)) return http1_too_large(c);
    c->body_from = packed ? 0 : http1_from(c);
    c->body_len = 0;
    size_t size = c->input == HTTP1_BODY ? (size_t)c->left : HTTP1_FIRST;
    c->body = stream_take(&c->stream, c->body_from + size);
    return c->body || http1_full(c);
}

static void http1_inflated(Http1 *c) {
    inflate_end(c->inflate);
    budget_give(&stream_slabs(&c->stream)->budget, c->state);
    c->inflate = NULL;
    c->state = 0;
}

void http1_body_free(Http1 *c) {
    slab_give(stream_slabs(&c->stream), c->body);
    slab_give(stream_slabs(&c->stream), c->unpacked);
    http1_inflated(c);
    c->body = c->unpacked = NULL;
    c->body_len = 0;
}

static void http1_body_end(Http1 *c) {
    bool unpack = !c->drop && c->head.packing != INFLATE_NONE && !c->x.keep_packed;
    c->input = unpack ? HTTP1_UNPACK : HTTP1_DONE;
}

unsigned char *http1_body_room(Http1 *c, size_t *size) {
    *size = c->left < HTTP1_PIECE ? (size_t)c->left : HTTP1_PIECE;
    return c->body->at + c->body_from + c->body_len;
}

bool http1_body_came(Http1 *c, size_t n) {
    c->body_len += n;
    c->left -= n;
    if (c->left == 0) http1_body_end(c);
    return stream_touch(&c->stream, c->body, c->body_from + c->body_len) || http1_full(c);
}

static bool http1_take_plain(Http1 *c) {
    size_t      n = c->n - c->at < c->left ? c->n - c->at : (size_t)c->left;
    const char *from = c->bytes + c->at;
    c->at += n;
    if (!c->drop) {
        memcpy(c->body->at + c->body_from + c->body_len, from, n);
        return http1_body_came(c, n);
    }
    c->left -= n;
    if (c->left == 0) http1_body_end(c);
    return true;
}

static bool http1_add(Http1 *c, Str data) {
    size_t end = c->body_from + c->body_len + data.len;
    if (c->drop || data.len == 0) return true;
    if (data.len > http1_most(c) - c->body_len) return http1_too_large(c);
    if (end > c->body->size) {
        size_t size = end > 2 * c->body->size ? end : 2 * c->body->size;
        Slab  *more = stream_grow(&c->stream, c->body, end - data.len, size);
        if (!more) return http1_full(c);
        c->body = more;
    }
    if (!stream_touch(&c->stream, c->body, end)) return http1_full(c);
    memcpy(c->body->at + end - data.len, data.at, data.len);
    c->body_len += data.len;
    return true;
}

static bool http1_take_chunks(Http1 *c) {
    while (c->at < c->n && c->chunks.state != HTTP1_CHUNKS_END) {
        size_t used = 0;
        Str    data;
        if (!http1_chunks(&c->chunks, c->bytes + c->at, c->n - c->at, &used, &data)) {
            http1_reject(c, 400, "malformed chunked body");
            return false;
        }
        c->at += used;
        if (!http1_add(c, data)) return false;
        if (!c->drop && c->chunks.left > http1_most(c) - c->body_len) return http1_too_large(c);
    }
    if (c->chunks.state == HTTP1_CHUNKS_END) http1_body_end(c);
    return true;
}

bool http1_body_take(Http1 *c) {
    return c->input == HTTP1_BODY ? http1_take_plain(c) : http1_take_chunks(c);
}

static bool http1_unpack_begin(Http1 *c) {
    Str packed = {(const char *)c->body->at, c->body_len};
    c->unpacked = stream_take(&c->stream, HTTP1_PIECE);
    if (!c->unpacked || !budget_take(&stream_slabs(&c->stream)->budget, HTTP1_STATE))
        return http1_full(c);
    c->state = HTTP1_STATE;
    if (inflate_begin(&c->inflate, c->head.packing, packed) != ERR_OK) return http1_full(c);
    c->body_from = http1_from(c);
    c->body_len = 0;
    return true;
}

// Destination of the next step: one byte beyond the limit, to detect excess.
static bool http1_unpack_room(Http1 *c, size_t *room) {
    size_t used = c->body_from + c->body_len, left = http1_most(c) - c->body_len + 1;
    *room = left < HTTP1_UNPACKED ? left : HTTP1_UNPACKED;
    if (used + *room <= c->unpacked->size) return true;
    Slab *more = stream_grow(&c->stream, c->unpacked, used, 2 * c->unpacked->size);
    if (!more) return http1_full(c);
    c->unpacked = more;
    return true;
}

static void http1_unpack_end(Http1 *c) {
    slab_give(stream_slabs(&c->stream), c->body);
    c->body = c->unpacked;
    c->unpacked = NULL;
    http1_inflated(c);
    c->input = HTTP1_DONE;
}

bool http1_body_unpack(Http1 *c) {
    size_t room = 0, made = 0;
    bool   done = false;
    if (!c->inflate && !http1_unpack_begin(c)) return false;
    if (!http1_unpack_room(c, &room)) return false;
    unsigned char *to = c->unpacked->at + c->body_from + c->body_len;
    Err            e = inflate_step(c->inflate, to, room, &made, &done);
    if (e == ERR_LIMIT) return http1_full(c);
    if (e != ERR_OK) {
        http1_reject(c, 400, "compressed body damaged or followed by other bytes");
        return false;
    }
    c->body_len += made;
    if (c->body_len > http1_most(c)) return http1_too_large(c);
    if (!stream_touch(&c->stream, c->unpacked, c->body_from + c->body_len)) return http1_full(c);
    if (done) http1_unpack_end(c);
    return true;
}

ExchangeBody *http1_lend(Exchange *x) {
    Http1 *c = (Http1 *)((char *)x - offsetof(Http1, x));
    Slab  *s = c->body;
    c->body = NULL;
    return s ? slab_lend(stream_slabs(&c->stream), s) : NULL;
}
