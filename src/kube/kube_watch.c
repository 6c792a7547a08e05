#include "kube/kube_watch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kube/kube_watch_event.h"

static const TimeNs MS = 1000000, SECOND = 1000000000, LIST_TIMEOUT = INT64_C(60) * 1000000000;

typedef struct WatchText {  // reused memory for a text
    char  *at;              // NULL: none yet
    size_t room;
} WatchText;

struct KubeWatch {
    KubeApi        *api;
    Loop           *loop;
    char           *path, *selector;  // selector: "" or "&..."
    KubeWatchSink   sink;
    KubeWatchPace   pace;
    KubeWatchCounts counts;
    Rng             rng;
    KubeCall        call;
    LoopTimer       timer;          // always armed, so that arming cannot fail
    WatchText       version, next;  // "": none; next: continue token of a list
    WatchText       url;
    bool            watching;  // the call is a watch, not a list
    bool            waiting;   // the timer ends a pause; else a watch that is silent
    bool            untried;   // the version is a list's, and no watch spoke since
    bool            progress;  // an event or bookmark since the watch began
    uint32_t        setbacks;  // watches in a row that failed by what they said
    uint32_t        page, timeout_s;
    TimeNs          delay, paused_at, began;
    uint32_t        busy;  // callbacks on the stack
    bool            dead;  // stopped within a callback
    char            fault[256];
};

static bool set_text(WatchText *t, const char *text) {
    size_t len = strlen(text) + 1;
    char  *more = len > t->room ? realloc(t->at, len * 2) : t->at;
    if (more == NULL) return false;
    if (len > t->room) t->room = len * 2;
    t->at = more;
    memcpy(t->at, text, len);
    return true;
}

static bool has(const WatchText *t) { return t->at != NULL && *t->at != '\0'; }

static void clear(WatchText *t) {
    if (t->at != NULL) *t->at = '\0';
}

static void arm(KubeWatch *w, TimeNs at) {
    Err e = loop_arm(w->loop, &w->timer, at);
    CHECK(e == ERR_OK);  // it is armed already: nothing is allocated
}

static void pause_for(KubeWatch *w, TimeNs delay) {
    w->waiting = true;
    arm(w, clock_monotonic_ns() + delay);
}

// Doubles while pauses follow each other.
static void back_off(KubeWatch *w, TimeNs at_least) {
    TimeNs now = clock_monotonic_ns();
    if (w->delay == 0 || now - w->paused_at > w->pace.reset) w->delay = w->pace.first;
    TimeNs delay = w->delay + (TimeNs)((double)w->delay * rng_unit64(&w->rng));
    w->delay = w->delay < w->pace.most / 2 ? w->delay * 2 : w->pace.most;
    w->paused_at = now;
    pause_for(w, delay > at_least ? delay : at_least);
}

static void note_fault(KubeWatch *w, const char *why) {
    w->counts.errors++;
    (void)snprintf(w->fault, sizeof w->fault, "%s: %s", w->path, why);
}

// Percent-encoded: versions and tokens are opaque.
static void put_encoded(FILE *f, const char *text) {
    static const char plain[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.~";
    for (; *text != '\0'; text++)
        if (strchr(plain, *text) != NULL)
            (void)fputc(*text, f);
        else
            (void)fprintf(f, "%%%02X", (unsigned)(unsigned char)*text);
}

static void put_query(KubeWatch *w, FILE *f) {
    if (w->watching) {
        (void)fprintf(f, "%s?watch=1&allowWatchBookmarks=true&timeoutSeconds=%u%s&resourceVersion=",
                      w->path, w->timeout_s, w->selector);
        put_encoded(f, w->version.at);
        return;
    }
    (void)fprintf(f, "%s?limit=%u%s", w->path, w->page, w->selector);
    if (!has(&w->next)) return;
    (void)fputs("&continue=", f);
    put_encoded(f, w->next.at);
}

static bool write_url(KubeWatch *w) {
    char  *text = NULL;
    size_t len = 0;
    FILE  *f = open_memstream(&text, &len);
    if (f == NULL) return false;
    put_query(w, f);
    bool ok = fclose(f) == 0 && set_text(&w->url, text);
    free(text);
    return ok;
}

static bool on_line(void *self, const char *text, size_t len);
static void on_done(void *self, KubeCall *c, const KubeReply *r);

static void ask(KubeWatch *w) {
    w->waiting = w->progress = false;
    w->watching = has(&w->version);
    w->timeout_s = w->pace.watch_s + (uint32_t)rng_below(&w->rng, (uint64_t)w->pace.watch_s + 1);
    w->began = clock_monotonic_ns();
    if (!write_url(w)) {
        note_fault(w, "no memory for a request");
        back_off(w, 0);
        return;
    }
    w->call = (KubeCall){.method = "GET",
                         .path = w->url.at,
                         .timeout = w->watching ? 0 : LIST_TIMEOUT,
                         .line = w->watching ? on_line : NULL,
                         .done = on_done,
                         .self = w};
    arm(w, w->watching ? w->began + w->timeout_s * SECOND + w->pace.silence : INT64_MAX);
    kube_api_submit(w->api, &w->call);
}

// The next call lists from the start.
static void forget_version(KubeWatch *w) {
    clear(&w->version);
    clear(&w->next);
    w->counts.synced = false;
    w->setbacks = 0;
    w->counts.relists++;
}

static void sink_end(KubeWatch *w) {
    w->untried = true;
    w->counts.lists++;
    w->counts.synced = true;
    w->sink.end(w->sink.self);
}

static void put_items(KubeWatch *w, const KubeWatchPage *p) {
    if (!has(&w->next)) w->sink.begin(w->sink.self);
    for (size_t i = 0; i < json_array_size(p->items) && !w->dead; i++)
        w->sink.put(w->sink.self, json_array_get(p->items, i));
    if (w->dead) return;
    bool ok = set_text(&w->next, p->next != NULL ? p->next : "");
    ok = ok && (p->next != NULL || set_text(&w->version, p->version));
    if (!ok) {
        note_fault(w, "no memory for a version");
        clear(&w->next);
        back_off(w, 0);
        return;
    }
    if (p->next == NULL) sink_end(w);
    if (!w->dead) ask(w);
}

static void take_page(KubeWatch *w, const KubeReply *r) {
    KubeWatchPage p;
    if (kube_watch_page_parse(r->body, r->len, &p) != ERR_OK) {
        note_fault(w, err_why());
        back_off(w, 0);
        return;
    }
    put_items(w, &p);
    kube_watch_page_free(&p);
}

static void collection_missing(KubeWatch *w) {
    clear(&w->version);
    clear(&w->next);
    w->counts.synced = false;
    pause_for(w, w->pace.missing);
    if (w->sink.missing != NULL) w->sink.missing(w->sink.self);
}

// What the server said makes no sense at this version: once more, then a list.
static void set_back(KubeWatch *w, TimeNs retry_after) {
    if (++w->setbacks >= 2) forget_version(w);
    back_off(w, retry_after);
}

static void describe(KubeWatch *w, const KubeReply *r) {
    char why[160];
    (void)snprintf(why, sizeof why, "HTTP status %u %.100s", r->status, r->body);
    note_fault(w, r->fault != NULL ? r->fault : why);
}

static void list_failed(KubeWatch *w, const KubeReply *r) {
    describe(w, r);
    if (r->too_large && w->page > 1)
        w->page /= 2;
    else if (r->outcome == KUBE_DONE && r->status == 410)
        clear(&w->next);
    back_off(w, r->retry_after);
}

static void watch_failed(KubeWatch *w, const KubeReply *r) {
    bool done = r->outcome == KUBE_DONE;
    describe(w, r);
    if (done && r->status == 410) {
        forget_version(w);
        if (w->untried) back_off(w, 0);
    } else if (r->too_large) {  // the same line would come again
        forget_version(w);
        back_off(w, 0);
    } else if (done && r->status >= 400 && r->status < 500 && r->status != 401 &&
               r->status != 403 && r->status != 429) {
        set_back(w, r->retry_after);
    } else {
        back_off(w, r->retry_after);
    }
    if (!w->waiting) ask(w);
}

// One that ends at once without a word would otherwise be asked for without a pause.
static void watch_ended(KubeWatch *w) {
    w->untried = false;
    if (w->progress || clock_monotonic_ns() - w->began > SECOND)
        ask(w);
    else
        back_off(w, 0);
}

static void release(KubeWatch *w) {
    loop_disarm(w->loop, &w->timer);
    free(w->path);
    free(w->selector);
    free(w->version.at);
    free(w->next.at);
    free(w->url.at);
    free(w);
}

static void leave(KubeWatch *w) {
    if (--w->busy == 0 && w->dead) release(w);
}

static void on_done(void *self, KubeCall *c, const KubeReply *r) {
    KubeWatch *w = self;
    bool       good = r->outcome == KUBE_DONE && r->status == 200;
    (void)c;
    w->busy++;
    arm(w, w->waiting ? w->timer.at : INT64_MAX);
    if (r->outcome == KUBE_DONE) w->counts.heard = loop_now(w->loop);
    if (w->waiting)  // a line ended the watch, and said what follows
        good = true;
    else if (r->outcome == KUBE_DONE && r->status == 404)
        collection_missing(w);
    else if (w->watching && good)
        watch_ended(w);
    else if (w->watching)
        watch_failed(w, r);
    else if (good)
        take_page(w, r);
    else
        list_failed(w, r);
    leave(w);
}

// An ERROR event: 410 means that the version is gone.
static void take_error(KubeWatch *w, const KubeWatchEvent *e) {
    const char *message = json_string_value(json_object_get(e->object, "message"));
    char        why[200];
    (void)snprintf(why, sizeof why, "an ERROR event, code %lld: %.120s", (long long)e->code,
                   message != NULL ? message : "");
    note_fault(w, why);
    if (e->code != 410) {
        set_back(w, 0);
        return;
    }
    forget_version(w);
    if (w->untried)
        back_off(w, 0);
    else
        pause_for(w, 0);
}

static void take_event(KubeWatch *w, const KubeWatchEvent *e) {
    w->progress = true;
    w->untried = false;
    w->setbacks = 0;
    if (!set_text(&w->version, e->version)) {  // resuming at the old one repeats events
        note_fault(w, "no memory for a version");
        back_off(w, 0);
        return;
    }
    if (e->type == WATCH_BOOKMARK) {
        w->counts.bookmarks++;
        return;
    }
    w->counts.events++;
    if (e->type == WATCH_GONE)
        w->sink.gone(w->sink.self, e->object);
    else
        w->sink.put(w->sink.self, e->object);
}

// Returns false where a pause was begun: the call ends, and the timer goes on.
static bool on_line(void *self, const char *text, size_t len) {
    KubeWatch     *w = self;
    KubeWatchEvent e;
    w->counts.heard = loop_now(w->loop);
    arm(w, clock_monotonic_ns() + w->timeout_s * SECOND + w->pace.silence);
    if (kube_watch_event_parse(text, len, &e) != ERR_OK) {
        note_fault(w, err_why());
        set_back(w, 0);
        return false;
    }
    w->busy++;
    if (e.type == WATCH_ERROR)
        take_error(w, &e);
    else
        take_event(w, &e);
    kube_watch_event_free(&e);
    bool on = !w->waiting && !w->dead;
    leave(w);
    return on;
}

static void on_timer(void *self) {
    KubeWatch *w = self;
    arm(w, INT64_MAX);  // again, in the place that it had
    if (!w->waiting) {
        kube_api_cancel(w->api, &w->call);
        note_fault(w, "the watch was silent beyond its time-out; it is opened again");
    }
    ask(w);
}

static void set_pace(KubeWatch *w, const KubeWatchPace *p) {
    w->pace = *p;
    if (w->pace.first == 0) w->pace.first = 800 * MS;
    if (w->pace.most == 0) w->pace.most = 30 * SECOND;
    if (w->pace.reset == 0) w->pace.reset = 120 * SECOND;
    if (w->pace.missing == 0) w->pace.missing = 60 * SECOND;
    if (w->pace.watch_s == 0) w->pace.watch_s = 300;
    if (w->pace.silence == 0) w->pace.silence = 30 * SECOND;
    if (w->pace.page == 0) w->pace.page = 500;
    w->page = w->pace.page;
}

Err kube_watch_start(KubeWatch **out, KubeApi *a, Loop *l, const char *path, const char *selector,
                     const KubeWatchSink *sink, Rng rng) {
    KubeWatch *w = calloc(1, sizeof *w);
    if (w == NULL) return err_set(ERR_LIMIT, "no memory for a watch");
    *w = (KubeWatch){.api = a, .loop = l, .sink = *sink, .rng = rng};
    w->timer = (LoopTimer){.fire = on_timer, .self = w};
    set_pace(w, &(KubeWatchPace){0});
    w->path = strdup(path);
    bool ok = w->path != NULL && asprintf(&w->selector, "%s%s", selector != NULL ? "&" : "",
                                          selector != NULL ? selector : "") >= 0;
    if (!ok) w->selector = NULL;  // asprintf leaves it undefined
    Err e = ok ? ERR_OK : err_set(ERR_LIMIT, "no memory for a watch");
    w->waiting = true;  // begins in the loop's next round
    if (e == ERR_OK) e = loop_arm(l, &w->timer, loop_now(l));
    if (e != ERR_OK) {
        release(w);
        return e;
    }
    *out = w;
    return ERR_OK;
}

void kube_watch_pace(KubeWatch *w, const KubeWatchPace *p) { set_pace(w, p); }

void kube_watch_stop(KubeWatch *w) {
    if (w == NULL) return;
    kube_api_cancel(w->api, &w->call);
    w->dead = true;
    if (w->busy == 0) release(w);
}

KubeWatchCounts kube_watch_counts(const KubeWatch *w) { return w->counts; }

const char *kube_watch_fault(const KubeWatch *w) { return w->fault; }
