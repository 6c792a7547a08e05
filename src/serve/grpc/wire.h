// Wire: protocol buffers as bytes: read in place without recursion, written into one block.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/tensor.h"

typedef enum WireType {
    WIRE_VARINT = 0,
    WIRE_FIXED64 = 1,
    WIRE_BYTES = 2,
    WIRE_GROUP = 3,
    WIRE_GROUP_END = 4,
    WIRE_FIXED32 = 5
} WireType;

typedef struct WireReader {
    const unsigned char *base, *at, *end;  // base: where byte numbers in reasons count from
} WireReader;

typedef struct WireField {
    uint32_t             number;
    WireType             kind;
    uint64_t             value;  // of a varint
    const unsigned char *at;     // its payload, without the length of WIRE_BYTES
    size_t               len;
} WireField;

WireReader wire_reader(const void *bytes, size_t len);
WireReader wire_inside(const WireReader *in, const WireField *f);  // the message that a field holds
// The next field, or *more is false. Groups are passed over, at most 32 of them in one another.
MUST_USE Err wire_next(WireReader *in, WireField *out, bool *more);
MUST_USE Err wire_varint(WireReader *in, uint64_t *out);  // one of packed numbers
// ERR_PARSE unless the field is of that kind; wire_text: and UTF-8.
MUST_USE Err wire_want(const WireReader *in, const WireField *f, WireType kind);
MUST_USE Err wire_text(const WireReader *in, const WireField *f, Str *out);
// How many numbers of that kind a repeated field holds, packed or alone.
MUST_USE Err wire_count(const WireReader *in, const WireField *f, WireType kind, size_t *n);

typedef struct WireWriter {
    Arena         *arena;
    unsigned char *at;
    size_t         len, room, most;
    bool           full;  // what came after is lost
} WireWriter;

WireWriter wire_writer(Arena *a, size_t most);  // at most so many bytes
void       wire_put(WireWriter *o, const void *bytes, size_t len);
void       wire_put_varint(WireWriter *o, uint64_t v);
void       wire_put_tag(WireWriter *o, uint32_t number, WireType kind);
// Fields; those that hold 0, false or nothing are left out, as proto3 wants it.
void   wire_put_uint(WireWriter *o, uint32_t number, uint64_t v);
void   wire_put_double(WireWriter *o, uint32_t number, double v);
void   wire_put_text(WireWriter *o, uint32_t number, const char *s);
void   wire_put_str(WireWriter *o, uint32_t number, Str s);
void   wire_put_packed(WireWriter *o, uint32_t number, const int64_t *v, size_t n);
size_t wire_begin(WireWriter *o, uint32_t number);  // a message within; empty ones are kept
void   wire_end(WireWriter *o, size_t mark);
// ERR_LIMIT when it did not fit.
MUST_USE Err wire_done(const WireWriter *o);

size_t wire_varint_bytes(uint64_t v);
