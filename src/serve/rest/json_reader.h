// JsonReader: strict JSON parser: one pass, in place, without recursion or allocation.
//
// The text ends with a brace, so that scans over digits or white space stop without a length check.
#pragma once

#include "base/err.h"
#include "base/tensor.h"

enum { JSON_READER_DEPTH = 64 };  // deepest nesting accepted

typedef struct JsonReader {  // a plain value: copy it to remember a position
    unsigned char *text, *at, *end;
    uint32_t       depth;  // open objects and arrays
} JsonReader;

typedef enum JsonFault {  // why an array element cannot be read
    JSON_FAULT_NONE,
    JSON_FAULT_KIND,      // another kind of value, or none
    JSON_FAULT_RANGE,     // out of the type's range
    JSON_FAULT_FRACTION,  // a fraction, for an integer type
    JSON_FAULT_BROKEN,    // malformed: see err_why()
    JSON_FAULT_SHORT,     // the array ends before it
    JSON_FAULT_COMMA,     // no comma after it
} JsonFault;

// ERR_PARSE unless the text begins and ends with a brace, apart from white space.
MUST_USE Err json_reader_begin(JsonReader *s, unsigned char *text, size_t len);
MUST_USE Err json_reader_finish(JsonReader *s);  // ERR_PARSE if anything follows

unsigned char json_reader_peek(JsonReader *s);  // next byte after white space; 0: none
Err json_reader_fail(const JsonReader *s, const char *what);  // ERR_PARSE with the byte offset

// *more: another member or element follows; otherwise the closing bracket is consumed.
MUST_USE Err json_reader_open(JsonReader *s, char bracket);
MUST_USE Err json_reader_member(JsonReader *s, bool first, Str *key, bool *more);
MUST_USE Err json_reader_element(JsonReader *s, bool first, bool *more);

MUST_USE Err json_reader_string(JsonReader *s, Str *out);  // unescaped in place
// Skips and checks a value of any kind; ERR_LIMIT if it is longer than about `most` bytes.
MUST_USE Err json_reader_skip(JsonReader *s, size_t most);
bool         json_reader_literal(JsonReader *s, const char *word);

// json_number.c. Reads n elements, separated by commas, into out of type t; *done: how many were
// read.
JsonFault json_reader_row(JsonReader *s, DType t, void *out, int64_t n, int64_t *done);
// A whole number; on failure the position does not change.
JsonFault json_reader_integer(JsonReader *s, int64_t least, uint64_t most, int64_t *out);
bool      json_reader_skip_number(JsonReader *s);  // false: not a number

// json_tensor.c. Reads the elements of t, flat or nested as its shape, into memory of a. t has type
// and shape; index: number of the input, for errors.
MUST_USE Err json_reader_tensor(JsonReader *s, uint32_t index, Arena *a, Tensor *t);
