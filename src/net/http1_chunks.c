#include "net/http1_chunks.h"

#include "net/http1_head.h"

enum { HTTP1_DIGITS = 15, HTTP1_EXTRA = 16384 };

static int http1_hex(unsigned char b) {
    if (b >= '0' && b <= '9') return b - '0';
    if (b >= 'a' && b <= 'f') return b - 'a' + 10;
    if (b >= 'A' && b <= 'F') return b - 'A' + 10;
    return -1;
}

static bool http1_plain(unsigned char b) { return (b >= ' ' && b != 127) || b == '\t'; }

static bool http1_size(Http1Chunks *c, unsigned char b) {
    int digit = http1_hex(b);
    if (digit >= 0) {
        c->left = c->left * 16 + (unsigned)digit;
        return ++c->digits <= HTTP1_DIGITS;
    }
    c->state = b == '\r' ? HTTP1_SIZE_LF : HTTP1_EXTENSION;
    c->column = 0;
    return c->digits > 0 && (b == '\r' || b == ';');
}

static bool http1_extension(Http1Chunks *c, unsigned char b) {
    bool value = c->state == HTTP1_EXTENSION_VALUE;
    if (http1_token(b)) {
        c->column++;
        return true;
    }
    if (c->column == 0) return false;
    c->column = 0;
    if (b == '\r')
        c->state = HTTP1_SIZE_LF;
    else
        c->state = b == '=' ? HTTP1_EXTENSION_VALUE : HTTP1_EXTENSION;
    return b == '\r' || b == ';' || (b == '=' && !value);
}

// Trailers are of no use, but they have to look like headers.
static bool http1_trailer(Http1Chunks *c, unsigned char b) {
    if (b == '\r') {
        c->state = c->column == 0 ? HTTP1_LAST_LF : HTTP1_TRAILER_LF;
        return c->column == 0 || c->value;
    }
    if (c->value) return http1_plain(b);
    c->value = b == ':' && c->column > 0;
    c->column++;
    return c->value || http1_token(b);
}

static bool http1_go(Http1Chunks *c, bool fits, Http1ChunkState next) {
    c->state = next;
    return fits;
}

// A byte that is no data.
static bool http1_chunk_byte(Http1Chunks *c, unsigned char b) {
    switch (c->state) {
    case HTTP1_SIZE: return http1_size(c, b);
    case HTTP1_EXTENSION:
    case HTTP1_EXTENSION_VALUE: return http1_extension(c, b);
    case HTTP1_SIZE_LF:
        c->column = 0;
        c->value = false;
        return http1_go(c, b == '\n', c->left ? HTTP1_DATA : HTTP1_TRAILER);
    case HTTP1_DATA_CR: return http1_go(c, b == '\r', HTTP1_DATA_LF);
    case HTTP1_DATA_LF: c->digits = 0; return http1_go(c, b == '\n', HTTP1_SIZE);
    case HTTP1_TRAILER: return http1_trailer(c, b);
    case HTTP1_TRAILER_LF: c->column = 0; return http1_go(c, b == '\n', HTTP1_TRAILER);
    case HTTP1_LAST_LF: return http1_go(c, b == '\n', HTTP1_CHUNKS_END);
    case HTTP1_DATA:
    case HTTP1_CHUNKS_END: break;
    }
    return false;
}

bool http1_chunks(Http1Chunks *c, const char *at, size_t len, size_t *used, Str *data) {
    size_t i = 0;
    *data = (Str){0};
    while (i < len && c->state != HTTP1_CHUNKS_END && c->state != HTTP1_DATA)
        if (!http1_chunk_byte(c, (unsigned char)at[i++]) || ++c->extra > HTTP1_EXTRA) return false;
    if (i < len && c->state == HTTP1_DATA) {
        size_t n = len - i < c->left ? len - i : (size_t)c->left;
        *data = (Str){at + i, n};
        i += n;
        c->left -= n;
        c->extra = 0;
        if (c->left == 0) c->state = HTTP1_DATA_CR;
    }
    *used = i;
    return true;
}
