// Wire: the protobuf wire format, read in place without recursion and written into one block.
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

enum { WIRE_VARINT_BYTES = 10 };

typedef struct WireReader {
    const unsigned char *base, *at,
        *end;        // base: start of the outermost message, for error messages
    bool no_groups;  // a group, which may be long to skip, is an error
} WireReader;

typedef struct WireField {
    uint32_t             number;
    WireType             kind;
    uint64_t             value;  // WIRE_VARINT
    const unsigned char *at;     // payload; of WIRE_BYTES without its length
    size_t               len;
} WireField;

WireReader wire_reader(const void *bytes, size_t len);
WireReader wire_inside(const WireReader *in, const WireField *f);  // the submessage in a field
// The next field; *more false: the end. Groups are skipped, nested at most 32 deep.
MUST_USE Err wire_next(WireReader *in, WireField *out, bool *more);
MUST_USE Err wire_varint(WireReader *in, uint64_t *out);  // next of packed varints
// ERR_PARSE unless the field has that wire type; wire_text: and is UTF-8.
MUST_USE Err wire_want(const WireReader *in, const WireField *f, WireType kind);
MUST_USE Err wire_text(const WireReader *in, const WireField *f, Str *out);
// Number of elements in a repeated field, packed or not.
MUST_USE Err wire_count(const WireReader *in, const WireField *f, WireType kind, size_t *n);

typedef struct WireWriter {
    Arena         *arena;
    unsigned char *at;
    size_t         len, room, most;
    bool           full;  // `most` was exceeded; later writes are dropped
} WireWriter;

WireWriter wire_writer(Arena *a, size_t most);  // most: limit in bytes
void       wire_put(WireWriter *o, const void *bytes, size_t len);
void       wire_put_varint(WireWriter *o, uint64_t v);
void       wire_put_tag(WireWriter *o, uint32_t number, WireType kind);
// Fields; zero and empty values are left out, as in proto3.
void   wire_put_uint(WireWriter *o, uint32_t number, uint64_t v);
void   wire_put_double(WireWriter *o, uint32_t number, double v);
void   wire_put_text(WireWriter *o, uint32_t number, const char *s);
void   wire_put_str(WireWriter *o, uint32_t number, Str s);
void   wire_put_packed(WireWriter *o, uint32_t number, const int64_t *v, size_t n);
size_t wire_begin(WireWriter *o, uint32_t number);  // starts a submessage; empty ones are kept
void   wire_end(WireWriter *o, size_t mark);
// ERR_LIMIT if it exceeded `most`.
MUST_USE Err wire_done(const WireWriter *o);

size_t wire_varint_bytes(uint64_t v);
size_t wire_encode_varint(uint64_t v, unsigned char out[WIRE_VARINT_BYTES]);  // returns its length
