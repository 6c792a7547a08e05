#include "kube/kube_api.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

#include "kube/kube_api_int.h"

static const TimeNs  MS = 1000000, SECOND = 1000000000;
static const int64_t RETRY_AFTER_MOST = 3600;

typedef struct KubeSocket {
    KubeApi *api;
    LoopFd   fd;
} KubeSocket;

static const char *const verbs[KUBE_VERBS] = {"GET", "POST", "PUT", "PATCH", "DELETE"};

static uint32_t verb_of(const char *method) {
    uint32_t i = 0;
    while (i < KUBE_VERBS && strcmp(verbs[i], method) != 0) i++;
    return i;
}

static void count(KubeApi *a, const KubeCall *c, uint32_t code, TimeNs took) {
    uint32_t v = verb_of(c->method), i = 0;
    if (c->line == NULL) hist_record(&a->times[v], took);
    while (i < a->n_counts && (a->counts[i].verb != verbs[v] || a->counts[i].code != code)) i++;
    if (i == KUBE_COUNTS) return;
    if (i == a->n_counts) a->counts[a->n_counts++] = (KubeApiCount){verbs[v], code, 0};
    a->counts[i].n++;
}

static void unlink_waiting(KubeApi *a, KubeCallState *s) {
    if (!s->waits) return;
    s->waits = false;
    *(s->prev_waiting != NULL ? &s->prev_waiting->next_waiting : &a->waits) = s->next_waiting;
    *(s->next_waiting != NULL ? &s->next_waiting->prev_waiting : &a->waits_last) = s->prev_waiting;
}

static void unlink_fresh(KubeApi *a, KubeCallState *s) {
    KubeCallState **at = &a->fresh;
    while (s->fresh && *at != s) at = &(*at)->next_fresh;
    if (s->fresh) *at = s->next_fresh;
    s->fresh = false;
}

static void free_state(KubeCallState *s) {
    free(s->data);
    free(s);
}

// The call is over; its memory stays while callbacks may still use it.
static void drop(KubeCallState *s) {
    KubeApi *a = s->api;
    kube_transfer_end(s);
    loop_disarm(a->loop, &s->deadline);
    unlink_waiting(a, s);
    unlink_fresh(a, s);
    if (s->counted) a->running--;
    *(s->prev != NULL ? &s->prev->next : &a->first) = s->next;
    *(s->next != NULL ? &s->next->prev : &a->last) = s->prev;
    a->live--;
    s->call->state = NULL;
    s->gone = true;
    if (a->busy == 0) {
        free_state(s);
        return;
    }
    s->next_gone = a->trash;
    a->trash = s;
}

static void finish(KubeCallState *s, KubeOutcome outcome, const char *fault) {
    KubeApi   *a = s->api;
    KubeCall  *c = s->call;
    curl_off_t after = 0;
    long       status = 0;
    KubeReply  r = {.outcome = outcome, .fault = fault, .too_large = s->broken != NULL};
    if (s->easy != NULL) {
        (void)curl_easy_getinfo(s->easy, CURLINFO_RESPONSE_CODE, &status);
        (void)curl_easy_getinfo(s->easy, CURLINFO_RETRY_AFTER, &after);
    }
    bool lines = c->line != NULL && status == 200;
    r.status = status > 0 ? (uint32_t)status : 0;
    r.retry_after =
        (after < RETRY_AFTER_MOST ? (after > 0 ? after : 0) : RETRY_AFTER_MOST) * SECOND;
    r.body = lines || s->len == 0 ? "" : s->data;
    r.len = lines ? 0 : s->len;
    r.took = clock_monotonic_ns() - s->submitted;
    count(a, c, outcome == KUBE_DONE ? r.status : 0, r.took);
    drop(s);
    c->done(c->self, c, &r);
}

static void fail(KubeCallState *s, const char *why) {
    (void)snprintf(s->why, sizeof s->why, "%s %.64s: %s", s->call->method, s->call->path, why);
    finish(s, s->sends > 0 ? KUBE_UNKNOWN : KUBE_NOT_SENT, s->why);
}

static void begin(KubeCallState *s) {
    Err e = kube_transfer_begin(s);
    if (e != ERR_OK) fail(s, err_why());
}

static void start_waiting(KubeApi *a) {
    while (!a->dead && a->waits != NULL) {
        KubeCallState *s = a->waits;
        bool           counts = s->call->line == NULL && !s->call->urgent;
        if (counts && a->running >= a->options.connections) return;
        unlink_waiting(a, s);
        s->counted = counts;
        a->running += counts;
        // A file that is being replaced may be missing for a moment: what was read stays in use.
        Err e = kube_credentials_renew(&a->credentials, clock_monotonic_ns());
        (void)e;
        begin(s);
    }
}

static bool take_line(KubeCallState *s, char *text, size_t len) {
    if (len > s->api->options.line_bytes) {
        s->broken = "a line of the response is too long";
        fail(s, s->broken);
        return false;
    }
    text[len] = '\0';
    bool on = len == 0 || s->call->line(s->call->self, text, len);
    if (s->gone) return false;
    if (!on) finish(s, KUBE_DONE, NULL);
    return on;
}

static void deliver(KubeCallState *s) {
    size_t at = 0;
    char  *end = NULL;
    unlink_fresh(s->api, s);
    while ((end = memchr(s->data + at, '\n', s->len - at)) != NULL) {
        size_t len = (size_t)(end - s->data) - at;
        if (!take_line(s, s->data + at, len)) return;
        at += len + 1;
    }
    s->len -= at;
    memmove(s->data, s->data + at, s->len);
    s->data[s->len] = '\0';
    if (s->len > s->api->options.line_bytes) {
        s->broken = "a line of the response is too long";
        fail(s, s->broken);
    }
}

// A 401 means that nothing was done: the call is repeated with what the files say now.
static bool try_again(KubeCallState *s) {
    KubeApi *a = s->api;
    long     status = 0;
    (void)curl_easy_getinfo(s->easy, CURLINFO_RESPONSE_CODE, &status);
    if (status != 401 || s->again || !kube_credentials_from_files(&a->credentials)) return false;
    s->again = true;
    Err e = kube_credentials_read(&a->credentials, clock_monotonic_ns());
    if (e != ERR_OK) return false;
    count(a, s->call, 401, clock_monotonic_ns() - s->submitted);
    kube_transfer_end(s);
    begin(s);
    return true;
}

static void completed(KubeCallState *s, CURLcode code) {
    if (s->fresh) deliver(s);
    if (s->gone) return;
    if (code == CURLE_OK) {
        if (!try_again(s)) finish(s, KUBE_DONE, NULL);
        return;
    }
    const char *why = s->broken;
    if (why == NULL && code == CURLE_ABORTED_BY_CALLBACK)
        why = "the connection was closed before a response";
    if (why == NULL) why = s->error[0] != '\0' ? s->error : curl_easy_strerror(code);
    fail(s, why);
}

static void settle(KubeApi *a) {
    CURLMsg *m = NULL;
    int      left = 0;
    while (!a->dead && a->fresh != NULL) deliver(a->fresh);
    while (!a->dead && (m = curl_multi_info_read(a->multi, &left)) != NULL) {
        KubeCallState *s = NULL;
        CURLcode       code = m->data.result;
        if (m->msg != CURLMSG_DONE) continue;
        (void)curl_easy_getinfo(m->easy_handle, CURLINFO_PRIVATE, (char **)&s);
        completed(s, code);
    }
    start_waiting(a);
}

static void take_out_trash(KubeApi *a) {
    for (KubeCallState *s = a->trash, *next; s != NULL; s = next) {
        next = s->next_gone;
        free_state(s);
    }
    a->trash = NULL;
}

static void free_api(KubeApi *a) {
    take_out_trash(a);
    for (uint32_t i = 0; i < a->n_idle; i++) curl_easy_cleanup(a->idle[i]);
    if (a->multi != NULL) (void)curl_multi_cleanup(a->multi);
    loop_disarm(a->loop, &a->timer);
    loop_disarm(a->loop, &a->kick);
    curl_slist_free_all(a->connect_to);
    kube_credentials_finish(&a->credentials);
    free(a->base);
    free(a->host);
    free(a->times);
    free(a);
}

// Callers' functions run between the two, and may destroy the api.
static void enter(KubeApi *a) { a->busy++; }

static void leave(KubeApi *a) {
    if (--a->busy > 0) return;
    take_out_trash(a);
    if (a->dead) free_api(a);
}

static void arm(KubeApi *a, LoopTimer *t, TimeNs at) {
    Err e = loop_arm(a->loop, t, at);
    CHECK(e == ERR_OK);  // it is armed already: nothing is allocated
}

static void act(KubeApi *a, curl_socket_t fd, int events) {
    int running = 0;
    enter(a);
    (void)curl_multi_socket_action(a->multi, fd, events, &running);
    settle(a);
    leave(a);
}

static void on_ready(void *self, uint32_t events) {
    const KubeSocket *k = self;
    int               to = (events & (EPOLLIN | EPOLLHUP)) != 0 ? CURL_CSELECT_IN : 0;
    to |= (events & EPOLLOUT) != 0 ? CURL_CSELECT_OUT : 0;
    to |= (events & EPOLLERR) != 0 ? CURL_CSELECT_ERR : 0;
    act(k->api, k->fd.fd, to);
}

// Timers fire disarmed; they are armed again at once, so that later arming needs no memory: the
// loop has kept their place.
static void on_timer(void *self) {
    KubeApi *a = self;
    arm(a, &a->timer, INT64_MAX);
    act(a, CURL_SOCKET_TIMEOUT, 0);
}

static void on_kick(void *self) {
    KubeApi *a = self;
    arm(a, &a->kick, INT64_MAX);
    enter(a);
    settle(a);
    leave(a);
}

static int on_wanted_time(CURLM *m, long ms, void *self) {
    KubeApi *a = self;
    (void)m;
    if (a->timer.place != 0) arm(a, &a->timer, ms < 0 ? INT64_MAX : clock_monotonic_ns() + ms * MS);
    return 0;
}

static void forget_socket(KubeApi *a, curl_socket_t fd, KubeSocket *k) {
    if (k == NULL) return;
    loop_forget(a->loop, &k->fd);
    (void)curl_multi_assign(a->multi, fd, NULL);
    free(k);
}

// Without memory the socket stays unwatched: the deadline of its call ends it.
static void watch_socket(KubeApi *a, curl_socket_t fd, KubeSocket *k, uint32_t events) {
    if (k != NULL) {
        loop_events(a->loop, &k->fd, events);
        return;
    }
    k = calloc(1, sizeof *k);
    if (k == NULL) return;
    *k = (KubeSocket){a, {.fd = fd, .events = events, .ready = on_ready, .self = k}};
    if (loop_watch(a->loop, &k->fd) != ERR_OK || curl_multi_assign(a->multi, fd, k) != CURLM_OK) {
        loop_forget(a->loop, &k->fd);
        free(k);
    }
}

static int on_socket(CURL *e, curl_socket_t fd, int what, void *self, void *socket) {
    (void)e;
    if (what == CURL_POLL_REMOVE)
        forget_socket(self, fd, socket);
    else
        watch_socket(self, fd, socket,
                     (what & CURL_POLL_IN ? EPOLLIN : 0U) | (what & CURL_POLL_OUT ? EPOLLOUT : 0U));
    return 0;
}

static void fill_options(KubeApiOptions *o) {
    if (o->connections == 0) o->connections = 8;
    if (o->timeout == 0) o->timeout = 10 * SECOND;
    if (o->body_bytes == 0) o->body_bytes = (size_t)64 << 20;
    if (o->line_bytes == 0) o->line_bytes = (size_t)4 << 20;
    if (o->user_agent == NULL) o->user_agent = "cotenant/" COTENANT_VERSION;
}

static Err set_multi(KubeApi *a) {
    CURLM *m = a->multi;
    bool   ok = curl_multi_setopt(m, CURLMOPT_SOCKETFUNCTION, on_socket) == CURLM_OK;
    ok = ok && curl_multi_setopt(m, CURLMOPT_SOCKETDATA, a) == CURLM_OK;
    ok = ok && curl_multi_setopt(m, CURLMOPT_TIMERFUNCTION, on_wanted_time) == CURLM_OK;
    ok = ok && curl_multi_setopt(m, CURLMOPT_TIMERDATA, a) == CURLM_OK;
    ok = ok &&
         curl_multi_setopt(m, CURLMOPT_MAXCONNECTS, (long)a->options.connections + 16) == CURLM_OK;
    return ok ? ERR_OK : err_set(ERR_UNSUPPORTED, "libcurl lacks the multi-socket interface");
}

static Err fill(KubeApi *a) {
    TRY(kube_transfer_base(a));
    TRY(kube_credentials_read(&a->credentials, clock_monotonic_ns()));
    a->times = calloc(KUBE_VERBS, sizeof *a->times);
    a->multi = curl_multi_init();
    if (a->times == NULL || a->multi == NULL)
        return err_set(ERR_LIMIT, "no memory for an API client");
    TRY(loop_arm(a->loop, &a->timer, INT64_MAX));
    TRY(loop_arm(a->loop, &a->kick, INT64_MAX));
    return set_multi(a);
}

Err kube_api_create(KubeApi **out, Loop *l, const KubeConfig *c, const KubeApiOptions *o) {
    if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK)
        return err_set(ERR_UNSUPPORTED, "libcurl cannot be initialised");
    KubeApi *a = calloc(1, sizeof *a);
    if (a == NULL) return err_set(ERR_LIMIT, "no memory for an API client");
    a->loop = l;
    a->config = *c;
    a->credentials.config = &a->config;
    if (o != NULL) a->options = *o;
    fill_options(&a->options);
    a->timer = (LoopTimer){.fire = on_timer, .self = a};
    a->kick = (LoopTimer){.fire = on_kick, .self = a};
    Err e = fill(a);
    if (e != ERR_OK) {
        free_api(a);
        return e;
    }
    *out = a;
    return ERR_OK;
}

void kube_api_destroy(KubeApi *a) {
    if (a == NULL) return;
    while (a->first != NULL) drop(a->first);
    a->dead = true;
    if (a->busy == 0) free_api(a);
}

static void on_deadline(void *self) {
    KubeCallState *s = self;
    KubeApi       *a = s->api;
    enter(a);
    fail(s, s->easy == NULL ? "timed out: no connection became free"
            : s->sends == 0 ? "timed out: no connection to the server"
                            : "timed out: no response");
    start_waiting(a);
    leave(a);
}

static void link_waiting(KubeApi *a, KubeCallState *s, bool first) {
    s->waits = true;
    s->prev_waiting = first ? NULL : a->waits_last;
    s->next_waiting = first ? a->waits : NULL;
    *(s->prev_waiting != NULL ? &s->prev_waiting->next_waiting : &a->waits) = s;
    *(s->next_waiting != NULL ? &s->next_waiting->prev_waiting : &a->waits_last) = s;
}

void kube_api_submit(KubeApi *a, KubeCall *c) {
    KubeCallState *s = calloc(1, sizeof *s);
    CHECK(s != NULL && verb_of(c->method) < KUBE_VERBS);
    bool   first = c->line != NULL || c->urgent;
    TimeNs timeout = c->timeout > 0 ? c->timeout : c->line != NULL ? 0 : a->options.timeout;
    *s = (KubeCallState){.api = a, .call = c, .submitted = clock_monotonic_ns(), .prev = a->last};
    s->deadline = (LoopTimer){.fire = on_deadline, .self = s};
    c->state = s;
    *(a->last != NULL ? &a->last->next : &a->first) = s;
    a->last = s;
    a->live++;
    link_waiting(a, s, first);
    // Without memory for it the call has no deadline, but libcurl's for connecting.
    Err e = timeout > 0 ? loop_arm(a->loop, &s->deadline, s->submitted + timeout) : ERR_OK;
    (void)e;
    arm(a, &a->kick, loop_now(a->loop));
}

void kube_api_cancel(KubeApi *a, KubeCall *c) {
    if (c->state == NULL) return;
    drop(c->state);
    if (a->waits != NULL) arm(a, &a->kick, loop_now(a->loop));
}

uint32_t kube_api_live(const KubeApi *a) { return a->live; }

void kube_api_counts(const KubeApi *a, void (*each)(void *self, const KubeApiCount *c),
                     void          *self) {
    for (uint32_t i = 0; i < a->n_counts; i++) each(self, &a->counts[i]);
}

const Hist *kube_api_times(const KubeApi *a, const char *verb) {
    uint32_t v = verb_of(verb);
    return v < KUBE_VERBS ? &a->times[v] : NULL;
}
