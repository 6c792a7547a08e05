#include <string.h>

#include "serve/wire.h"

enum { ROOM_LEAST = 256, LENGTH_BYTES = 5 };

WireOut wire_out(Arena *a, size_t most) {
    return (WireOut){.arena = a, .most = most < UINT32_MAX ? most : UINT32_MAX};
}

// In place where nobody took memory of the arena meanwhile.
static bool grow(WireOut *o, size_t more) {
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

static bool fits(WireOut *o, size_t len) {
    if (!o->full && len > o->most - o->len) o->full = true;
    if (!o->full && len > o->room - o->len && !grow(o, len)) o->full = true;
    return !o->full;
}

void wire_put(WireOut *o, const void *bytes, size_t len) {
    if (len == 0 || !fits(o, len)) return;
    memcpy(o->at + o->len, bytes, len);
    o->len += len;
}

static size_t spell(uint64_t v, unsigned char out[10]) {
    size_t n = 0;
    for (; v >= 0x80; v >>= 7) out[n++] = (unsigned char)(v | 0x80);
    out[n++] = (unsigned char)v;
    return n;
}

size_t wire_varint_bytes(uint64_t v) {
    unsigned char b[10];
    return spell(v, b);
}

void wire_put_varint(WireOut *o, uint64_t v) {
    unsigned char b[10];
    size_t        n = spell(v, b);
    wire_put(o, b, n);
}

void wire_put_tag(WireOut *o, uint32_t number, WireKind kind) {
    wire_put_varint(o, (uint64_t)number << 3 | (uint64_t)kind);
}

void wire_put_uint(WireOut *o, uint32_t number, uint64_t v) {
    if (v == 0) return;
    wire_put_tag(o, number, WIRE_VARINT);
    wire_put_varint(o, v);
}

void wire_put_double(WireOut *o, uint32_t number, double v) {
    uint64_t      bits;
    unsigned char b[8];
    memcpy(&bits, &v, sizeof bits);
    for (size_t i = 0; i < 8; i++) b[i] = (unsigned char)(bits >> (8 * i));
    wire_put_tag(o, number, WIRE_FIXED64);
    wire_put(o, b, sizeof b);
}

void wire_put_str(WireOut *o, uint32_t number, Str s) {
    if (s.len == 0) return;
    wire_put_tag(o, number, WIRE_BYTES);
    wire_put_varint(o, s.len);
    wire_put(o, s.at, s.len);
}

void wire_put_text(WireOut *o, uint32_t number, const char *s) {
    if (s != NULL) wire_put_str(o, number, (Str){s, strlen(s)});
}

void wire_put_packed(WireOut *o, uint32_t number, const int64_t *v, size_t n) {
    size_t len = 0;
    for (size_t i = 0; i < n; i++) len += wire_varint_bytes((uint64_t)v[i]);
    if (n == 0) return;
    wire_put_tag(o, number, WIRE_BYTES);
    wire_put_varint(o, len);
    for (size_t i = 0; i < n; i++) wire_put_varint(o, (uint64_t)v[i]);
}

size_t wire_begin(WireOut *o, uint32_t number) {
    static const unsigned char zero[LENGTH_BYTES];
    wire_put_tag(o, number, WIRE_BYTES);
    wire_put(o, zero, sizeof zero);
    return o->len;
}

void wire_end(WireOut *o, size_t mark) {
    if (o->full) return;
    unsigned char b[10];
    size_t        len = o->len - mark, n = spell(len, b);
    memcpy(o->at + mark - LENGTH_BYTES, b, n);
    memmove(o->at + mark - LENGTH_BYTES + n, o->at + mark, len);
    o->len -= LENGTH_BYTES - n;
}

Err wire_done(const WireOut *o) {
    if (!o->full) return ERR_OK;
    return err_set(ERR_LIMIT, "the answer is larger than allowed, %zu bytes", o->most);
}
