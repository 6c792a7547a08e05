#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kube/kube_api_int.h"

enum { HEADER_BYTES = 256 << 10, URL_BYTES = 16 << 10, CONNECT_MS = 10000, KEEPALIVE_S = 30 };
enum { LINE_SLACK = 8 << 20 };  // what libcurl may deliver beyond a line before it is taken

static Err set_up(KubeApi *a, const char *scheme, const char *host, const char *port,
                  const char *path) {
    char to[2048];
    (void)snprintf(to, sizeof to, "::%s:%s", host, port);
    a->connect_to = curl_slist_append(NULL, to);
    bool ok = a->connect_to != NULL;
    ok = ok && asprintf(&a->host, "Host: %s:%s", host, port) > 0;
    ok = ok && asprintf(&a->base, "%s://%s:%s%s", scheme, a->config.server_name, port,
                        strcmp(path, "/") == 0 ? "" : path) > 0;
    return ok ? ERR_OK : err_set(ERR_LIMIT, "no memory for the server's name");
}

// The certificate is checked for the server name, which libcurl takes from the URL.
static Err redirect(KubeApi *a) {
    CURLU *u = curl_url();
    char  *part[4] = {NULL};
    bool   ok = u != NULL && curl_url_set(u, CURLUPART_URL, a->config.server, 0) == CURLUE_OK;
    ok = ok && curl_url_get(u, CURLUPART_SCHEME, &part[0], 0) == CURLUE_OK;
    ok = ok && curl_url_get(u, CURLUPART_HOST, &part[1], 0) == CURLUE_OK;
    ok = ok && curl_url_get(u, CURLUPART_PORT, &part[2], CURLU_DEFAULT_PORT) == CURLUE_OK;
    ok = ok && curl_url_get(u, CURLUPART_PATH, &part[3], 0) == CURLUE_OK;
    Err e = ok ? set_up(a, part[0], part[1], part[2], part[3])
               : err_set(ERR_CONFIG, "server '%s' is not a URL", a->config.server);
    for (int i = 0; i < 4; i++) curl_free(part[i]);
    curl_url_cleanup(u);
    return e;
}

Err kube_transfer_base(KubeApi *a) {
    if (a->config.server_name != NULL) return redirect(a);
    a->base = strdup(a->config.server);
    return a->base != NULL ? ERR_OK : err_set(ERR_LIMIT, "no memory for the server's address");
}

static size_t break_off(KubeCallState *s, const char *why) {
    s->broken = why;
    return 0;
}

static size_t on_header(char *text, size_t size, size_t n, void *self) {
    KubeCallState *s = self;
    (void)text;
    s->header_bytes += size * n;
    return s->header_bytes > HEADER_BYTES ? break_off(s, "the response's headers are too large")
                                          : size * n;
}

static bool make_room(KubeCallState *s, size_t n) {
    if (s->room - s->len > n) return true;
    size_t room = (s->len + n + 1) * 2;
    char  *more = realloc(s->data, room);
    if (more == NULL) return false;
    s->data = more;
    s->room = room;
    return true;
}

static bool has_lines(const KubeCallState *s) {
    long status = 0;
    return s->call->line != NULL &&
           curl_easy_getinfo(s->easy, CURLINFO_RESPONSE_CODE, &status) == CURLE_OK && status == 200;
}

// Called by libcurl, which must not be called from here: lines are delivered later.
static size_t on_data(char *from, size_t size, size_t n, void *self) {
    KubeCallState *s = self;
    bool           lines = has_lines(s);
    size_t         len = size * n;
    size_t most = lines ? s->api->options.line_bytes + LINE_SLACK : s->api->options.body_bytes;
    if (len > most || s->len > most - len)
        return break_off(s, lines ? "a line of the response is too long"
                                  : "the response's body is too large");
    if (!make_room(s, len)) return break_off(s, "no memory for the response");
    memcpy(s->data + s->len, from, len);
    s->len += len;
    s->data[s->len] = '\0';
    if (lines && !s->fresh) {
        s->fresh = true;
        s->next_fresh = s->api->fresh;
        s->api->fresh = s;
    }
    return len;
}

// A connection is there and the request follows. libcurl repeats requests on connections that
// turn out to be closed, which only reading ones may survive.
static int on_send(void *self, char *ip, char *own_ip, int port, int own_port) {
    KubeCallState *s = self;
    (void)ip, (void)own_ip, (void)port, (void)own_port;
    if (s->sends > 0 && strcmp(s->call->method, "GET") != 0) return CURL_PREREQFUNC_ABORT;
    s->sends++;
    return CURL_PREREQFUNC_OK;
}

static bool add_header(KubeCallState *s, const char *name, const char *value) {
    char              *line = NULL;
    int                n = asprintf(&line, "%s%s", name, value);
    struct curl_slist *more = n > 0 ? curl_slist_append(s->headers, line) : NULL;
    if (n > 0) explicit_bzero(line, (size_t)n);
    if (n > 0) free(line);
    if (more != NULL) s->headers = more;
    return more != NULL;
}

static bool add_headers(KubeCallState *s) {
    const KubeApi *a = s->api;
    const char    *type = s->call->type != NULL ? s->call->type : "application/json";
    bool           ok = add_header(s, "Accept: application/json", "");
    ok = ok && add_header(s, "Expect:", "");
    if (s->call->body != NULL) ok = ok && add_header(s, "Content-Type: ", type);
    if (a->host != NULL) ok = ok && add_header(s, a->host, "");
    if (a->credentials.token != NULL)
        ok = ok && add_header(s, "Authorization: Bearer ", a->credentials.token);
    return ok;
}

static bool set_blob(CURL *e, CURLoption option, char *text) {
    struct curl_blob blob = {text, text != NULL ? strlen(text) : 0, CURL_BLOB_COPY};
    return text == NULL || curl_easy_setopt(e, option, &blob) == CURLE_OK;
}

// As blobs, because libcurl compares those: a renewed certificate does not use old connections.
static bool set_tls(KubeCallState *s) {
    const KubeApi *a = s->api;
    CURL          *e = s->easy;
    bool           ok = set_blob(e, CURLOPT_CAINFO_BLOB, a->credentials.ca);
    if (a->credentials.ca != NULL) ok = ok && curl_easy_setopt(e, CURLOPT_CAPATH, NULL) == CURLE_OK;
    ok = ok && set_blob(e, CURLOPT_SSLCERT_BLOB, a->credentials.certificate);
    ok = ok && set_blob(e, CURLOPT_SSLKEY_BLOB, a->credentials.key);
    if (!a->config.insecure) return ok;
    ok = ok && curl_easy_setopt(e, CURLOPT_SSL_VERIFYPEER, 0L) == CURLE_OK;
    return ok && curl_easy_setopt(e, CURLOPT_SSL_VERIFYHOST, 0L) == CURLE_OK;
}

static bool set_connection(KubeCallState *s) {
    CURL *e = s->easy;
    bool  ok = curl_easy_setopt(e, CURLOPT_NOSIGNAL, 1L) == CURLE_OK;
    ok = ok && curl_easy_setopt(e, CURLOPT_PROXY, "") == CURLE_OK;
    ok = ok && curl_easy_setopt(e, CURLOPT_PROTOCOLS_STR, "http,https") == CURLE_OK;
    ok = ok && curl_easy_setopt(e, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1) == CURLE_OK;
    ok = ok && curl_easy_setopt(e, CURLOPT_TCP_NODELAY, 1L) == CURLE_OK;
    ok = ok && curl_easy_setopt(e, CURLOPT_TCP_KEEPALIVE, 1L) == CURLE_OK;
    ok = ok && curl_easy_setopt(e, CURLOPT_TCP_KEEPIDLE, (long)KEEPALIVE_S) == CURLE_OK;
    ok = ok && curl_easy_setopt(e, CURLOPT_TCP_KEEPINTVL, (long)KEEPALIVE_S) == CURLE_OK;
    ok = ok && curl_easy_setopt(e, CURLOPT_CONNECTTIMEOUT_MS, (long)CONNECT_MS) == CURLE_OK;
    if (s->api->connect_to != NULL)
        ok = ok && curl_easy_setopt(e, CURLOPT_CONNECT_TO, s->api->connect_to) == CURLE_OK;
    return ok && set_tls(s);
}

static bool set_callbacks(KubeCallState *s) {
    CURL *e = s->easy;
    bool  ok = curl_easy_setopt(e, CURLOPT_PRIVATE, s) == CURLE_OK;
    ok = ok && curl_easy_setopt(e, CURLOPT_ERRORBUFFER, s->error) == CURLE_OK;
    ok = ok && curl_easy_setopt(e, CURLOPT_WRITEFUNCTION, on_data) == CURLE_OK;
    ok = ok && curl_easy_setopt(e, CURLOPT_WRITEDATA, s) == CURLE_OK;
    ok = ok && curl_easy_setopt(e, CURLOPT_HEADERFUNCTION, on_header) == CURLE_OK;
    ok = ok && curl_easy_setopt(e, CURLOPT_HEADERDATA, s) == CURLE_OK;
    ok = ok && curl_easy_setopt(e, CURLOPT_PREREQFUNCTION, on_send) == CURLE_OK;
    return ok && curl_easy_setopt(e, CURLOPT_PREREQDATA, s) == CURLE_OK;
}

// Lines are not compressed: a few bytes could become more lines than are taken in a turn.
static bool set_request(KubeCallState *s) {
    const KubeCall *c = s->call;
    CURL           *e = s->easy;
    char            url[URL_BYTES];
    int             n = snprintf(url, sizeof url, "%s%s", s->api->base, c->path);
    bool ok = n > 0 && (size_t)n < sizeof url && curl_easy_setopt(e, CURLOPT_URL, url) == CURLE_OK;
    bool body = c->body != NULL || strcmp(c->method, "POST") == 0 ||
                strcmp(c->method, "PUT") == 0 || strcmp(c->method, "PATCH") == 0;
    ok = ok && curl_easy_setopt(e, CURLOPT_PATH_AS_IS, 1L) == CURLE_OK;
    ok = ok && curl_easy_setopt(e, CURLOPT_USERAGENT, s->api->options.user_agent) == CURLE_OK;
    if (c->line == NULL)
        ok = ok && curl_easy_setopt(e, CURLOPT_ACCEPT_ENCODING, "gzip") == CURLE_OK;
    if (body) {
        ok = ok && curl_easy_setopt(e, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)c->len) == CURLE_OK;
        ok = ok &&
             curl_easy_setopt(e, CURLOPT_POSTFIELDS, c->body != NULL ? c->body : "") == CURLE_OK;
    }
    ok = ok && curl_easy_setopt(e, CURLOPT_CUSTOMREQUEST, c->method) == CURLE_OK;
    return ok && add_headers(s) && curl_easy_setopt(e, CURLOPT_HTTPHEADER, s->headers) == CURLE_OK;
}

Err kube_transfer_begin(KubeCallState *s) {
    KubeApi *a = s->api;
    s->sends = 0;
    s->len = s->header_bytes = 0;
    s->error[0] = '\0';
    s->easy = a->n_idle > 0 ? a->idle[--a->n_idle] : curl_easy_init();
    bool ok = s->easy != NULL && set_connection(s) && set_callbacks(s) && set_request(s);
    if (ok && curl_multi_add_handle(a->multi, s->easy) == CURLM_OK) return ERR_OK;
    kube_transfer_end(s);
    return err_set(ERR_LIMIT, "cannot begin the request: no memory, or its path is too long");
}

void kube_transfer_end(KubeCallState *s) {
    KubeApi *a = s->api;
    if (s->easy != NULL) {
        (void)curl_multi_remove_handle(a->multi, s->easy);
        curl_easy_reset(s->easy);
        if (a->n_idle < KUBE_IDLE)
            a->idle[a->n_idle++] = s->easy;
        else
            curl_easy_cleanup(s->easy);
    }
    s->easy = NULL;
    for (struct curl_slist *h = s->headers; h != NULL; h = h->next)
        explicit_bzero(h->data, strlen(h->data));
    curl_slist_free_all(s->headers);
    s->headers = NULL;
}
