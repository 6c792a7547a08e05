// LineReader: lines of bounded length from a source of bytes; a longer line is skipped and
// reported.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { LINE_READER_BYTES = 65536 };  // of a line, its end included

// Reads at most size bytes; 0: the end, or a failure.
typedef size_t LineSource(void *self, char *to, size_t size);

typedef struct LineReader {
    LineSource *read;
    void       *self;
    uint64_t    line;  // number of the last line, from 1
    size_t      at, end;
    char        bytes[LINE_READER_BYTES];
} LineReader;

typedef enum LineResult { LINE_READ, LINE_TOO_LONG, LINE_END } LineResult;

void line_reader_init(LineReader *r, LineSource *read, void *self);
// The next line without its end ("\n" or "\r\n"), valid until the next call. The last line needs no
// end.
LineResult line_reader_next(LineReader *r, const char **text, size_t *len);
