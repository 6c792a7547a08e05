#include "kube/kube_server.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"

enum {
    NAME = 254,            // of a namespace or a pod, with the terminator
    PAGE_BYTES = 8 << 20,  // of a response
    EXTENDER_BYTES = 16 << 20,
    CONNECTIONS = 256,
};

struct KubeServer {
    Listener  *listener;
    KubeSource from;
    bool       extender;
};

// An exchange that was answered, or a bind that is open. It is freed when both are over.
typedef struct Reply {
    KubeBinding  binding;  // first
    KubeServer  *server;
    Exchange    *x;  // NULL: it ended before the bind
    char        *text;
    struct iovec piece;
    bool         binds;
} Reply;

static bool is(Str s, const char *text) {
    return s.len == strlen(text) && memcmp(s.at, text, s.len) == 0;
}

// Takes the text; NULL: 500.
static void answer(Reply *r, uint32_t status, const char *type, char *text) {
    if (text == NULL) status = 500;
    r->text = text;
    r->piece = (struct iovec){text, text != NULL ? strlen(text) : 0};
    Answer a = {.status = status, .type = type, .body = &r->piece, .n_body = text != NULL};
    if (status == 429 || status == 503) {
        a.extra[0] = (ExchangeHeader){{"retry-after", 11}, {"1", 1}};
        a.n_extra = 1;
    }
    exchange_answer(r->x, &a);
}

static void say(Reply *r, uint32_t status, const char *text) {
    size_t len = strlen(text);
    char  *copy = malloc(len + 2);
    if (copy != NULL) (void)snprintf(copy, len + 2, "%s\n", text);
    answer(r, status, "text/plain; charset=utf-8", copy);
}

static void send_json(Reply *r, uint32_t status, json_t *doc) {
    char *text = doc != NULL ? json_dumps(doc, JSON_COMPACT) : NULL;
    json_decref(doc);
    answer(r, status, "application/json", text);
}

static void fault(Reply *r, uint32_t status, const char *why) {
    send_json(r, status, json_pack("{s:s}", "error", why));
}

static void get_metrics(Reply *r) {
    const KubeSource *s = &r->server->from;
    KubeGauges        g = {.profile = NULL};
    Arena             a = {0};
    Str               out;
    Err               e = arena_init(&a, PAGE_BYTES);
    s->gauges(s->self, &g);
    if (e == ERR_OK) e = kube_metrics_text(s->metrics, &g, &a, &out);
    char *text = e == ERR_OK ? strndup(out.at, out.len) : NULL;
    arena_finish(&a);
    answer(r, 200, "text/plain; version=0.0.4; charset=utf-8", text);
}

static void get_health(Reply *r) {
    KubeStanding now = {.synced = false};
    r->server->from.standing(r->server->from.self, &now);
    say(r, now.failed ? 500 : 200, now.failed ? "failed" : "ok");
}

// A standby is ready: it takes over when the leader goes, and answers questions meanwhile.
static void get_ready(Reply *r) {
    KubeStanding now = {.synced = false};
    char         text[512];
    r->server->from.standing(r->server->from.self, &now);
    if (!now.synced)
        (void)snprintf(text, sizeof text, "not ready: %.100s not listed yet",
                       now.missing != NULL ? now.missing : "the cluster's objects");
    else if (now.leader)
        (void)snprintf(text, sizeof text, "ready: leader%s", now.dry_run ? " (dry run)" : "");
    else
        (void)snprintf(text, sizeof text, "ready: standby, the leader is %.300s",
                       now.holder != NULL && now.holder[0] != '\0' ? now.holder : "not known");
    say(r, now.synced && !now.failed ? 200 : 503, text);
}

// What pages about pods are made from; NULL: it was said that there is none.
static KubeState *state_of(Reply *r) {
    const KubeSource *s = &r->server->from;
    KubeStanding      now = {.synced = false};
    KubeState        *state = s->state(s->self);
    char              text[512];
    s->standing(s->self, &now);
    if (state != NULL && now.leader && now.synced) return state;
    if (now.leader)
        (void)snprintf(text, sizeof text, "the cluster is not listed yet; try again");
    else
        (void)snprintf(text, sizeof text, "this replica is a standby; ask the leader, %.300s",
                       now.holder != NULL && now.holder[0] != '\0' ? now.holder
                                                                   : "which is not known");
    fault(r, 503, text);
    return NULL;
}

// Letters, digits, '-' and '.', as names of Kubernetes' objects have.
static bool copy_name(Str s, char out[NAME]) {
    if (s.len == 0 || s.len >= NAME) return false;
    for (size_t i = 0; i < s.len; i++) {
        char c = s.at[i];
        bool plain = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '.';
        if (!plain) return false;
        out[i] = c;
    }
    out[s.len] = '\0';
    return true;
}

static bool why_names(Str path, char namespace_name[NAME], char name[NAME]) {
    static const size_t before = sizeof "/why/" - 1;
    Str                 rest = {path.at + before, path.len - before};
    const char         *slash = memchr(rest.at, '/', rest.len);
    if (slash == NULL) return false;
    size_t first = (size_t)(slash - rest.at);
    return copy_name((Str){rest.at, first}, namespace_name) &&
           copy_name((Str){slash + 1, rest.len - first - 1}, name);
}

static void unknown_pod(Reply *r, const KubeState *s, const char *namespace_name,
                        const char *name) {
    const char *near = kube_why_meant(s, namespace_name, name);
    char        text[1024];
    (void)snprintf(text, sizeof text, "no pod %s in namespace %s, or it is out of scope%s%.250s%s",
                   name, namespace_name, near != NULL ? "; did you mean " : "",
                   near != NULL ? near : "", near != NULL ? "?" : "");
    fault(r, 404, text);
}

static void get_why(Reply *r) {
    const KubeSource *s = &r->server->from;
    char              namespace_name[NAME], name[NAME];
    KubeWait          w = {.left = -1};
    if (!why_names(r->x->path, namespace_name, name)) {
        fault(r, 400, "the path is /why/NAMESPACE/POD");
        return;
    }
    const KubeState *state = state_of(r);
    if (state == NULL) return;
    const KubePod *p = kube_state_pod(state, namespace_name, name);
    if (p == NULL) {
        unknown_pod(r, state, namespace_name, name);
        return;
    }
    s->wait(s->self, p, &w);
    send_json(r, 200, kube_why(state, p, &w));
}

static void post_progress(Reply *r) {
    const KubeSource *s = &r->server->from;
    const KubeState  *state = state_of(r);
    KubeReport        report = {.pod = NULL};
    char              why[PROGRESS_WHY] = "";
    TimeNs            now = clock_now(clock_realtime());
    if (state == NULL) return;
    uint32_t status =
        kube_progress_read(state, (const char *)r->x->body, r->x->body_len, now, &report, why);
    if (status == 200) s->report(s->self, &report, now);
    kube_metrics_count(s->metrics,
                       status == 200 ? KUBE_COUNT_REPORT_TAKEN : KUBE_COUNT_REPORT_REJECTED);
    if (status == 200)
        send_json(r, 200, json_object());
    else
        fault(r, status, why);
}

// The extender.

static void end_reply(Reply *r) {
    free(r->text);
    free(r);
}

static void bound(KubeBinding *b, const char *why) {
    Reply *r = (Reply *)(void *)b;
    r->binds = false;
    if (r->x == NULL)
        end_reply(r);
    else
        send_json(r, 200, json_pack("{s:s}", "Error", why != NULL ? why : ""));
}

static void bind_pod(Reply *r, const KubeExtender *x) {
    const KubeSource *s = &r->server->from;
    const char       *why = NULL;
    KubePod          *p;
    KubeNode         *n;
    Arena             a = {0};
    Err               e = arena_init(&a, 1 << 16);
    if (e == ERR_OK)
        e = kube_extender_bind(x, (const char *)r->x->body, r->x->body_len, &a, &p, &n, &why);
    if (e != ERR_OK) {
        kube_metrics_count(s->metrics, KUBE_COUNT_EXTENDER_BAD);
        fault(r, 400, err_why());
    } else {
        r->binding.done = bound;
        r->binds = true;
        if (why != NULL)
            bound(&r->binding, why);
        else
            s->bind(s->self, p, n, &r->binding);
    }
    arena_finish(&a);
}

static const char *const verbs[EXTENDER_VERBS] = {"filter", "prioritize", "bind", "preempt"};

static const KubeCounter verb_counts[EXTENDER_VERBS] = {
    KUBE_COUNT_EXTENDER_FILTER, KUBE_COUNT_EXTENDER_PRIORITIZE, KUBE_COUNT_EXTENDER_BIND,
    KUBE_COUNT_EXTENDER_PREEMPT};

// By the last word of the path: kube-scheduler puts its urlPrefix before.
static KubeExtenderVerb verb_of(Str path) {
    size_t from = path.len;
    while (from > 0 && path.at[from - 1] != '/') from--;
    KubeExtenderVerb v = 0;
    while (v < EXTENDER_VERBS && !is((Str){path.at + from, path.len - from}, verbs[v])) v++;
    return v;
}

static void post_extender(Reply *r) {
    const KubeSource *s = &r->server->from;
    KubeExtenderVerb  v = verb_of(r->x->path);
    char             *text = NULL;
    if (v == EXTENDER_VERBS) {
        fault(r, 404, "the extender has /filter, /prioritize, /bind and /preempt");
        return;
    }
    KubeExtender x = s->extender;
    x.state = state_of(r);
    if (x.state == NULL) return;
    kube_metrics_count(s->metrics, verb_counts[v]);
    if (v == EXTENDER_BIND) {
        bind_pod(r, &x);
        return;
    }
    Err e = kube_extender_answer(&x, v, (const char *)r->x->body, r->x->body_len, &text);
    if (e == ERR_OK) {
        answer(r, 200, "application/json", text);
        return;
    }
    kube_metrics_count(s->metrics, KUBE_COUNT_EXTENDER_BAD);
    fault(r, 400, err_why());
}

typedef struct Page {
    const char *method, *path;
    bool        below;  // paths that begin so
    void (*show)(Reply *r);
} Page;

static const Page pages[] = {
    {"GET", "/metrics", false, get_metrics}, {"GET", "/healthz", false, get_health},
    {"GET", "/livez", false, get_health},    {"GET", "/readyz", false, get_ready},
    {"GET", "/why/", true, get_why},         {"POST", "/progress", false, post_progress},
};

static bool matches(const Page *p, Str path) {
    size_t n = strlen(p->path);
    return p->below ? path.len >= n && memcmp(path.at, p->path, n) == 0 : is(path, p->path);
}

static void show_page(Reply *r) {
    for (size_t i = 0; i < sizeof pages / sizeof *pages; i++) {
        if (!matches(&pages[i], r->x->path)) continue;
        if (is(r->x->method, pages[i].method))
            pages[i].show(r);
        else
            fault(r, 405, "wrong method");
        return;
    }
    fault(r, 404, "pages: /metrics /healthz /readyz /why/NAMESPACE/POD, and POST /progress");
}

static void show_extender(Reply *r) {
    if (is(r->x->path, "/healthz"))
        get_health(r);
    else if (is(r->x->method, "POST"))
        post_extender(r);
    else
        fault(r, 405, "the extender takes POST");
}

static void head(void *self, Exchange *x) {
    const KubeServer *s = self;
    x->most = s->extender ? EXTENDER_BYTES : PROGRESS_BYTES;
}

static void request(void *self, Exchange *x) {
    KubeServer *s = self;
    Reply      *r = calloc(1, sizeof *r);
    Answer      none = {.status = 503};
    x->user = r;
    if (r == NULL) {
        exchange_answer(x, &none);
        return;
    }
    *r = (Reply){.server = s, .x = x};
    if (s->extender)
        show_extender(r);
    else
        show_page(r);
}

static void ended(void *self, Exchange *x, bool sent) {
    Reply *r = x->user;
    (void)self, (void)sent;
    if (r == NULL) return;
    r->x = NULL;
    if (!r->binds) end_reply(r);
}

Err kube_server_open(KubeServer **out, Loop *l, const KubeServerOptions *o,
                     const KubeSource *source) {
    KubeServer *s = calloc(1, sizeof *s);
    if (s == NULL) return err_set(ERR_LIMIT, "no memory for a listener");
    s->from = *source;
    s->extender = o->extender;
    ListenerOptions lo = {
        .address = o->address,
        .protocol = LISTENER_HTTP1,
        .limits = {.connections = CONNECTIONS,
                   .body_bytes = o->extender ? EXTENDER_BYTES : PROGRESS_BYTES,
                   .held_bytes = 4 * (size_t)EXTENDER_BYTES},
        .handler = {.head = head, .request = request, .ended = ended, .self = s},
    };
    Err e = listener_open(&s->listener, l, &lo);
    if (e != ERR_OK) {
        free(s);
        return e;
    }
    *out = s;
    return ERR_OK;
}

const char *kube_server_address(const KubeServer *s) { return listener_address(s->listener); }

void kube_server_close(KubeServer *s) {
    if (s == NULL) return;
    listener_close(s->listener);
    free(s);
}
