#include "net/response_parser.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/tensor.h"

enum { FIRST_ROOM = 1024, SIZE_DIGITS = 15 };

typedef struct Fields {  // header fields that determine the length of the body
    uint64_t length;
    bool     has_length, chunked, close, keep_alive;
} Fields;

void response_parser_begin(ResponseParser *r, size_t keep) {
    r->step = RESPONSE_HEAD;
    r->status = 0;
    r->close = r->begun = false;
    r->json_len = SIZE_MAX;
    r->left = 0;
    r->head_len = 0;
    response_body_begin(&r->body, keep);
}

void response_parser_finish(ResponseParser *r) {
    free(r->head);
    free(r->body.at);
    r->head = NULL;
    r->body = (ResponseBody){0};
}

static bool is(Str s, const char *word) {
    return s.len == strlen(word) && strncasecmp(s.at, word, s.len) == 0;
}

static bool digit(char c) { return c >= '0' && c <= '9'; }

static bool token(char c) {
    return digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           (c != '\0' && strchr("!#$%&'*+-.^_`|~", c) != NULL);
}

static Err read_number(Str value, uint64_t *out) {
    uint64_t n = 0;
    if (value.len == 0 || value.len > 18)
        return err_set(ERR_PARSE, "a length header is not a number");
    for (size_t i = 0; i < value.len; i++) {
        if (!digit(value.at[i])) return err_set(ERR_PARSE, "a length header is not a number");
        n = n * 10 + (uint64_t)(value.at[i] - '0');
    }
    *out = n;
    return ERR_OK;
}

static Err read_length(Str value, Fields *f) {
    uint64_t n = 0;
    TRY(read_number(value, &n));
    if (f->has_length && f->length != n)
        return err_set(ERR_PARSE, "conflicting Content-Length headers");
    f->length = n;
    f->has_length = true;
    return ERR_OK;
}

static Err read_field(ResponseParser *r, Str name, Str value, Fields *f) {
    uint64_t n = 0;
    if (is(name, "content-length")) return read_length(value, f);
    if (is(name, "transfer-encoding")) {
        if (f->chunked || !is(value, "chunked"))
            return err_set(ERR_PARSE, "unsupported Transfer-Encoding: only 'chunked'");
        f->chunked = true;
    } else if (is(name, "connection")) {
        f->close = f->close || is(value, "close");
        f->keep_alive = f->keep_alive || is(value, "keep-alive");
    } else if (is(name, "inference-header-content-length")) {
        TRY(read_number(value, &n));
        r->json_len = n;
    }
    return ERR_OK;
}

static Err read_line(ResponseParser *r, Str line, Fields *f) {
    size_t n = 0;
    while (n < line.len && token(line.at[n])) n++;
    if (n == 0 || n == line.len || line.at[n] != ':')
        return err_set(ERR_PARSE, "malformed header: not 'name: value'");
    Str value = {line.at + n + 1, line.len - n - 1};
    while (value.len > 0 && (*value.at == ' ' || *value.at == '\t'))
        value = (Str){value.at + 1, value.len - 1};
    while (value.len > 0 && (value.at[value.len - 1] == ' ' || value.at[value.len - 1] == '\t'))
        value.len--;
    for (size_t i = 0; i < value.len; i++)
        if ((unsigned char)value.at[i] < ' ' && value.at[i] != '\t')
            return err_set(ERR_PARSE, "control character in a header");
    return read_field(r, (Str){line.at, n}, value, f);
}

static Err read_status(ResponseParser *r, Str line, Fields *f) {
    if (line.len < 12 || memcmp(line.at, "HTTP/1.", 7) != 0 || !digit(line.at[7]) ||
        line.at[8] != ' ' || !digit(line.at[9]) || !digit(line.at[10]) || !digit(line.at[11]) ||
        (line.len > 12 && line.at[12] != ' '))
        return err_set(ERR_PARSE, "not an HTTP response");
    r->status = (uint32_t)((line.at[9] - '0') * 100 + (line.at[10] - '0') * 10 + line.at[11] - '0');
    if (r->status < 100) return err_set(ERR_PARSE, "invalid status: below 100");
    if (line.at[7] == '0') f->close = true;
    return ERR_OK;
}

// Length of the body by RFC 9112; whatever parsers could read differently is an error.
static Err begin_body(ResponseParser *r, const Fields *f) {
    r->close = f->close && !f->keep_alive;
    if (f->has_length && f->chunked)
        return err_set(ERR_PARSE, "both Content-Length and Transfer-Encoding");
    if (r->status == 101) return err_set(ERR_PARSE, "unsolicited protocol switch (101)");
    if (r->status < 200) {
        r->step = RESPONSE_HEAD;
        r->head_len = 0;
    } else if (r->status == 204 || r->status == 304) {
        r->step = RESPONSE_DONE;
    } else if (f->chunked) {
        r->step = RESPONSE_SIZE;
        r->left = r->digits = 0;
    } else if (f->has_length) {
        if (f->length > r->body.most)
            return err_set(ERR_LIMIT, "response of more than %zu bytes", r->body.most);
        r->left = f->length;
        r->step = r->left > 0 ? RESPONSE_LENGTH : RESPONSE_DONE;
    } else {
        r->step = RESPONSE_CLOSE;
        r->close = true;
    }
    return ERR_OK;
}

static Err read_head(ResponseParser *r, Str head) {
    Fields      f = {0};
    const char *at = head.at, *end = head.at + head.len - 2;  // the last line is empty
    for (bool first = true; at < end; first = false) {
        const char *stop = memchr(at, '\r', (size_t)(end - at));
        if (stop == NULL || stop[1] != '\n') return err_set(ERR_PARSE, "malformed header: no CRLF");
        Str line = {at, (size_t)(stop - at)};
        TRY(first ? read_status(r, line, &f) : read_line(r, line, &f));
        at = stop + 2;
    }
    return begin_body(r, &f);
}

static Err head_room(ResponseParser *r, size_t more) {
    size_t need = r->head_len + more, room = FIRST_ROOM;
    if (r->head != NULL && need <= FIRST_ROOM) return ERR_OK;
    while (room < need) room *= 2;
    char *head = realloc(r->head, room);
    if (head == NULL) return err_set(ERR_LIMIT, "no memory for %zu bytes of headers", need);
    r->head = head;
    return ERR_OK;
}

// A head that arrives in pieces is joined; usually it arrives in one.
static Err take_head(ResponseParser *r, const char *bytes, size_t len, size_t *used) {
    size_t      most = r->head_most - r->head_len, had = r->head_len;
    size_t      n = len < most ? len : most;
    const char *end = had == 0 ? memmem(bytes, n, "\r\n\r\n", 4) : NULL;
    if (end != NULL) {
        *used = (size_t)(end - bytes) + 4;
        return read_head(r, (Str){bytes, *used});
    }
    TRY(head_room(r, n));
    memcpy(r->head + had, bytes, n);
    size_t from = had > 3 ? had - 3 : 0;
    end = memmem(r->head + from, had + n - from, "\r\n\r\n", 4);
    r->head_len = end != NULL ? (size_t)(end - r->head) + 4 : had + n;
    *used = r->head_len - had;
    if (end != NULL) return read_head(r, (Str){r->head, r->head_len});
    if (r->head_len == r->head_most)
        return err_set(ERR_LIMIT, "headers of more than %zu bytes", r->head_most);
    return ERR_OK;
}

static int hex(char c) {
    if (digit(c)) return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

static Err take_size(ResponseParser *r, char c) {
    int v = hex(c);
    if (v >= 0 && r->digits < SIZE_DIGITS) {
        r->left = r->left * 16 + (uint64_t)v;
        r->digits++;
        return ERR_OK;
    }
    if (r->digits == 0 || (c != '\r' && c != ';' && c != ' '))
        return err_set(ERR_PARSE, "invalid chunk size");
    r->step = c == '\r' ? RESPONSE_SIZE_END : RESPONSE_EXTRA;
    return ERR_OK;
}

// Chunk framing, byte by byte.
static Err take_mark(ResponseParser *r, char c) {
    switch (r->step) {
    case RESPONSE_SIZE: return take_size(r, c);
    case RESPONSE_EXTRA:
        if (c == '\n') return err_set(ERR_PARSE, "malformed chunk size line");
        if (c == '\r') r->step = RESPONSE_SIZE_END;
        return ERR_OK;
    case RESPONSE_SIZE_END:
        if (c != '\n') return err_set(ERR_PARSE, "malformed chunk size line");
        r->step = r->left > 0 ? RESPONSE_CHUNK : RESPONSE_TRAILER;
        r->head_len = r->digits = 0;
        return ERR_OK;
    case RESPONSE_CHUNK_CR:
        if (c != '\r') return err_set(ERR_PARSE, "chunk longer than its declared size");
        r->step = RESPONSE_CHUNK_LF;
        return ERR_OK;
    case RESPONSE_CHUNK_LF:
        if (c != '\n') return err_set(ERR_PARSE, "chunk longer than its declared size");
        r->step = RESPONSE_SIZE;
        r->left = r->digits = 0;
        return ERR_OK;
    default:  // trailers are dropped; digits counts the characters of a line
        if (++r->head_len > r->head_most)
            return err_set(ERR_LIMIT, "trailers of more than %zu bytes", r->head_most);
        if (c == '\n' && r->digits == 0) r->step = RESPONSE_DONE;
        r->digits = c == '\n' ? 0 : r->digits + (c != '\r');
        return ERR_OK;
    }
}

static Err take_bytes(ResponseParser *r, const char *bytes, size_t len, size_t *used) {
    size_t n = r->step != RESPONSE_CLOSE && r->left < len ? r->left : len;
    TRY(response_body_add(&r->body, bytes, n));
    *used = n;
    if (r->step == RESPONSE_CLOSE) return ERR_OK;
    r->left -= n;
    if (r->left == 0) r->step = r->step == RESPONSE_LENGTH ? RESPONSE_DONE : RESPONSE_CHUNK_CR;
    return ERR_OK;
}

Err response_parser_take(ResponseParser *r, const char *bytes, size_t len, size_t *used) {
    size_t at = 0;
    if (len > 0) r->begun = true;
    while (at < len && r->step != RESPONSE_DONE) {
        size_t n = 1;
        if (r->step == RESPONSE_HEAD)
            TRY(take_head(r, bytes + at, len - at, &n));
        else if (r->step == RESPONSE_LENGTH || r->step == RESPONSE_CHUNK ||
                 r->step == RESPONSE_CLOSE)
            TRY(take_bytes(r, bytes + at, len - at, &n));
        else
            TRY(take_mark(r, bytes[at]));
        at += n;
    }
    *used = at;
    return ERR_OK;
}

Err response_parser_end(ResponseParser *r) {
    if (r->step == RESPONSE_CLOSE) r->step = RESPONSE_DONE;
    if (r->step == RESPONSE_DONE) return ERR_OK;
    return err_set(ERR_PARSE, "the server closed the connection in the middle of a response");
}

void response_body_begin(ResponseBody *b, size_t keep) {
    b->kept = b->len = 0;
    b->keep = keep;
}

static Err grow(ResponseBody *b, size_t need) {
    size_t room = b->room * 2 > need ? b->room * 2 : need;
    if (room < 4096) room = 4096;
    unsigned char *at = realloc(b->at, room);
    if (at == NULL) return err_set(ERR_LIMIT, "no memory for a response of %zu bytes", need);
    b->at = at;
    b->room = room;
    return ERR_OK;
}

Err response_body_add(ResponseBody *b, const void *bytes, size_t len) {
    if (len > b->most - b->len)
        return err_set(ERR_LIMIT, "response of more than %zu bytes", b->most);
    size_t keep = b->keep - b->kept < len ? b->keep - b->kept : len;
    if (keep > b->room - b->kept) TRY(grow(b, b->kept + keep));
    if (keep > 0) memcpy(b->at + b->kept, bytes, keep);
    b->kept += keep;
    b->len += len;
    return ERR_OK;
}
