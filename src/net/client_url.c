#include <stdio.h>
#include <string.h>

#include "net/client.h"

typedef struct Scheme {
    const char    *name, *port;
    ClientProtocol protocol;
} Scheme;

static const Scheme schemes[] = {{"http", "8000", CLIENT_HTTP1}, {"grpc", "8001", CLIENT_HTTP2}};

static Err find_scheme(const char *text, const Scheme **out, const char **rest) {
    const char *mark = strstr(text, "://");
    *out = &schemes[0];
    *rest = mark == NULL ? text : mark + 3;
    if (mark == NULL) return ERR_OK;
    for (size_t i = 0; i < sizeof schemes / sizeof *schemes; i++) {
        *out = &schemes[i];
        if (strlen(schemes[i].name) == (size_t)(mark - text) &&
            strncmp(text, schemes[i].name, (size_t)(mark - text)) == 0)
            return ERR_OK;
    }
    return err_set(ERR_ARG, "'%s': there are http://HOST:PORT and grpc://HOST:PORT", text);
}

static Err cut_host(const char *text, Str authority, Str *host, Str *port) {
    const char *end = authority.at + authority.len;
    const char *stop = memchr(authority.at, ':', authority.len);
    *host = authority;
    *port = (Str){0};
    if (authority.len > 0 && *authority.at == '[') {
        const char *close = memchr(authority.at, ']', authority.len);
        if (close == NULL || (close + 1 < end && close[1] != ':'))
            return err_set(ERR_ARG, "'%s': an address in brackets does not end", text);
        *host = (Str){authority.at + 1, (size_t)(close - authority.at) - 1};
        stop = close + 1 < end ? close + 1 : NULL;
    } else if (stop != NULL) {
        host->len = (size_t)(stop - authority.at);
    }
    if (stop != NULL) *port = (Str){stop + 1, (size_t)(end - stop) - 1};
    if (host->len == 0 || (stop != NULL && (port->len == 0 || port->len > 5)))
        return err_set(ERR_ARG, "'%s' names no host and port", text);
    for (size_t i = 0; i < port->len; i++)
        if (port->at[i] < '0' || port->at[i] > '9')
            return err_set(ERR_ARG, "'%s': the port is no number", text);
    return ERR_OK;
}

Err client_url(const char *text, Arena *a, ClientUrl *out) {
    const Scheme *scheme = NULL;
    const char   *rest = NULL;
    Str           host, port;
    if (strlen(text) > 2048) return err_set(ERR_ARG, "the URL is too long");
    TRY(find_scheme(text, &scheme, &rest));
    size_t len = strcspn(rest, "/"), path = strlen(rest);
    for (size_t i = 0; i < path; i++)
        if ((unsigned char)rest[i] <= ' ' || strchr("?#@\\", rest[i]) != NULL)
            return err_set(ERR_ARG, "'%s': only a host, a port and a path are understood", text);
    TRY(cut_host(text, (Str){rest, len}, &host, &port));
    while (path > len && rest[path - 1] == '/') path--;
    out->host = arena_printf(a, "%.*s", (int)host.len, host.at);
    out->port = port.at == NULL ? scheme->port : arena_printf(a, "%.*s", (int)port.len, port.at);
    out->path = arena_printf(a, "%.*s", (int)(path - len), rest + len);
    out->protocol = scheme->protocol;
    return ERR_OK;
}
