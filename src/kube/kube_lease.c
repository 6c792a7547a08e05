#include "kube/kube_lease.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static const TimeNs MS = 1000000, SECOND = 1000000000;
static const double JITTER = 1.2;  // of a candidate's period: client-go's

enum { LEASE_TEXT = 256, LEASE_PATH = 1024, LEASE_DURATION_MOST = 3600, RELEASE_TRIES = 3 };

typedef enum LeaseStep { LEASE_IDLE, LEASE_GET, LEASE_CREATE, LEASE_PUT } LeaseStep;

struct KubeLease {
    KubeApi         *api;
    Loop            *loop;
    KubeLeaseOptions options;
    Rng              rng;
    void (*changed)(void *self, bool held);
    void *self;
    void (*released)(void *self);  // NULL: no release was asked for
    void     *released_self;
    uint32_t  releases;  // tries
    bool      given_up;  // the release is over: the timer calls released()
    KubeCall  call;
    LeaseStep step;
    LoopTimer timer, expiry;  // always armed, so that arming cannot fail
    TimeNs    sent;
    char      collection[LEASE_PATH], path[LEASE_PATH], identity[LEASE_TEXT];
    char      namespace_name[LEASE_TEXT], name[LEASE_TEXT];
    char     *body;
    // As last seen:
    json_t  *object;  // NULL: nothing yet, or there is none
    char    *record;  // its spec as text
    char     holder[LEASE_TEXT];
    TimeNs   observed;  // when the record was last seen to change
    bool     current;   // the object is what our last write left
    bool     held;
    TimeNs   held_until;
    bool     renewing;  // the write needed no reading before it
    uint32_t busy;      // callbacks on the stack
    bool     dead;      // stopped within a callback
};

static void arm(KubeLease *x, LoopTimer *t, TimeNs at) {
    Err e = loop_arm(x->loop, t, at);
    CHECK(e == ERR_OK);  // it is armed already: nothing is allocated
}

static void wait_for(KubeLease *x, TimeNs delay) {
    arm(x, &x->timer, clock_monotonic_ns() + delay);
}

// Candidates spread out; the holder keeps its rhythm.
static void wait_period(KubeLease *x) {
    double more = x->held ? 0 : JITTER * rng_unit64(&x->rng);
    wait_for(x, x->options.period + (TimeNs)((double)x->options.period * more));
}

static json_t *spec_of(const KubeLease *x) { return json_object_get(x->object, "spec"); }

static bool is_own(const KubeLease *x) { return strcmp(x->holder, x->identity) == 0; }

static void forget(KubeLease *x) {
    json_decref(x->object);
    free(x->record);
    x->object = NULL;
    x->record = NULL;
    x->holder[0] = '\0';
    x->current = false;
}

// An observed record counts from the moment when it was seen to change, by this machine's clock.
static bool observe(KubeLease *x, const KubeReply *r) {
    json_error_t why;
    json_t      *object = json_loadb(r->body, r->len, JSON_ALLOW_NUL, &why);
    const char  *holder =
        json_string_value(json_object_get(json_object_get(object, "spec"), "holderIdentity"));
    char *record = json_dumps(json_object_get(object, "spec"),
                              JSON_SORT_KEYS | JSON_COMPACT | JSON_ENCODE_ANY);
    if (!json_is_object(json_object_get(object, "metadata")) || record == NULL) {
        json_decref(object);
        free(record);
        return false;
    }
    if (x->record == NULL || strcmp(x->record, record) != 0) x->observed = clock_monotonic_ns();
    forget(x);
    x->object = object;
    x->record = record;
    (void)snprintf(x->holder, sizeof x->holder, "%s", holder != NULL ? holder : "");
    return true;
}

// The holder's own promise, if it is sensible.
static bool has_expired(const KubeLease *x) {
    json_int_t seconds = json_integer_value(json_object_get(spec_of(x), "leaseDurationSeconds"));
    TimeNs     duration = x->options.duration;
    if (seconds > 0 && seconds <= LEASE_DURATION_MOST) duration = seconds * SECOND;
    return clock_monotonic_ns() - x->observed > duration;
}

static void lose(KubeLease *x) {
    if (!x->held) return;
    x->held = x->current = false;
    arm(x, &x->expiry, INT64_MAX);
    x->changed(x->self, false);
}

// The deadline counts from before the request was sent.
static void hold(KubeLease *x) {
    bool had = x->held;
    x->current = true;
    x->held_until = x->sent + x->options.deadline;
    if (clock_monotonic_ns() >= x->held_until) return;  // an expiry that is due follows
    x->held = true;
    arm(x, &x->expiry, x->held_until);
    if (!had) x->changed(x->self, true);
}

static void time_text(char out[48]) {
    TimeNs    now = clock_now(clock_realtime());
    time_t    seconds = (time_t)(now / SECOND);
    struct tm t;
    char      date[32];
    (void)gmtime_r(&seconds, &t);
    (void)strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%S", &t);
    (void)snprintf(out, 48, "%s.%06dZ", date, (int)(now % SECOND / 1000));
}

static bool set_spec(KubeLease *x, json_t *spec, bool release) {
    char       now[48];
    TimeNs     duration = release ? SECOND : x->options.duration;
    bool       take = !is_own(x), first = json_object_size(spec) == 0;
    json_int_t changes = json_integer_value(json_object_get(spec, "leaseTransitions"));
    time_text(now);
    bool ok =
        json_object_set_new(spec, "holderIdentity", json_string(release ? "" : x->identity)) == 0;
    ok = ok && json_object_set_new(spec, "leaseDurationSeconds",
                                   json_integer((duration + SECOND - 1) / SECOND)) == 0;
    ok = ok && json_object_set_new(spec, "renewTime", json_string(now)) == 0;
    if (take || release) ok = ok && json_object_set_new(spec, "acquireTime", json_string(now)) == 0;
    ok = ok && json_object_set_new(spec, "leaseTransitions",
                                   json_integer(take && !first ? changes + 1 : changes)) == 0;
    return ok;
}

static void on_done(void *self, KubeCall *c, const KubeReply *r);

static void send_call(KubeLease *x, LeaseStep step, const char *method, const char *path) {
    x->step = step;
    x->sent = clock_monotonic_ns();
    x->call = (KubeCall){.method = method,
                         .path = path,
                         .body = x->body,
                         .len = x->body != NULL ? strlen(x->body) : 0,
                         .timeout = x->options.deadline / 2,
                         .urgent = true,
                         .done = on_done,
                         .self = x};
    kube_api_submit(x->api, &x->call);
}

static void get(KubeLease *x) {
    free(x->body);
    x->body = NULL;
    send_call(x, LEASE_GET, "GET", x->path);
}

// The object as it was read, with its resourceVersion, so that a write in between is a conflict.
static void put(KubeLease *x, bool release) {
    json_t *copy = json_deep_copy(x->object), *spec = json_object_get(copy, "spec");
    if (!json_is_object(spec)) {
        spec = json_object();
        (void)json_object_set_new(copy, "spec", spec);
    }
    free(x->body);
    x->body = set_spec(x, spec, release) ? json_dumps(copy, JSON_COMPACT) : NULL;
    json_decref(copy);
    x->releases += release;
    if (x->body != NULL)
        send_call(x, LEASE_PUT, "PUT", x->path);
    else
        wait_period(x);
}

static void create(KubeLease *x) {
    json_t *object =
        json_pack("{s:s,s:s,s:{s:s,s:s},s:{}}", "apiVersion", "coordination.k8s.io/v1", "kind",
                  "Lease", "metadata", "name", x->name, "namespace", x->namespace_name, "spec");
    free(x->body);
    x->body = object != NULL && set_spec(x, json_object_get(object, "spec"), false)
                  ? json_dumps(object, JSON_COMPACT)
                  : NULL;
    json_decref(object);
    if (x->body != NULL)
        send_call(x, LEASE_CREATE, "POST", x->collection);
    else
        wait_period(x);
}

static void give_up(KubeLease *x) {
    x->given_up = true;
    wait_for(x, 0);
}

static void release_step(KubeLease *x) {
    if (x->releases == RELEASE_TRIES || (x->current && !is_own(x)))
        give_up(x);
    else if (x->current)
        put(x, true);
    else
        get(x);
}

static void attempt(KubeLease *x) {
    x->renewing = x->held && x->current && is_own(x);
    if (x->renewing)
        put(x, false);
    else
        get(x);
}

static void was_read(KubeLease *x, const KubeReply *r) {
    if (r->outcome == KUBE_DONE && r->status == 404) {
        forget(x);
        if (x->released != NULL)
            give_up(x);
        else
            create(x);
        return;
    }
    if (r->outcome != KUBE_DONE || r->status != 200 || !observe(x, r)) {
        x->releases += x->released != NULL;
        wait_period(x);
        return;
    }
    bool vacant = *x->holder == '\0' || is_own(x);
    if (!is_own(x)) lose(x);
    if (x->dead) return;
    if (x->released != NULL && is_own(x))
        put(x, true);
    else if (x->released != NULL)
        give_up(x);
    else if (vacant || has_expired(x))
        put(x, false);
    else
        wait_period(x);
}

static void was_written(KubeLease *x, const KubeReply *r) {
    bool good = r->outcome == KUBE_DONE && (r->status == 200 || r->status == 201);
    good = good && observe(x, r);
    x->current = false;
    if (x->released != NULL) {
        x->current = good;
        release_step(x);
        return;
    }
    if (good && is_own(x)) hold(x);
    if (x->dead) return;
    if (x->renewing && r->outcome == KUBE_DONE && r->status == 409)
        attempt(x);  // reads it at once
    else
        wait_period(x);
}

static void release_memory(KubeLease *x) {
    loop_disarm(x->loop, &x->timer);
    loop_disarm(x->loop, &x->expiry);
    forget(x);
    free(x->body);
    free(x);
}

static void leave(KubeLease *x) {
    if (--x->busy == 0 && x->dead) release_memory(x);
}

static void on_done(void *self, KubeCall *c, const KubeReply *r) {
    KubeLease *x = self;
    LeaseStep  step = x->step;
    (void)c;
    x->busy++;
    x->step = LEASE_IDLE;
    if (step == LEASE_GET)
        was_read(x, r);
    else
        was_written(x, r);
    leave(x);
}

static void on_timer(void *self) {
    KubeLease *x = self;
    x->busy++;
    arm(x, &x->timer, INT64_MAX);  // again, in the place that it had
    if (x->given_up)
        x->released(x->released_self);
    else if (x->released != NULL)
        release_step(x);
    else
        attempt(x);
    leave(x);
}

static void on_expiry(void *self) {
    KubeLease *x = self;
    x->busy++;
    arm(x, &x->expiry, INT64_MAX);
    lose(x);
    leave(x);
}

// A name as Kubernetes allows it, which needs no encoding in a path.
static bool is_name(const char *text) {
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz0123456789-.";
    size_t            len = text != NULL ? strspn(text, letters) : 0;
    return len > 0 && len < LEASE_TEXT && text[len] == '\0' && *text != '.';
}

static Err check_options(const KubeLeaseOptions *o) {
    if (!is_name(o->namespace_name) || !is_name(o->name))
        return err_set(ERR_ARG, "a lease needs a namespace and a name of a-z, 0-9, - and .");
    if (o->identity == NULL || *o->identity == '\0' || strlen(o->identity) >= LEASE_TEXT)
        return err_set(ERR_ARG, "a lease needs an identity of 1 to %d bytes", LEASE_TEXT - 1);
    if (o->period > 0 && o->deadline > o->period && o->duration > o->deadline) return ERR_OK;
    return err_set(ERR_ARG,
                   "lease '%s': the duration must be longer than the deadline for renewals, and "
                   "that longer than the period",
                   o->name);
}

static void fill_texts(KubeLease *x) {
    const KubeLeaseOptions *o = &x->options;
    (void)snprintf(x->collection, sizeof x->collection,
                   "/apis/coordination.k8s.io/v1/namespaces/%s/leases", o->namespace_name);
    (void)snprintf(x->path, sizeof x->path, "%s/%s", x->collection, o->name);
    (void)snprintf(x->identity, sizeof x->identity, "%s", o->identity);
    (void)snprintf(x->namespace_name, sizeof x->namespace_name, "%s", o->namespace_name);
    (void)snprintf(x->name, sizeof x->name, "%s", o->name);
}

Err kube_lease_start(KubeLease **out, KubeApi *a, Loop *l, const KubeLeaseOptions *o, Rng rng,
                     void (*changed)(void *self, bool held), void *self) {
    KubeLeaseOptions filled = *o;
    if (filled.duration == 0) filled.duration = 9 * SECOND;
    if (filled.deadline == 0) filled.deadline = 6 * SECOND;
    if (filled.period == 0) filled.period = 1500 * MS;
    TRY(check_options(&filled));
    KubeLease *x = calloc(1, sizeof *x);
    if (x == NULL) return err_set(ERR_LIMIT, "no memory for a lease");
    *x = (KubeLease){.api = a, .loop = l, .options = filled, .rng = rng};
    x->changed = changed;
    x->self = self;
    fill_texts(x);
    x->timer = (LoopTimer){.fire = on_timer, .self = x};
    x->expiry = (LoopTimer){.fire = on_expiry, .self = x};
    Err e = loop_arm(l, &x->timer, loop_now(l));
    if (e == ERR_OK) e = loop_arm(l, &x->expiry, INT64_MAX);
    if (e != ERR_OK) {
        release_memory(x);
        return e;
    }
    *out = x;
    return ERR_OK;
}

// The clock decides, not the timer: a process that was stopped asks before its timers fire.
bool kube_lease_held(const KubeLease *x) { return x->held && clock_monotonic_ns() < x->held_until; }

const char *kube_lease_holder(const KubeLease *x) { return x->holder; }

void kube_lease_release(KubeLease *x, void (*done)(void *self), void *self) {
    x->held = false;
    x->released = done;
    x->released_self = self;
    arm(x, &x->expiry, INT64_MAX);
    if (x->step == LEASE_IDLE) wait_for(x, 0);  // else once the open call has ended
}

void kube_lease_stop(KubeLease *x) {
    if (x == NULL) return;
    kube_api_cancel(x->api, &x->call);
    x->dead = true;
    if (x->busy == 0) release_memory(x);
}
