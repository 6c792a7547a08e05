#include "serve/grpc/wire.h"

#include <string.h>

#include "base/coroutine.h"
#include "base/utf8.h"

enum { FIELD_NS = 10 };  // estimated time of a field
enum { NUMBER_MAX = (1 << 29) - 1, GROUPS_MAX = 32 };

static Err bad(const WireReader *in, const unsigned char *at, const char *what) {
    return err_set(ERR_PARSE, "message: byte %zu: %s", (size_t)(at - in->base), what);
}

WireReader wire_reader(const void *bytes, size_t len) {
    const unsigned char *at = len > 0 ? bytes : (const unsigned char *)"";  // bytes may be NULL
    return (WireReader){.base = at, .at = at, .end = at + len};
}

WireReader wire_inside(const WireReader *in, const WireField *f) {
    return (WireReader){.base = in->base, .at = f->at, .end = f->at + f->len};
}

Err wire_varint(WireReader *in, uint64_t *out) {
    const unsigned char *at = in->at;
    uint64_t             v = 0;
    for (uint32_t i = 0; i < WIRE_VARINT_BYTES && at < in->end; i++) {
        unsigned char c = *at++;
        v |= (uint64_t)(c & 0x7f) << (7 * i);
        if ((c & 0x80) != 0) continue;
        if (i == WIRE_VARINT_BYTES - 1 && c > 1) return bad(in, in->at, "number exceeds 64 bits");
        in->at = at;
        *out = v;
        return ERR_OK;
    }
    return bad(in, in->at, "truncated number");
}

static Err tag(WireReader *in, WireField *f) {
    const unsigned char *at = in->at;
    uint64_t             v;
    TRY(wire_varint(in, &v));
    if (v >> 3 == 0 || v >> 3 > NUMBER_MAX) return bad(in, at, "invalid field number");
    *f = (WireField){.number = (uint32_t)(v >> 3), .kind = (WireType)(v & 7)};
    return ERR_OK;
}

static Err payload(WireReader *in, WireField *f) {
    const unsigned char *at = in->at;
    uint64_t             len = 0;
    switch (f->kind) {
    case WIRE_VARINT:
        TRY(wire_varint(in, &f->value));
        f->at = at;
        f->len = (size_t)(in->at - at);
        return ERR_OK;
    case WIRE_FIXED64: len = 8; break;
    case WIRE_FIXED32: len = 4; break;
    case WIRE_BYTES: TRY(wire_varint(in, &len)); break;
    case WIRE_GROUP:
    case WIRE_GROUP_END: return ERR_OK;
    default: return bad(in, at, "unknown wire type");
    }
    if (len > (size_t)(in->end - in->at)) return bad(in, at, "field exceeds the message");
    f->at = in->at;
    f->len = (size_t)len;
    in->at += len;
    return ERR_OK;
}

static Err skip_group(WireReader *in, uint32_t number) {
    uint32_t open[GROUPS_MAX] = {number}, depth = 1;
    while (depth > 0) {
        WireField f;
        coroutine_point(FIELD_NS);
        TRY(tag(in, &f));
        TRY(payload(in, &f));
        if (f.kind == WIRE_GROUP) {
            if (depth == GROUPS_MAX) return bad(in, in->at, "groups nested too deep");
            open[depth++] = f.number;
        } else if (f.kind == WIRE_GROUP_END) {
            if (open[--depth] != f.number) return bad(in, in->at, "mismatched end of group");
        }
    }
    return ERR_OK;
}

Err wire_next(WireReader *in, WireField *out, bool *more) {
    WireField f;
    while (in->at < in->end) {
        coroutine_point(FIELD_NS);
        TRY(tag(in, &f));
        TRY(payload(in, &f));
        if (f.kind == WIRE_GROUP_END) return bad(in, in->at, "end of group without start");
        if (f.kind != WIRE_GROUP) {
            *out = f;
            *more = true;
            return ERR_OK;
        }
        if (in->no_groups) return bad(in, in->at, "groups are not supported here");
        TRY(skip_group(in, f.number));
    }
    *more = false;
    return ERR_OK;
}

Err wire_want(const WireReader *in, const WireField *f, WireType kind) {
    if (f->kind == kind) return ERR_OK;
    return err_set(ERR_PARSE, "message: byte %zu: field %u has wire type %d, not %d",
                   (size_t)(f->at - in->base), f->number, (int)f->kind, (int)kind);
}

Err wire_text(const WireReader *in, const WireField *f, Str *out) {
    TRY(wire_want(in, f, WIRE_BYTES));
    if (!utf8_ok((const char *)f->at, f->len)) return bad(in, f->at, "string is not UTF-8");
    *out = (Str){(const char *)f->at, f->len};
    return ERR_OK;
}

static Err count_packed(const WireReader *in, const WireField *f, WireType kind, size_t *n) {
    if (kind == WIRE_VARINT) {
        for (size_t i = 0; i < f->len; i++) *n += (f->at[i] & 0x80) == 0;
        return ERR_OK;  // a truncated last number is found when they are read
    }
    size_t size = kind == WIRE_FIXED32 ? 4 : 8;
    if (f->len % size != 0) return bad(in, f->at, "truncated packed numbers");
    *n += f->len / size;
    return ERR_OK;
}

Err wire_count(const WireReader *in, const WireField *f, WireType kind, size_t *n) {
    *n = 0;
    if (f->kind == WIRE_BYTES && kind != WIRE_BYTES) return count_packed(in, f, kind, n);
    TRY(wire_want(in, f, kind));
    *n = 1;
    return ERR_OK;
}

enum { ROOM_LEAST = 256, LENGTH_BYTES = 5 };

WireWriter wire_writer(Arena *a, size_t most) {
    return (WireWriter){.arena = a, .most = most < UINT32_MAX ? most : UINT32_MAX};
}

// Extends the block in place if nothing else was allocated from the arena, else moves it.
static bool grow(WireWriter *o, size_t more) {
    size_t least = o->room > ROOM_LEAST ? o->room : ROOM_LEAST;
    if (more < least) more = least;
    unsigned char *p = arena_try(o->arena, more, 1, 1);
    if (p == NULL) return false;
    if (o->at != NULL && p != o->at + o->room) {
        if (arena_try(o->arena, o->room, 1, 1) == NULL) return false;  // follows p
        memcpy(p, o->at, o->len);
        o->at = p;
    }
    if (o->at == NULL) o->at = p;
    o->room += more;
    return true;
}

static bool fits(WireWriter *o, size_t len) {
    if (!o->full && len > o->most - o->len) o->full = true;
    if (!o->full && len > o->room - o->len && !grow(o, len)) o->full = true;
    return !o->full;
}

void wire_put(WireWriter *o, const void *bytes, size_t len) {
    if (len == 0 || !fits(o, len)) return;
    memcpy(o->at + o->len, bytes, len);
    o->len += len;
}

size_t wire_encode_varint(uint64_t v, unsigned char out[WIRE_VARINT_BYTES]) {
    size_t n = 0;
    for (; v >= 0x80; v >>= 7) out[n++] = (unsigned char)(v | 0x80);
    out[n++] = (unsigned char)v;
    return n;
}

size_t wire_varint_bytes(uint64_t v) {
    unsigned char b[WIRE_VARINT_BYTES];
    return wire_encode_varint(v, b);
}

void wire_put_varint(WireWriter *o, uint64_t v) {
    unsigned char b[WIRE_VARINT_BYTES];
    size_t        n = wire_encode_varint(v, b);
    wire_put(o, b, n);
}

void wire_put_tag(WireWriter *o, uint32_t number, WireType kind) {
    wire_put_varint(o, (uint64_t)number << 3 | (uint64_t)kind);
}

void wire_put_uint(WireWriter *o, uint32_t number, uint64_t v) {
    if (v == 0) return;
    wire_put_tag(o, number, WIRE_VARINT);
    wire_put_varint(o, v);
}

void wire_put_double(WireWriter *o, uint32_t number, double v) {
    uint64_t      bits;
    unsigned char b[8];
    memcpy(&bits, &v, sizeof bits);
    for (size_t i = 0; i < 8; i++) b[i] = (unsigned char)(bits >> (8 * i));
    wire_put_tag(o, number, WIRE_FIXED64);
    wire_put(o, b, sizeof b);
}

void wire_put_str(WireWriter *o, uint32_t number, Str s) {
    if (s.len == 0) return;
    wire_put_tag(o, number, WIRE_BYTES);
    wire_put_varint(o, s.len);
    wire_put(o, s.at, s.len);
}

void wire_put_text(WireWriter *o, uint32_t number, const char *s) {
    if (s != NULL) wire_put_str(o, number, (Str){s, strlen(s)});
}

void wire_put_packed(WireWriter *o, uint32_t number, const int64_t *v, size_t n) {
    size_t len = 0;
    for (size_t i = 0; i < n; i++) len += wire_varint_bytes((uint64_t)v[i]);
    if (n == 0) return;
    wire_put_tag(o, number, WIRE_BYTES);
    wire_put_varint(o, len);
    for (size_t i = 0; i < n; i++) wire_put_varint(o, (uint64_t)v[i]);
}

size_t wire_begin(WireWriter *o, uint32_t number) {
    static const unsigned char zero[LENGTH_BYTES];
    wire_put_tag(o, number, WIRE_BYTES);
    wire_put(o, zero, sizeof zero);
    return o->len;
}

void wire_end(WireWriter *o, size_t mark) {
    if (o->full) return;
    unsigned char b[WIRE_VARINT_BYTES];
    size_t        len = o->len - mark, n = wire_encode_varint(len, b);
    memcpy(o->at + mark - LENGTH_BYTES, b, n);
    memmove(o->at + mark - LENGTH_BYTES + n, o->at + mark, len);
    o->len -= LENGTH_BYTES - n;
}

Err wire_done(const WireWriter *o) {
    if (!o->full) return ERR_OK;
    return err_set(ERR_LIMIT, "response exceeds %zu bytes", o->most);
}
