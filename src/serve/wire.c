#include "serve/wire.h"

#include <string.h>

#include "base/utf8.h"

enum { NUMBER_MAX = (1 << 29) - 1, GROUPS_MAX = 32, VARINT_BYTES = 10 };

static Err bad(const WireIn *in, const unsigned char *at, const char *what) {
    return err_set(ERR_PARSE, "message: byte %zu: %s", (size_t)(at - in->base), what);
}

WireIn wire_in(const void *bytes, size_t len) {
    const unsigned char *at = len > 0 ? bytes : (const unsigned char *)"";  // may be NULL
    return (WireIn){.base = at, .at = at, .end = at + len};
}

WireIn wire_inside(const WireIn *in, const WireField *f) {
    return (WireIn){.base = in->base, .at = f->at, .end = f->at + f->len};
}

Err wire_varint(WireIn *in, uint64_t *out) {
    const unsigned char *at = in->at;
    uint64_t             v = 0;
    for (uint32_t i = 0; i < VARINT_BYTES && at < in->end; i++) {
        unsigned char c = *at++;
        v |= (uint64_t)(c & 0x7f) << (7 * i);
        if ((c & 0x80) != 0) continue;
        if (i == VARINT_BYTES - 1 && c > 1) return bad(in, in->at, "a number has over 64 bits");
        in->at = at;
        *out = v;
        return ERR_OK;
    }
    return bad(in, in->at, "a number does not end");
}

static Err tag(WireIn *in, WireField *f) {
    const unsigned char *at = in->at;
    uint64_t             v;
    TRY(wire_varint(in, &v));
    if (v >> 3 == 0 || v >> 3 > NUMBER_MAX) return bad(in, at, "no field has this number");
    *f = (WireField){.number = (uint32_t)(v >> 3), .kind = (WireKind)(v & 7)};
    return ERR_OK;
}

static Err payload(WireIn *in, WireField *f) {
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
    if (len > (size_t)(in->end - in->at)) return bad(in, at, "a field is longer than what follows");
    f->at = in->at;
    f->len = (size_t)len;
    in->at += len;
    return ERR_OK;
}

static Err skip_group(WireIn *in, uint32_t number) {
    uint32_t open[GROUPS_MAX] = {number}, depth = 1;
    while (depth > 0) {
        WireField f;
        TRY(tag(in, &f));
        TRY(payload(in, &f));
        if (f.kind == WIRE_GROUP) {
            if (depth == GROUPS_MAX) return bad(in, in->at, "groups are nested too deep");
            open[depth++] = f.number;
        } else if (f.kind == WIRE_GROUP_END) {
            if (open[--depth] != f.number) return bad(in, in->at, "a group has another's end");
        }
    }
    return ERR_OK;
}

Err wire_next(WireIn *in, WireField *out, bool *more) {
    WireField f;
    while (in->at < in->end) {
        TRY(tag(in, &f));
        TRY(payload(in, &f));
        if (f.kind == WIRE_GROUP_END) return bad(in, in->at, "a group ends that did not begin");
        if (f.kind != WIRE_GROUP) {
            *out = f;
            *more = true;
            return ERR_OK;
        }
        TRY(skip_group(in, f.number));
    }
    *more = false;
    return ERR_OK;
}

Err wire_want(const WireIn *in, const WireField *f, WireKind kind) {
    if (f->kind == kind) return ERR_OK;
    return err_set(ERR_PARSE, "message: byte %zu: field %u has wire type %d, not %d",
                   (size_t)(f->at - in->base), f->number, (int)f->kind, (int)kind);
}

Err wire_text(const WireIn *in, const WireField *f, Str *out) {
    TRY(wire_want(in, f, WIRE_BYTES));
    if (!utf8_ok((const char *)f->at, f->len)) return bad(in, f->at, "a text is not UTF-8");
    *out = (Str){(const char *)f->at, f->len};
    return ERR_OK;
}

static Err count_packed(const WireIn *in, const WireField *f, WireKind kind, size_t *n) {
    if (kind == WIRE_VARINT) {
        for (size_t i = 0; i < f->len; i++) *n += (f->at[i] & 0x80) == 0;
        return ERR_OK;  // whether the last one ends is seen when they are read
    }
    size_t size = kind == WIRE_FIXED32 ? 4 : 8;
    if (f->len % size != 0) return bad(in, f->at, "packed numbers are cut short");
    *n += f->len / size;
    return ERR_OK;
}

Err wire_count(const WireIn *in, const WireField *f, WireKind kind, size_t *n) {
    *n = 0;
    if (f->kind == WIRE_BYTES && kind != WIRE_BYTES) return count_packed(in, f, kind, n);
    TRY(wire_want(in, f, kind));
    *n = 1;
    return ERR_OK;
}
