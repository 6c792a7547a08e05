#include "cli/http_fetch.h"

#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/utf8.h"
#include "net/client.h"

static void received(void *self, ClientCall *c, const ClientReply *r) {
    HttpFetch *v = self;
    (void)c;
    v->status = r->status;
    v->cut = r->kept < r->len;
    char *copy = arena_try_new(v->arena, char, r->kept + 1);
    if (r->fault != NULL)
        (void)snprintf(v->fault, sizeof v->fault, "%s", r->fault);
    else if (copy == NULL)
        v->full = true;
    else if (r->kept > 0)
        memcpy(copy, r->body, r->kept);
    v->body = (Str){copy, r->kept};
    loop_stop(v->loop);
}

static Err run_fetch(HttpFetch *v, const ClientOptions *o, const char *path, size_t most) {
    Client       *client = NULL;
    ClientRequest request = {.method = "GET", .path = path};
    ClientCall    call = {.request = &request, .keep = most, .done = received, .self = v};
    TRY(client_create(&client, v->loop, o));
    Err e = client_prepare(client, &request, v->arena);
    if (e == ERR_OK) {
        client_submit(client, &call);
        e = loop_run(v->loop);
    }
    client_destroy(client);
    return e;
}

// The text of {"error":"..."}, if the body has it.
static Err server_error(const char *url, const HttpFetch *v) {
    json_t     *o = NULL;
    const char *why = NULL;
    Err         e = json_parse("answer", v->body.at, v->body.len, &o);
    if (e == ERR_OK) e = json_get_text(o, "error", &why);
    e = e == ERR_OK ? err_set(ERR_INVALID, "%s: %s", url, why)
                    : err_set(ERR_INVALID, "%s: HTTP status %u", url, v->status);
    json_decref(o);
    return e;
}

Err http_fetch_result(const char *url, const char *what, const HttpFetch *v, Str *out) {
    if (v->fault[0] != '\0')
        return err_set(ERR_IO, "%s: %s; is the %s running, and is this its metrics address?", url,
                       v->fault, what);
    if (v->full || v->cut) return err_set(ERR_LIMIT, "%s: the response is too large", url);
    if (v->status != 200) return server_error(url, v);
    *out = v->body;
    return ERR_OK;
}

Err http_fetch(const char *url, const char *path, double seconds, size_t most, HttpFetch *v) {
    ClientUrl u;
    Arena    *a = v->arena;
    TRY(client_url(url, a, &u));
    if (u.protocol != CLIENT_HTTP1)
        return err_set(ERR_ARG, "'%s': write http://HOST:PORT, the metrics address", url);
    size_t room = strlen(u.path) + strlen(path) + 1;
    char  *full = arena_try_new(a, char, room);
    if (full == NULL) return err_set(ERR_LIMIT, "no memory for a path of %zu bytes", room);
    (void)snprintf(full, room, "%s%s", u.path, path);
    ClientOptions o = {.host = u.host,
                       .port = u.port,
                       .connections = 1,
                       .timeout_ns = (TimeNs)(seconds * 1e9),
                       .body_bytes = most};
    TRY(loop_create(&v->loop));
    Err e = run_fetch(v, &o, full, most);
    loop_destroy(v->loop);
    return e;
}

void http_print_safe(const char *before, const char *text) {
    fputs(before, stdout);
    for (const char *at = text, *end = text + strlen(text); at < end;) {
        const char *start = at;
        uint32_t    point = utf8_next(&at, end);
        if (point == UTF8_BAD || utf8_control(point))
            putchar('?');
        else
            (void)fwrite(start, 1, (size_t)(at - start), stdout);
    }
}
