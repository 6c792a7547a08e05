#include "base/line_reader.h"

#include <string.h>

void line_reader_init(LineReader *r, LineSource *read, void *self) {
    r->read = read;
    r->self = self;
    r->line = 0;
    r->at = r->end = 0;
}

// Moves what is left to the front and reads behind it; false at the end of input.
static bool refill(LineReader *r) {
    memmove(r->bytes, r->bytes + r->at, r->end - r->at);
    r->end -= r->at;
    r->at = 0;
    size_t n = r->read(r->self, r->bytes + r->end, sizeof r->bytes - r->end);
    r->end += n;
    return n > 0;
}

// Drops bytes up to the end of the line.
static void skip_line(LineReader *r) {
    for (;;) {
        const char *newline = memchr(r->bytes + r->at, '\n', r->end - r->at);
        if (newline != NULL) {
            r->at = (size_t)(newline - r->bytes) + 1;
            return;
        }
        r->at = r->end;
        if (!refill(r)) return;
    }
}

static LineResult give(LineReader *r, size_t len, size_t next, const char **text, size_t *out) {
    *text = r->bytes + r->at;
    if (len > 0 && (*text)[len - 1] == '\r') len--;
    *out = len;
    r->at = next;
    r->line++;
    return LINE_READ;
}

LineResult line_reader_next(LineReader *r, const char **text, size_t *len) {
    size_t seen = 0;  // bytes of the line without its end
    for (;;) {
        size_t      left = r->end - r->at;
        const char *newline = memchr(r->bytes + r->at + seen, '\n', left - seen);
        if (newline != NULL) {
            size_t end = (size_t)(newline - r->bytes);
            return give(r, end - r->at, end + 1, text, len);
        }
        if (left == sizeof r->bytes) {
            skip_line(r);
            r->line++;
            return LINE_TOO_LONG;
        }
        seen = left;
        if (refill(r)) continue;
        return left > 0 ? give(r, left, r->end, text, len) : LINE_END;
    }
}
