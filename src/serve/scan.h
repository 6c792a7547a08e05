// Scan: strict JSON read in one pass and in place, without recursion and without memory of its own.
//
// The text ends with a brace, so that whatever runs over digits or white space stops there.
#pragma once

#include "base/err.h"
#include "base/tensor.h"

enum { SCAN_DEPTH = 64 };  // nesting beyond it is refused

typedef struct Scan {  // a value: a copy remembers a place
    unsigned char *text, *at, *end;
    uint32_t       depth;  // objects and arrays that are open
} Scan;

typedef enum ScanFault {  // why an element of an array cannot be read
    SCAN_OK,
    SCAN_KIND,      // it is another kind of value, or none
    SCAN_RANGE,     // the type cannot hold it
    SCAN_FRACTION,  // it is written as a fraction, and the type has whole numbers
    SCAN_BROKEN,    // err_why says more
    SCAN_SHORT,     // the array ends before it
    SCAN_COMMA,     // what follows it is no comma
} ScanFault;

// ERR_PARSE unless the text, white space aside, begins and ends with a brace.
MUST_USE Err scan_begin(Scan *s, unsigned char *text, size_t len);
MUST_USE Err scan_finish(Scan *s);  // ERR_PARSE when something follows

unsigned char scan_peek(Scan *s);  // the next byte behind white space; 0: there is none
Err           scan_fail(const Scan *s, const char *what);  // ERR_PARSE, with the place

// Whether another member or element follows; when none does, the closing bracket is taken.
MUST_USE Err scan_open(Scan *s, char bracket);
MUST_USE Err scan_member(Scan *s, bool first, Str *key, bool *more);
MUST_USE Err scan_element(Scan *s, bool first, bool *more);

MUST_USE Err scan_text(Scan *s, Str *out);  // unescaped in place
// A value of any kind, checked; ERR_LIMIT soon after most bytes.
MUST_USE Err scan_skip(Scan *s, size_t most);
bool         scan_word(Scan *s, const char *word);

// n elements with commas between them, into out of type t; *done of them were read.
ScanFault scan_row(Scan *s, DType t, void *out, int64_t n, int64_t *done);
// A whole number; text stays where it is when there is none.
ScanFault scan_whole(Scan *s, int64_t least, uint64_t most, int64_t *out);
bool      scan_number_skip(Scan *s);  // false: it is none
