#include "cli/fetch.h"

#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "net/client.h"

typedef struct Visit {
    Loop    *loop;
    Arena   *arena;
    uint32_t status;
    Str      body;
    bool     cut, full;
    char     fault[256];  // "": there is an answer
} Visit;

static void arrived(void *self, ClientCall *c, const ClientReply *r) {
    Visit *v = self;
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

static Err visit(Visit *v, const ClientOptions *o, const char *path, size_t most) {
    Client       *client = NULL;
    ClientRequest request = {.method = "GET", .path = path};
    ClientCall    call = {.request = &request, .keep = most, .done = arrived, .self = v};
    TRY(client_create(&client, v->loop, o));
    Err e = client_prepare(client, &request, v->arena);
    if (e == ERR_OK) {
        client_submit(client, &call);
        e = loop_run(v->loop);
    }
    client_destroy(client);
    return e;
}

// {"error":"..."} if it is that.
static Err refused(const char *url, const Visit *v) {
    json_t     *o = NULL;
    const char *why = NULL;
    Err         e = json_parse("answer", v->body.at, v->body.len, &o);
    if (e == ERR_OK) e = json_get_text(o, "error", &why);
    e = e == ERR_OK ? err_set(ERR_INVALID, "%s: %s", url, why)
                    : err_set(ERR_INVALID, "%s answered with status %u", url, v->status);
    json_decref(o);
    return e;
}

static Err judge(const char *url, const Visit *v, Str *out) {
    if (v->fault[0] != '\0')
        return err_set(ERR_IO, "%s: %s; is the server there, and is this the address of metrics?",
                       url, v->fault);
    if (v->full || v->cut) return err_set(ERR_LIMIT, "%s: the answer is too large", url);
    if (v->status != 200) return refused(url, v);
    *out = v->body;
    return ERR_OK;
}

Err fetch(const char *url, const char *path, double seconds, size_t most, Arena *a, Str *out) {
    ClientUrl u;
    Visit     v = {.arena = a};
    TRY(client_url(url, a, &u));
    if (u.protocol != CLIENT_HTTP1)
        return err_set(ERR_ARG, "'%s': write http://HOST:PORT, the address of metrics", url);
    size_t room = strlen(u.path) + strlen(path) + 1;
    char  *full = arena_try_new(a, char, room);
    if (full == NULL) return err_set(ERR_LIMIT, "no memory for a path of %zu bytes", room);
    (void)snprintf(full, room, "%s%s", u.path, path);
    ClientOptions o = {.host = u.host,
                       .port = u.port,
                       .connections = 1,
                       .timeout_ns = (TimeNs)(seconds * 1e9),
                       .body_bytes = most};
    TRY(loop_create(&v.loop));
    Err e = visit(&v, &o, full, most);
    loop_destroy(v.loop);
    return e == ERR_OK ? judge(url, &v, out) : e;
}
