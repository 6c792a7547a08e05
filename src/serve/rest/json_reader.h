// JsonReader: strict JSON read in one pass and in place, without recursion and without memory of
// its own.
//
// The text ends with a brace, so that whatever runs over digits or white space stops there.
#pragma once

#include "base/err.h"
#include "base/tensor.h"

enum { JSON_READER_DEPTH = 64 };  // nesting beyond it is refused

typedef struct JsonReader {  // a value: a copy remembers a place
    unsigned char *text, *at, *end;
    uint32_t       depth;  // objects and arrays that are open
} JsonReader;

typedef enum JsonFault {  // why an element of an array cannot be read
    JSON_FAULT_NONE,
    JSON_FAULT_KIND,      // it is another kind of value, or none
    JSON_FAULT_RANGE,     // the type cannot hold it
    JSON_FAULT_FRACTION,  // it is written as a fraction, and the type has whole numbers
    JSON_FAULT_BROKEN,    // err_why says more
    JSON_FAULT_SHORT,     // the array ends before it
    JSON_FAULT_COMMA,     // what follows it is no comma
} JsonFault;

// ERR_PARSE unless the text, white space aside, begins and ends with a brace.
MUST_USE Err json_reader_begin(JsonReader *s, unsigned char *text, size_t len);
MUST_USE Err json_reader_finish(JsonReader *s);  // ERR_PARSE when something follows

unsigned char
    json_reader_peek(JsonReader *s);  // the next byte behind white space; 0: there is none
Err json_reader_fail(const JsonReader *s, const char *what);  // ERR_PARSE, with the place

// Whether another member or element follows; when none does, the closing bracket is taken.
MUST_USE Err json_reader_open(JsonReader *s, char bracket);
MUST_USE Err json_reader_member(JsonReader *s, bool first, Str *key, bool *more);
MUST_USE Err json_reader_element(JsonReader *s, bool first, bool *more);

MUST_USE Err json_reader_string(JsonReader *s, Str *out);  // unescaped in place
// A value of any kind, checked; ERR_LIMIT soon after most bytes.
MUST_USE Err json_reader_skip(JsonReader *s, size_t most);
bool         json_reader_literal(JsonReader *s, const char *word);

// n elements with commas between them, into out of type t; *done of them were read.
JsonFault json_reader_row(JsonReader *s, DType t, void *out, int64_t n, int64_t *done);
// A whole number; text stays where it is when there is none.
JsonFault json_reader_integer(JsonReader *s, int64_t least, uint64_t most, int64_t *out);
bool      json_reader_skip_number(JsonReader *s);  // false: it is none

// Data: a tensor's elements written out in JSON, flat or nested as its shape says.

// t has type and shape; its elements are read at s into a. index is the input's, for errors.
MUST_USE Err json_reader_tensor(JsonReader *s, uint32_t index, Arena *a, Tensor *t);
