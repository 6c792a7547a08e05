#include "serve/rest/json_reader.h"

#include <string.h>

#include "base/utf8.h"

static bool blank(unsigned char c) { return c == ' ' || c == '\n' || c == '\r' || c == '\t'; }

Err json_reader_fail(const JsonReader *s, const char *what) {
    return err_set(ERR_PARSE, "the JSON is broken at byte %zu: %s", (size_t)(s->at - s->text),
                   what);
}

Err json_reader_begin(JsonReader *s, unsigned char *text, size_t len) {
    *s = (JsonReader){.text = text, .at = text, .end = text + len};
    while (s->end > s->at && blank(s->end[-1])) s->end--;
    if (s->at == s->end) return err_set(ERR_PARSE, "there is no JSON where a request should be");
    if (json_reader_peek(s) != '{') return json_reader_fail(s, "a request is an object");
    if (s->end[-1] != '}')
        return err_set(ERR_PARSE, "the JSON is cut off: it does not end with a brace");
    return ERR_OK;
}

Err json_reader_finish(JsonReader *s) {
    return json_reader_peek(s) == 0 && s->at == s->end
               ? ERR_OK
               : json_reader_fail(s, "something follows it");
}

unsigned char json_reader_peek(JsonReader *s) {
    while (s->at < s->end && blank(*s->at)) s->at++;
    return s->at < s->end ? *s->at : 0;
}

Err json_reader_open(JsonReader *s, char bracket) {
    if (json_reader_peek(s) != (unsigned char)bracket)
        return json_reader_fail(s,
                                bracket == '{' ? "an object is expected" : "an array is expected");
    if (s->depth == JSON_READER_DEPTH) return json_reader_fail(s, "it is nested too deep");
    s->depth++;
    s->at++;
    return ERR_OK;
}

static Err another(JsonReader *s, bool first, unsigned char close, bool *more) {
    unsigned char c = json_reader_peek(s);
    *more = c != close;
    if (c == close) {
        s->at++;
        s->depth--;
        return ERR_OK;
    }
    if (first) return ERR_OK;
    if (c != ',') return json_reader_fail(s, "a comma or the end of the list is expected");
    s->at++;
    return ERR_OK;
}

Err json_reader_element(JsonReader *s, bool first, bool *more) {
    return another(s, first, ']', more);
}

Err json_reader_member(JsonReader *s, bool first, Str *key, bool *more) {
    TRY(another(s, first, '}', more));
    if (!*more) return ERR_OK;
    TRY(json_reader_string(s, key));
    if (json_reader_peek(s) != ':') return json_reader_fail(s, "a colon is expected");
    s->at++;
    return ERR_OK;
}

bool json_reader_literal(JsonReader *s, const char *word) {
    size_t len = strlen(word);
    if ((size_t)(s->end - s->at) <= len || memcmp(s->at, word, len) != 0) return false;
    s->at += len;
    return true;
}

// Bytes up to the next that a string cannot simply take: a quote, a backslash, a control
// character, the first of several in UTF-8.
static unsigned char *plain(unsigned char *p, const unsigned char *end) {
    const uint64_t ones = UINT64_C(0x0101010101010101), tops = ones << 7;
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

// Behind "\u"; 0: it is no character.
static size_t point(const unsigned char *p, const unsigned char *end, uint32_t *out) {
    uint32_t low;
    if (!hex4(p, end, out)) return 0;
    if (*out < 0xD800 || *out > 0xDFFF) return 4;
    if (*out > 0xDBFF || end - p < 10 || p[4] != '\\' || p[5] != 'u' || !hex4(p + 6, end, &low) ||
        low < 0xDC00 || low > 0xDFFF)
        return 0;
    *out = 0x10000 + ((*out - 0xD800) << 10) + (low - 0xDC00);
    return 10;
}

// At a backslash; moves on and writes at most as many bytes as it read.
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
    size_t   taken = c == 'u' ? point(s->at + 2, s->end, &code) : 0;
    if (taken == 0) return false;
    *len = utf8_put(code, out);
    s->at += 2 + taken;
    return true;
}

// One thing that is not plain, written to *to unless it is NULL. done: it was the closing quote.
static Err odd(JsonReader *s, unsigned char **to, bool *done) {
    char        bytes[4];
    size_t      len = 1;
    const char *from = (const char *)s->at, *next = from;
    if (s->at == s->end) return json_reader_fail(s, "a string does not end");
    if (*s->at == '"') {
        *done = true;
        s->at++;
        return ERR_OK;
    }
    if (*s->at == '\\') {
        if (!escape(s, bytes, &len))
            return json_reader_fail(s, "a string has an escape that is none");
        from = bytes;
    } else {
        if (*s->at < 0x20) return json_reader_fail(s, "a string has a control character");
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

// At a quote. *to: where the text goes, and its end afterwards; NULL: nowhere.
static Err string(JsonReader *s, unsigned char **to) {
    bool done = false;
    s->at++;
    while (!done) {
        unsigned char *p = plain(s->at, s->end);
        size_t         len = (size_t)(p - s->at);
        if (*to != NULL) {
            if (*to != s->at) memmove(*to, s->at, len);
            *to += len;
        }
        s->at = p;
        TRY(odd(s, to, &done));
    }
    return ERR_OK;
}

Err json_reader_string(JsonReader *s, Str *out) {
    if (json_reader_peek(s) != '"') return json_reader_fail(s, "a string is expected");
    unsigned char *begin = s->at + 1, *to = begin;
    TRY(string(s, &to));
    *out = (Str){(const char *)begin, (size_t)(to - begin)};
    return ERR_OK;
}

static Err skip_text(JsonReader *s) {
    unsigned char *nowhere = NULL;
    if (json_reader_peek(s) != '"') return json_reader_fail(s, "a string is expected");
    return string(s, &nowhere);
}

static Err skip_leaf(JsonReader *s, unsigned char c) {
    if (c == '"') return skip_text(s);
    if (json_reader_literal(s, "true") || json_reader_literal(s, "false") ||
        json_reader_literal(s, "null") || json_reader_skip_number(s))
        return ERR_OK;
    return json_reader_fail(s, "a value is expected");
}

static Err skip_key(JsonReader *s, bool first, bool *more) {
    TRY(another(s, first, '}', more));
    if (!*more) return ERR_OK;
    TRY(skip_text(s));
    if (json_reader_peek(s) != ':') return json_reader_fail(s, "a colon is expected");
    s->at++;
    return ERR_OK;
}

Err json_reader_skip(JsonReader *s, size_t most) {
    const unsigned char *from = s->at;
    const uint32_t       outside = s->depth;
    uint64_t             objects = 0;  // a bit for each bracket that is open: whether it is a brace
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
            return err_set(ERR_LIMIT, "too much of the request means nothing here");
        if (s->depth == outside) return ERR_OK;
    }
}
