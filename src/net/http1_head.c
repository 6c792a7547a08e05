#include "net/http1_head.h"

#include <llhttp.h>
#include <string.h>
#include <strings.h>

bool http1_token(unsigned char c) {
    if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9')) return true;
    return c > ' ' && c < 127 && strchr("!#$%&'*+-.^_`|~", c);
}

static uint32_t http1_no(uint32_t status, const char **why, const char *text) {
    *why = text;
    return status;
}

// A byte that is no CR or LF.
static uint32_t http1_scan_byte(Http1Scan *s, unsigned char c, const char **why) {
    if (s->lines == 0) {
        if (c < ' ' || c >= 127) return http1_no(400, why, "a strange byte in the request line");
        if (c == ' ') s->spaces++;
        return 0;
    }
    if (s->value) {
        if ((c < ' ' && c != '\t') || c == 127)
            return http1_no(400, why, "a control character in a header");
        return 0;
    }
    if (s->at == s->line && (c == ' ' || c == '\t'))
        return http1_no(400, why, "a header that goes on in a second line");
    if (c == ':' && s->at > s->line)
        s->value = true;
    else if (!http1_token(c))
        return http1_no(400, why, "a header's name has a strange byte");
    return 0;
}

// The LF at s->at. *ended: it was the empty line.
static uint32_t http1_scan_line(Http1Scan *s, const char *at, bool *ended, const char **why) {
    if (s->at == s->line || at[s->at - 1] != '\r')
        return http1_no(400, why, "a line that ends without CR");
    bool empty = s->at - 1 == s->line;
    if (!empty && s->lines > 0 && !s->value) return http1_no(400, why, "a header without a colon");
    if (!empty && s->lines == 0 && s->spaces != 2)
        return http1_no(400, why, "the request line has to be a method, a target and HTTP/1.1");
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
            return http1_no(400, why, "CR without LF");
        else if (c != '\r')
            status = http1_scan_byte(s, (unsigned char)c, why);
        if (status) return status;
    }
    if (ended) *end = s->at;
    return 0;
}

// What llhttp tells, while it reads one head.
typedef struct Http1Read {
    Http1Head *head;
    Str        target;
    bool       many, complete;
} Http1Read;

static Http1Read *http1_of(llhttp_t *p) { return p->data; }

// A span may come in pieces, one after the other.
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

// The body is not llhttp's: 1 says that there is none.
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

static uint32_t http1_run(Http1Read *r, const char *at, size_t len, const char **why) {
    llhttp_t p;
    llhttp_init(&p, HTTP_REQUEST, &http1_settings);
    p.data = r;
    llhttp_errno_t e = llhttp_execute(&p, at, len);
    if (r->many) return http1_no(431, why, "too many headers");
    if (e == HPE_INVALID_VERSION || e == HPE_PAUSED_H2_UPGRADE || p.http_major > 1)
        return http1_no(505, why, "HTTP/1.1 is spoken here");
    if (e == HPE_INVALID_METHOD) return http1_no(400, why, "no such method");
    if (!r->complete || (e != HPE_OK && e != HPE_PAUSED && e != HPE_PAUSED_UPGRADE))
        return http1_no(400, why, "the head of the request is malformed");
    if (p.http_major != 1) return http1_no(505, why, "HTTP/1.1 is spoken here");
    r->head->old = p.http_minor == 0;
    return 0;
}

static void http1_lower(Str s) {
    char *at = (char *)(uintptr_t)s.at;  // the caller's buffer, which is writable
    for (size_t i = 0; i < s.len; i++)
        if (at[i] >= 'A' && at[i] <= 'Z') at[i] = (char)(at[i] + 32);
}

static bool http1_is(Str s, const char *text) {
    return s.len == strlen(text) && memcmp(s.at, text, s.len) == 0;
}

static bool http1_says(Str value, const char *text) {
    return value.len == strlen(text) && strncasecmp(value.at, text, value.len) == 0;
}

// What came with http://host is as good as what came without. Only CONNECT has a host alone.
static uint32_t http1_target(Http1Head *h, Str t, const char **why) {
    if (http1_is(h->method, "CONNECT"))
        return http1_no(405, why, "this is a server and no proxy: CONNECT is not for it");
    if (t.len > 7 && strncasecmp(t.at, "http://", 7) == 0) {
        size_t host = 7;
        while (host < t.len && t.at[host] != '/' && t.at[host] != '?') host++;
        if (host == 7) return http1_no(400, why, "a target without a host");
        t = (Str){t.at + host, t.len - host};
    } else if (t.len == 0 || (t.at[0] != '/' && !http1_is(t, "*"))) {
        return http1_no(400, why, "the target has to begin with /");
    }
    if (http1_is(t, "*") && !http1_is(h->method, "OPTIONS"))
        return http1_no(400, why, "the target has to begin with /");
    if (t.len > 0 && memchr(t.at, '#', t.len)) return http1_no(400, why, "a target with a #");
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
        if (!http1_host_ok(f->value)) return http1_no(400, why, "a strange host");
    } else if (http1_is(f->name, "transfer-encoding")) {
        seen->transfer++;
        if (!http1_says(f->value, "chunked"))
            return http1_no(400, why, "a transfer encoding other than chunked");
    } else if (http1_is(f->name, "content-encoding")) {
        seen->packing++;
        if (!inflate_kind(f->value, &h->packing))
            return http1_no(415, why, "a content encoding other than gzip and deflate");
    } else if (http1_is(f->name, "expect") && !h->old) {
        h->expects = http1_says(f->value, "100-continue");
        if (!h->expects) return http1_no(417, why, "nothing but 100-continue can be expected");
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
        return http1_no(400, why, "exactly one Host header is wanted");
    if (seen.transfer > 1 || (seen.transfer && (h->old || !h->chunked)) ||
        (h->chunked && h->length != UINT64_MAX))
        return http1_no(400, why, "the length of the body is given in two ways");
    if (seen.packing > 1) return http1_no(415, why, "one content encoding at most");
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
