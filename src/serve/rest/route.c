#include "serve/rest/route.h"

#include <string.h>

#include "serve/config/config.h"

typedef struct Row {
    RouteKind   kind;
    const char *method, *path;
    uint32_t    where;
} Row;

static const Row rows[] = {
#define X(id, method, path, where) {ROUTE_##id, method, path, where},
#include "serve/rest/route.def"
#undef X
};

static int hex(char c) {
    if (c >= '0' && c <= '9') return c - '0';
    c = (char)(c | 0x20);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

// Percent-decodes once; false: malformed, too long, or with a NUL byte.
static bool decode(Str s, char out[ROUTE_NAME]) {
    size_t n = 0;
    for (size_t i = 0; i < s.len; i++) {
        char c = s.at[i];
        if (c == '%') {
            if (i + 2 >= s.len) return false;
            int hi = hex(s.at[i + 1]), lo = hex(s.at[i + 2]);
            if (hi < 0 || lo < 0) return false;
            c = (char)(hi * 16 + lo);
            i += 2;
        }
        if (c == 0 || n == ROUTE_NAME - 1) return false;
        out[n++] = c;
    }
    out[n] = 0;
    return true;
}

static Str cut(Str *rest) {  // takes the next path segment
    const char *slash = rest->len > 0 ? memchr(rest->at, '/', rest->len) : NULL;
    Str         part = {rest->at, slash != NULL ? (size_t)(slash - rest->at) : rest->len};
    size_t      gone = part.len + (slash != NULL);
    *rest = (Str){rest->at + gone, rest->len - gone};
    return part;
}

typedef enum RouteMatch { MATCH_NO, MATCH_BAD, MATCH_YES } RouteMatch;

static RouteMatch match_name(Str part, char kind, Route *out) {
    char *to = kind == 'v' ? out->version : out->name;
    if (!decode(part, to)) return MATCH_BAD;
    return kind == 'i' ? (to[0] != 0 ? MATCH_YES : MATCH_BAD)
                       : (config_valid_name(to, strlen(to)) ? MATCH_YES : MATCH_BAD);
}

// Literal segments are compared undecoded; only names are decoded.
static RouteMatch match(const char *pattern, Str path, Route *out) {
    Str        want = {pattern, strlen(pattern)};
    RouteMatch best = MATCH_YES;
    out->name[0] = out->version[0] = 0;
    while (want.len > 0) {
        if (path.at == NULL) return MATCH_NO;
        bool more = memchr(want.at, '/', want.len) != NULL;
        bool is_more = path.len > 0 && memchr(path.at, '/', path.len) != NULL;
        if (more != is_more) return MATCH_NO;
        Str a = cut(&want), b = cut(&path);
        if (a.at[0] == '{') {
            if (match_name(b, a.at[1], out) == MATCH_BAD) best = MATCH_BAD;
        } else if (a.len != b.len || memcmp(a.at, b.at, a.len) != 0) {
            return MATCH_NO;
        }
    }
    return best;
}

static bool method_is(Str method, const char *name) {
    return method.len == strlen(name) && memcmp(method.at, name, method.len) == 0;
}

static bool better(RouteKind a, RouteKind b) { return a > b || b == ROUTE_NONE; }

void route_find(Str method, Str path, uint32_t where, Route *out) {
    Route best = {0};
    if (path.len == 4 && memcmp(path.at, "/v2/", 4) == 0) path.len = 3;
    if (path.len < 2 || path.at[0] != '/') {
        *out = best;
        return;
    }
    path = (Str){path.at + 1, path.len - 1};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const Row *r = &rows[i];
        Route      found = {0};
        RouteMatch m = match(r->path, path, &found);
        if (m == MATCH_NO) continue;
        bool fits = method_is(method, r->method);
        found.kind = (r->where & where) == 0 ? ROUTE_WRONG_LISTENER
                     : m == MATCH_BAD        ? ROUTE_BAD_NAME
                     : fits                  ? r->kind
                                             : ROUTE_WRONG_METHOD;
        found.allow = r->method;
        if (better(found.kind, best.kind)) best = found;
        if (best.kind > ROUTE_BAD_NAME) break;
    }
    *out = best;
}

int64_t route_query(Str query, const char *key, int64_t otherwise) {
    size_t n = strlen(key);
    while (query.len > 0) {
        const char *amp = memchr(query.at, '&', query.len);
        size_t      len = amp != NULL ? (size_t)(amp - query.at) : query.len;
        if (len > n && memcmp(query.at, key, n) == 0 && query.at[n] == '=') {
            int64_t v = 0;
            for (size_t i = n + 1; i < len; i++) {
                if (query.at[i] < '0' || query.at[i] > '9' || v > 100000000) return -1;
                v = v * 10 + (query.at[i] - '0');
            }
            return len > n + 1 ? v : -1;
        }
        len += amp != NULL;
        query = (Str){query.at + len, query.len - len};
    }
    return otherwise;
}
