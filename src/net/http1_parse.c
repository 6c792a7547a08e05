#include "net/http1_parse.h"

#include <llhttp.h>
#include <string.h>
#include <strings.h>

bool http1_token(unsigned char c) {
    if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9')) return true;
    return c > ' ' && c < 127 && strchr("!#$%&'*+-.^_`|~", c);
}

static uint32_t http1_parse_error(uint32_t status, const char **why, const char *text) {
    *why = text;
    return status;
}

// A byte other than CR and LF.
static uint32_t http1_scan_byte(Http1Scan *s, unsigned char c, const char **why) {
    if (s->lines == 0) {
        if (c < ' ' || c >= 127)
            return http1_parse_error(400, why, "invalid character in request line");
        if (c == ' ') s->spaces++;
        return 0;
    }
    if (s->value) {
        if ((c < ' ' && c != '\t') || c == 127)
            return http1_parse_error(400, why, "control character in a header");
        return 0;
    }
    if (s->at == s->line && (c == ' ' || c == '\t'))
        return http1_parse_error(400, why, "obsolete header folding is not supported");
    if (c == ':' && s->at > s->line)
        s->value = true;
    else if (!http1_token(c))
        return http1_parse_error(400, why, "invalid character in a header name");
    return 0;
}

// LF at s->at. *ended: it ends the empty line.
static uint32_t http1_scan_line(Http1Scan *s, const char *at, bool *ended, const char **why) {
    if (s->at == s->line || at[s->at - 1] != '\r')
        return http1_parse_error(400, why, "line ends with LF instead of CRLF");
    bool empty = s->at - 1 == s->line;
    if (!empty && s->lines > 0 && !s->value)
        return http1_parse_error(400, why, "header without a colon");
    if (!empty && s->lines == 0 && s->spaces != 2)
        return http1_parse_error(400, why,
                                 "malformed request line: expected METHOD TARGET HTTP/1.1");
    *ended = empty && s->lines > 0;
    if (!empty && s->lines++ == 0) s->first = s->at;
    s->line = s->at + 1;
    s->value = false;
    return 0;
}

uint32_t http1_scan(Http1Scan *s, const char *at, size_t len, size_t *end, const char **why) {
    bool ended = false;
    *end = 0;
    for (; s->at < len && !ended; s->at++) {
        char     c = at[s->at];
        uint32_t status = 0;
        if (c == '\n')
            status = http1_scan_line(s, at, &ended, why);
        else if (s->at > s->line && at[s->at - 1] == '\r')
            return http1_parse_error(400, why, "CR without LF");
        else if (c != '\r')
            status = http1_scan_byte(s, (unsigned char)c, why);
        if (status) return status;
    }
    if (ended) *end = s->at;
    return 0;
}

// State of llhttp's callbacks while one head is parsed.
typedef struct Http1Read {
    Http1Head *head;
    Str        target;
    bool       many, complete;
} Http1Read;

static Http1Read *http1_of(llhttp_t *p) { return p->data; }

// llhttp may report a span in several pieces.
static bool http1_span(Str *s, const char *at, size_t len) {
    if (!s->at) *s = (Str){at, 0};
    if (s->at + s->len != at) return false;
    s->len += len;
    return true;
}

static int http1_on_url(llhttp_t *p, const char *at, size_t len) {
    return http1_span(&http1_of(p)->target, at, len) ? 0 : HPE_USER;
}

static int http1_on_method(llhttp_t *p, const char *at, size_t len) {
    return http1_span(&http1_of(p)->head->method, at, len) ? 0 : HPE_USER;
}

static int http1_on_field(llhttp_t *p, const char *at, size_t len) {
    Http1Read *r = http1_of(p);
    Http1Head *h = r->head;
    if (r->complete) return 0;
    if (h->n_headers == h->most_headers) r->many = true;
    if (r->many) return HPE_USER;
    return http1_span(&h->headers[h->n_headers].name, at, len) ? 0 : HPE_USER;
}

static int http1_on_value(llhttp_t *p, const char *at, size_t len) {
    Http1Head *h = http1_of(p)->head;
    return http1_span(&h->headers[h->n_headers].value, at, len) ? 0 : HPE_USER;
}

static int http1_on_value_complete(llhttp_t *p) {
    Http1Head *h = http1_of(p)->head;
    Str       *v = &h->headers[h->n_headers].value;
    if (!v->at) *v = (Str){"", 0};
    while (v->len > 0 && (v->at[v->len - 1] == ' ' || v->at[v->len - 1] == '\t')) v->len--;
    h->n_headers++;
    if (h->n_headers < h->most_headers) h->headers[h->n_headers] = (ExchangeHeader){0};
    return 0;
}

// llhttp parses no bodies: 1 tells it that there is none.
static int http1_on_head(llhttp_t *p) {
    Http1Read *r = http1_of(p);
    r->complete = true;
    r->head->keep_alive = llhttp_should_keep_alive(p);
    r->head->chunked = (p->flags & F_CHUNKED) != 0;
    bool given = (p->flags & F_CONTENT_LENGTH) != 0;
    r->head->length = given && p->content_length == UINT64_MAX ? UINT64_MAX - 1
                      : given                                  ? p->content_length
                                                               : UINT64_MAX;
    return 1;
}

static int http1_on_end(llhttp_t *p) {
    (void)p;
    return HPE_PAUSED;
}

static const llhttp_settings_t http1_settings = {
    .on_url = http1_on_url,
    .on_method = http1_on_method,
    .on_header_field = http1_on_field,
    .on_header_value = http1_on_value,
    .on_header_value_complete = http1_on_value_complete,
    .on_headers_complete = http1_on_head,
    .on_message_complete = http1_on_end,
};

// What llhttp found wrong with a head.
static const char *http1_fault(llhttp_errno_t e) {
    switch (e) {
    case HPE_INVALID_METHOD: return "unknown method";
    case HPE_UNEXPECTED_CONTENT_LENGTH:
        return "both Content-Length and Transfer-Encoding, or Content-Length twice: send one";
    case HPE_INVALID_CONTENT_LENGTH: return "Content-Length is not a number of bytes";
    default: return "malformed request head";
    }
}

static uint32_t http1_run(Http1Read *r, const char *at, size_t len, const char **why) {
    llhttp_t p;
    llhttp_init(&p, HTTP_REQUEST, &http1_settings);
    p.data = r;
    llhttp_errno_t e = llhttp_execute(&p, at, len);
    if (r->many) return http1_parse_error(431, why, "too many headers");
    if (e == HPE_INVALID_VERSION || e == HPE_PAUSED_H2_UPGRADE || p.http_major > 1)
        return http1_parse_error(505, why, "unsupported HTTP version: use HTTP/1.1");
    if (!r->complete || (e != HPE_OK && e != HPE_PAUSED && e != HPE_PAUSED_UPGRADE))
        return http1_parse_error(400, why, http1_fault(e));
    if (p.http_major != 1)
        return http1_parse_error(505, why, "unsupported HTTP version: use HTTP/1.1");
    r->head->old = p.http_minor == 0;
    return 0;
}

static void http1_lower(Str s) {
    char *at = (char *)(uintptr_t)s.at;  // the caller's writable buffer
    for (size_t i = 0; i < s.len; i++)
        if (at[i] >= 'A' && at[i] <= 'Z') at[i] = (char)(at[i] + 32);
}

static bool http1_is(Str s, const char *text) {
    return s.len == strlen(text) && memcmp(s.at, text, s.len) == 0;
}

static bool http1_says(Str value, const char *text) {
    return value.len == strlen(text) && strncasecmp(value.at, text, value.len) == 0;
}

// Absolute-form targets are accepted like origin-form ones. Only CONNECT has authority form.
static uint32_t http1_target(Http1Head *h, Str t, const char **why) {
    if (http1_is(h->method, "CONNECT"))
        return http1_parse_error(405, why, "CONNECT is not supported: this is not a proxy");
    if (t.len > 7 && strncasecmp(t.at, "http://", 7) == 0) {
        size_t host = 7;
        while (host < t.len && t.at[host] != '/' && t.at[host] != '?') host++;
        if (host == 7) return http1_parse_error(400, why, "absolute target without a host");
        t = (Str){t.at + host, t.len - host};
    } else if (t.len == 0 || (t.at[0] != '/' && !http1_is(t, "*"))) {
        return http1_parse_error(400, why, "request target must begin with /");
    }
    if (http1_is(t, "*") && !http1_is(h->method, "OPTIONS"))
        return http1_parse_error(400, why, "request target must begin with /");
    if (t.len > 0 && memchr(t.at, '#', t.len))
        return http1_parse_error(400, why, "request target contains #");
    const char *mark = t.len > 0 ? memchr(t.at, '?', t.len) : NULL;
    h->path = (Str){t.at, mark ? (size_t)(mark - t.at) : t.len};
    h->query = mark ? (Str){mark + 1, t.len - h->path.len - 1} : (Str){"", 0};
    if (h->path.len == 0) h->path = (Str){"/", 1};
    return 0;
}

static bool http1_host_ok(Str v) {
    for (size_t i = 0; i < v.len; i++) {
        unsigned char c = (unsigned char)v.at[i];
        if (c <= ' ' || c >= 127 || strchr("/?#@\\\"<>{}|^`", c)) return false;
    }
    return true;
}

typedef struct Http1Seen {
    uint32_t host, transfer, packing;
} Http1Seen;

static uint32_t http1_header(Http1Head *h, const ExchangeHeader *f, Http1Seen *seen,
                             const char **why) {
    if (http1_is(f->name, "host")) {
        seen->host++;
        if (!http1_host_ok(f->value)) return http1_parse_error(400, why, "invalid Host header");
    } else if (http1_is(f->name, "transfer-encoding")) {
        seen->transfer++;
        if (!http1_says(f->value, "chunked"))
            return http1_parse_error(400, why, "unsupported Transfer-Encoding: only chunked");
    } else if (http1_is(f->name, "content-encoding")) {
        seen->packing++;
        if (!inflate_kind(f->value, &h->packing))
            return http1_parse_error(415, why,
                                     "unsupported Content-Encoding: only gzip and deflate");
    } else if (http1_is(f->name, "expect") && !h->old) {
        h->expects = http1_says(f->value, "100-continue");
        if (!h->expects)
            return http1_parse_error(417, why, "unsupported Expect header: only 100-continue");
    }
    return 0;
}

static uint32_t http1_headers(Http1Head *h, const char **why) {
    Http1Seen seen = {0};
    for (uint32_t i = 0; i < h->n_headers; i++) {
        http1_lower(h->headers[i].name);
        uint32_t status = http1_header(h, &h->headers[i], &seen, why);
        if (status) return status;
    }
    if (seen.host > 1 || (seen.host == 0 && !h->old))
        return http1_parse_error(400, why, "exactly one Host header is required");
    if (seen.transfer > 1 || (seen.transfer && (h->old || !h->chunked)) ||
        (h->chunked && h->length != UINT64_MAX))
        return http1_parse_error(
            400, why, "both Content-Length and Transfer-Encoding, or conflicting lengths");
    if (seen.packing > 1) return http1_parse_error(415, why, "more than one Content-Encoding");
    return 0;
}

uint32_t http1_head_read(Http1Head *h, char *at, size_t len, const char **why) {
    Http1Read r = {.head = h};
    *h = (Http1Head){.headers = h->headers, .most_headers = h->most_headers};
    if (h->most_headers > 0) h->headers[0] = (ExchangeHeader){0};
    uint32_t status = http1_run(&r, at, len, why);
    if (!status) status = http1_target(h, r.target, why);
    return status ? status : http1_headers(h, why);
}

enum { HTTP1_DIGITS = 15, HTTP1_EXTRA = 16384 };

static int http1_hex(unsigned char b) {
    if (b >= '0' && b <= '9') return b - '0';
    if (b >= 'a' && b <= 'f') return b - 'a' + 10;
    if (b >= 'A' && b <= 'F') return b - 'A' + 10;
    return -1;
}

static bool http1_plain(unsigned char b) { return (b >= ' ' && b != 127) || b == '\t'; }

static bool http1_size(Http1Chunks *c, unsigned char b) {
    int digit = http1_hex(b);
    if (digit >= 0) {
        c->left = c->left * 16 + (unsigned)digit;
        return ++c->digits <= HTTP1_DIGITS;
    }
    c->state = b == '\r' ? HTTP1_SIZE_LF : HTTP1_EXTENSION;
    c->column = 0;
    return c->digits > 0 && (b == '\r' || b == ';');
}

static bool http1_extension(Http1Chunks *c, unsigned char b) {
    bool value = c->state == HTTP1_EXTENSION_VALUE;
    if (http1_token(b)) {
        c->column++;
        return true;
    }
    if (c->column == 0) return false;
    c->column = 0;
    if (b == '\r')
        c->state = HTTP1_SIZE_LF;
    else
        c->state = b == '=' ? HTTP1_EXTENSION_VALUE : HTTP1_EXTENSION;
    return b == '\r' || b == ';' || (b == '=' && !value);
}

// Trailers are discarded, but must be well-formed.
static bool http1_trailer(Http1Chunks *c, unsigned char b) {
    if (b == '\r') {
        c->state = c->column == 0 ? HTTP1_LAST_LF : HTTP1_TRAILER_LF;
        return c->column == 0 || c->value;
    }
    if (c->value) return http1_plain(b);
    c->value = b == ':' && c->column > 0;
    c->column++;
    return c->value || http1_token(b);
}

static bool http1_go(Http1Chunks *c, bool fits, Http1ChunkState next) {
    c->state = next;
    return fits;
}

// A byte of framing.
static bool http1_chunk_byte(Http1Chunks *c, unsigned char b) {
    switch (c->state) {
    case HTTP1_SIZE: return http1_size(c, b);
    case HTTP1_EXTENSION:
    case HTTP1_EXTENSION_VALUE: return http1_extension(c, b);
    case HTTP1_SIZE_LF:
        c->column = 0;
        c->value = false;
        return http1_go(c, b == '\n', c->left ? HTTP1_DATA : HTTP1_TRAILER);
    case HTTP1_DATA_CR: return http1_go(c, b == '\r', HTTP1_DATA_LF);
    case HTTP1_DATA_LF: c->digits = 0; return http1_go(c, b == '\n', HTTP1_SIZE);
    case HTTP1_TRAILER: return http1_trailer(c, b);
    case HTTP1_TRAILER_LF: c->column = 0; return http1_go(c, b == '\n', HTTP1_TRAILER);
    case HTTP1_LAST_LF: return http1_go(c, b == '\n', HTTP1_CHUNKS_END);
    case HTTP1_DATA:
    case HTTP1_CHUNKS_END: break;
    }
    return false;
}

bool http1_chunks(Http1Chunks *c, const char *at, size_t len, size_t *used, Str *data) {
    size_t i = 0;
    *data = (Str){0};
    while (i < len && c->state != HTTP1_CHUNKS_END && c->state != HTTP1_DATA)
        if (!http1_chunk_byte(c, (unsigned char)at[i++]) || ++c->extra > HTTP1_EXTRA) return false;
    if (i < len && c->state == HTTP1_DATA) {
        size_t n = len - i < c->left ? len - i : (size_t)c->left;
        *data = (Str){at + i, n};
        i += n;
        c->left -= n;
        c->extra = 0;
        if (c->left == 0) c->state = HTTP1_DATA_CR;
    }
    *used = i;
    return true;
}
