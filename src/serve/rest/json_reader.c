#include "serve/rest/json_reader.h"

#include <string.h>

#include "base/coroutine.h"
#include "base/utf8.h"

enum { PEEK_NS = 4, PLAIN_BYTES = 65536, PLAIN_NS = 20000 };

static bool is_space(unsigned char c) { return c == ' ' || c == '\n' || c == '\r' || c == '\t'; }

Err json_reader_fail(const JsonReader *s, const char *what) {
    return err_set(ERR_PARSE, "invalid JSON at byte %zu: %s", (size_t)(s->at - s->text), what);
}

Err json_reader_begin(JsonReader *s, unsigned char *text, size_t len) {
    *s = (JsonReader){.text = text, .at = text, .end = text + len};
    while (s->end > s->at && is_space(s->end[-1])) s->end--;
    if (s->at == s->end) return err_set(ERR_PARSE, "empty request: expected a JSON object");
    if (json_reader_peek(s) != '{') return json_reader_fail(s, "a request must be an object");
    if (s->end[-1] != '}')
        return err_set(ERR_PARSE,
                       "the request does not end with a closing brace: its JSON is truncated, or "
                       "other data follows it");
    return ERR_OK;
}

Err json_reader_finish(JsonReader *s) {
    return json_reader_peek(s) == 0 && s->at == s->end
               ? ERR_OK
               : json_reader_fail(s, "unexpected data after the request");
}

unsigned char json_reader_peek(JsonReader *s) {
    coroutine_point(PEEK_NS);
    while (s->at < s->end && is_space(*s->at)) {
        s->at++;
        coroutine_point(1);
    }
    return s->at < s->end ? *s->at : 0;
}

Err json_reader_open(JsonReader *s, char bracket) {
    if (json_reader_peek(s) != (unsigned char)bracket)
        return json_reader_fail(s, bracket == '{' ? "expected an object" : "expected an array");
    if (s->depth == JSON_READER_DEPTH) return json_reader_fail(s, "nesting too deep");
    s->depth++;
    s->at++;
    return ERR_OK;
}

static Err next_item(JsonReader *s, bool first, unsigned char close, bool *more) {
    unsigned char c = json_reader_peek(s);
    *more = c != close;
    if (c == close) {
        s->at++;
        s->depth--;
        return ERR_OK;
    }
    if (first) return ERR_OK;
    if (c != ',') return json_reader_fail(s, "expected a comma or the end of the list");
    s->at++;
    return ERR_OK;
}

Err json_reader_element(JsonReader *s, bool first, bool *more) {
    return next_item(s, first, ']', more);
}

Err json_reader_member(JsonReader *s, bool first, Str *key, bool *more) {
    TRY(next_item(s, first, '}', more));
    if (!*more) return ERR_OK;
    TRY(json_reader_string(s, key));
    if (json_reader_peek(s) != ':') return json_reader_fail(s, "expected a colon");
    s->at++;
    return ERR_OK;
}

bool json_reader_literal(JsonReader *s, const char *word) {
    size_t len = strlen(word);
    if ((size_t)(s->end - s->at) <= len || memcmp(s->at, word, len) != 0) return false;
    s->at += len;
    return true;
}

// End of the bytes that need no decoding: up to a quote, backslash, control character or non-ASCII.
static unsigned char *skip_plain(unsigned char *p, const unsigned char *text_end) {
    const unsigned char *end = text_end - p > PLAIN_BYTES ? p + PLAIN_BYTES : text_end;
    const uint64_t       ones = UINT64_C(0x0101010101010101), tops = ones << 7;
    for (; end - p >= 8; p += 8) {
        uint64_t v;
        memcpy(&v, p, sizeof v);
        uint64_t quote = v ^ ones * '"', slash = v ^ ones * '\\';
        uint64_t hit =
            ((quote - ones) & ~quote) | ((slash - ones) & ~slash) | (v - ones * 0x20) | v;
        if ((hit & tops) != 0) break;
    }
    while (p < end && *p != '"' && *p != '\\' && *p >= 0x20 && *p < 0x80) p++;
    return p;
}

static bool hex4(const unsigned char *p, const unsigned char *end, uint32_t *out) {
    uint32_t v = 0;
    if (end - p < 4) return false;
    for (int i = 0; i < 4; i++) {
        uint32_t c = p[i], low = c | 0x20;
        if (c >= '0' && c <= '9')
            v = v << 4 | (c - '0');
        else if (low >= 'a' && low <= 'f')
            v = v << 4 | (low - 'a' + 10);
        else
            return false;
    }
    *out = v;
    return true;
}

// Decodes the hex digits after "\u", surrogate pairs too; returns the bytes consumed, 0: invalid.
static size_t code_point(const unsigned char *p, const unsigned char *end, uint32_t *out) {
    uint32_t low;
    if (!hex4(p, end, out)) return 0;
    if (*out < 0xD800 || *out > 0xDFFF) return 4;
    if (*out > 0xDBFF || end - p < 10 || p[4] != '\\' || p[5] != 'u' || !hex4(p + 6, end, &low) ||
        low < 0xDC00 || low > 0xDFFF)
        return 0;
    *out = 0x10000 + ((*out - 0xD800) << 10) + (low - 0xDC00);
    return 10;
}

// Decodes an escape; writes no more bytes than it reads.
static bool escape(JsonReader *s, char out[4], size_t *len) {
    static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
    if (s->end - s->at < 2) return false;
    unsigned char c = s->at[1];
    const char   *known = c != 0 ? strchr(from, c) : NULL;
    if (known != NULL) {
        out[0] = to[known - from];
        *len = 1;
        s->at += 2;
        return true;
    }
    uint32_t code = 0;
    size_t   taken = c == 'u' ? code_point(s->at + 2, s->end, &code) : 0;
    if (taken == 0) return false;
    *len = utf8_put(code, out);
    s->at += 2 + taken;
    return true;
}

// Decodes one escape or non-ASCII character to *to, unless NULL. *done: it was the closing quote.
static Err decode_special(JsonReader *s, unsigned char **to, bool *done) {
    char        bytes[4];
    size_t      len = 1;
    const char *from = (const char *)s->at, *next = from;
    if (s->at == s->end) return json_reader_fail(s, "unterminated string");
    if (*s->at == '"') {
        *done = true;
        s->at++;
        return ERR_OK;
    }
    if (*s->at == '\\') {
        if (!escape(s, bytes, &len)) return json_reader_fail(s, "invalid escape in a string");
        from = bytes;
    } else {
        if (*s->at < 0x20) return json_reader_fail(s, "control character in a string");
        if (utf8_next(&next, (const char *)s->end) == UTF8_BAD)
            return json_reader_fail(s, "a string is not UTF-8");
        len = (size_t)(next - from);
        s->at += len;
    }
    if (*to != NULL) {
        memmove(*to, from, len);
        *to += len;
    }
    return ERR_OK;
}

// Decodes a string from its opening quote on. *to: destination, then its end; NULL: skip the
// string.
static Err decode_string(JsonReader *s, unsigned char **to) {
    bool done = false;
    s->at++;
    while (!done) {
        unsigned char *p = skip_plain(s->at, s->end);
        size_t         len = (size_t)(p - s->at);
        coroutine_point(PEEK_NS + (uint32_t)(len / (PLAIN_BYTES / PLAIN_NS)));
        if (*to != NULL) {
            if (*to != s->at) memmove(*to, s->at, len);
            *to += len;
        }
        s->at = p;
        if (len < PLAIN_BYTES) TRY(decode_special(s, to, &done));
    }
    return ERR_OK;
}

Err json_reader_string(JsonReader *s, Str *out) {
    if (json_reader_peek(s) != '"') return json_reader_fail(s, "expected a string");
    unsigned char *begin = s->at + 1, *to = begin;
    TRY(decode_string(s, &to));
    *out = (Str){(const char *)begin, (size_t)(to - begin)};
    return ERR_OK;
}

static Err skip_text(JsonReader *s) {
    unsigned char *nowhere = NULL;
    if (json_reader_peek(s) != '"') return json_reader_fail(s, "expected a string");
    return decode_string(s, &nowhere);
}

static Err skip_leaf(JsonReader *s, unsigned char c) {
    if (c == '"') return skip_text(s);
    if (json_reader_literal(s, "true") || json_reader_literal(s, "false") ||
        json_reader_literal(s, "null") || json_reader_skip_number(s))
        return ERR_OK;
    return json_reader_fail(s, "expected a value");
}

static Err skip_key(JsonReader *s, bool first, bool *more) {
    TRY(next_item(s, first, '}', more));
    if (!*more) return ERR_OK;
    TRY(skip_text(s));
    if (json_reader_peek(s) != ':') return json_reader_fail(s, "expected a colon");
    s->at++;
    return ERR_OK;
}

Err json_reader_skip(JsonReader *s, size_t most) {
    const unsigned char *from = s->at;
    const uint32_t       outside = s->depth;
    uint64_t             objects = 0;  // one bit per open bracket: 1 for an object
    for (;;) {
        unsigned char c = json_reader_peek(s);
        bool          first = c == '{' || c == '[', more = false;
        if (first) {
            TRY(json_reader_open(s, (char)c));
            objects = objects << 1 | (c == '{');
        } else {
            TRY(skip_leaf(s, c));
        }
        for (; s->depth != outside; objects >>= 1, first = false) {
            TRY((objects & 1) != 0 ? skip_key(s, first, &more)
                                   : json_reader_element(s, first, &more));
            if (more) break;
        }
        if ((size_t)(s->at - from) > most)
            return err_set(ERR_LIMIT, "too many bytes in unknown members");
        if (s->depth == outside) return ERR_OK;
    }
}
