#include "net/inflate.h"

#include <limits.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <zlib.h>

enum { INFLATE_FIRST = 65536, INFLATE_ALIGN = 64, INFLATE_FEED = 65536 };

struct Inflate {
    z_stream z;
    Str      rest;  // input not yet passed to zlib
};

static bool inflate_is(Str s, const char *text) {
    return s.len == strlen(text) && strncasecmp(s.at, text, s.len) == 0;
}

bool inflate_kind(Str encoding, InflateKind *out) {
    if (inflate_is(encoding, "identity") || encoding.len == 0)
        *out = INFLATE_NONE;
    else if (inflate_is(encoding, "gzip") || inflate_is(encoding, "x-gzip"))
        *out = INFLATE_GZIP;
    else if (inflate_is(encoding, "deflate"))
        *out = INFLATE_DEFLATE;
    else
        return false;
    return true;
}

// deflate should have zlib's two-byte header; some clients send raw deflate.
static int inflate_window(InflateKind kind, Str in) {
    if (kind == INFLATE_GZIP) return MAX_WBITS + 16;
    const unsigned char *b = (const unsigned char *)in.at;
    bool zlib = in.len >= 2 && (b[0] & 15) == Z_DEFLATED && (b[0] * 256 + b[1]) % 31 == 0;
    return zlib ? MAX_WBITS : -MAX_WBITS;
}

Err inflate_begin(Inflate **out, InflateKind kind, Str in) {
    Inflate *i = calloc(1, sizeof *i);
    if (!i) return err_set(ERR_LIMIT, "no memory to decompress a body");
    if (inflateInit2(&i->z, inflate_window(kind, in)) != Z_OK) {
        free(i);
        return err_set(ERR_LIMIT, "no memory to decompress a body");
    }
    i->rest = in;
    *out = i;
    return ERR_OK;
}

void inflate_end(Inflate *i) {
    if (!i) return;
    inflateEnd(&i->z);
    free(i);
}

static uInt inflate_part(size_t n) { return n > UINT_MAX ? UINT_MAX : (uInt)n; }

// Empty blocks make no output, however many there are: the input of a step is bounded too.
static void inflate_feed(Inflate *i) {
    if (i->z.avail_in > 0 || i->rest.len == 0) return;
    i->z.next_in = (Bytef *)(uintptr_t)i->rest.at;  // zlib does not write there
    i->z.avail_in = i->rest.len < INFLATE_FEED ? (uInt)i->rest.len : INFLATE_FEED;
    i->rest.at += i->z.avail_in;
    i->rest.len -= i->z.avail_in;
}

Err inflate_step(Inflate *i, unsigned char *to, size_t room, size_t *made, bool *done) {
    size_t left = room;
    int    said = Z_OK;
    inflate_feed(i);
    while (left > 0 && said == Z_OK) {
        uInt part = inflate_part(left);
        i->z.next_out = to + (room - left);
        i->z.avail_out = part;
        said = inflate(&i->z, Z_NO_FLUSH);
        left -= part - i->z.avail_out;
        if (i->z.avail_in == 0 && i->rest.len > 0) break;
    }
    if (said == Z_BUF_ERROR && i->rest.len > 0) said = Z_OK;
    if (said == Z_MEM_ERROR) return err_set(ERR_LIMIT, "no memory to decompress a body");
    if (said == Z_BUF_ERROR) return err_set(ERR_PARSE, "compressed body ends too early");
    if (said != Z_OK && said != Z_STREAM_END)
        return err_set(ERR_PARSE, "compressed body is damaged");
    if (said == Z_STREAM_END && (i->z.avail_in > 0 || i->rest.len > 0))
        return err_set(ERR_PARSE, "bytes follow the compressed body");
    *made = room - left;
    *done = said == Z_STREAM_END;
    return ERR_OK;
}

// Memory for size bytes, with the requested alignment.
static void *inflate_room(size_t size, size_t aligned, unsigned char **out) {
    char *memory = malloc(size + INFLATE_ALIGN + 1);
    if (!memory) return NULL;
    uintptr_t past = ((uintptr_t)memory + aligned) % INFLATE_ALIGN;
    *out = (unsigned char *)memory + (INFLATE_ALIGN - past) % INFLATE_ALIGN;
    return memory;
}

typedef struct InflateSink {
    void          *memory;
    unsigned char *at;
    size_t         len, size, most, aligned;
} InflateSink;

static Err inflate_more(InflateSink *s) {
    size_t         size = s->size ? s->size * 2 : INFLATE_FIRST;
    unsigned char *at = NULL;
    if (size > s->most) size = s->most;
    void *memory = inflate_room(size, s->aligned, &at);
    if (!memory) return err_set(ERR_LIMIT, "no memory to decompress a body");
    if (s->len > 0) memcpy(at, s->at, s->len);
    free(s->memory);
    s->memory = memory;
    s->at = at;
    s->size = size;
    return ERR_OK;
}

// Asks for one byte beyond the limit, to detect excess.
static Err inflate_into(Inflate *i, InflateSink *s) {
    bool done = false;
    while (!done) {
        bool          full = s->len == s->most;
        unsigned char extra = 0;
        size_t        made = 0;
        if (!full && s->len == s->size) TRY(inflate_more(s));
        TRY(inflate_step(i, full ? &extra : s->at + s->len, full ? 1 : s->size - s->len, &made,
                         &done));
        if (full && made > 0)
            return err_set(ERR_LIMIT, "body larger than %zu bytes after decompression", s->most);
        s->len += made;
    }
    return ERR_OK;
}

Err inflate_all(InflateKind kind, Str in, size_t most, size_t aligned, void **memory,
                unsigned char **out, size_t *len) {
    Inflate    *i = NULL;
    InflateSink s = {.most = most, .aligned = aligned};
    TRY(inflate_begin(&i, kind, in));
    Err e = inflate_more(&s);
    if (e == ERR_OK) e = inflate_into(i, &s);
    inflate_end(i);
    if (e != ERR_OK) {
        free(s.memory);
        return e;
    }
    *memory = s.memory;
    *out = s.at;
    *len = s.len;
    return ERR_OK;
}
