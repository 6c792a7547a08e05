#include "serve/dispatcher.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/clock.h"
#include "serve/dispatcher_int.h"

enum { KEPT_BYTES = 256 << 20, KEPT_EACH = 8 << 20, DAY_S = 86400 };

static const TimeNs day_ns = DAY_S * INT64_C(1000000000);

static TimeNs now(void) { return clock_now(clock_monotonic()); }

static InferCallState *state_of(InferCall *a) { return (InferCallState *)(void *)a; }

static size_t arena_bytes(const Dispatcher *d) {
    size_t body = (size_t)d->o.set->body_mb << 20, answer = (size_t)d->o.set->response_mb << 20;
    return 8 * body + 3 * answer + ((size_t)1 << 24);
}

Err dispatcher_create(Dispatcher **out, const DispatcherOptions *o) {
    Dispatcher *d = calloc(1, sizeof *d);
    if (d == NULL) return err_set(ERR_LIMIT, "no memory for a dispatcher");
    d->o = *o;
    d->n = (uint32_t)o->set->requests;
    d->calls = calloc(d->n, sizeof *d->calls);
    if (d->calls == NULL) {
        free(d);
        return err_set(ERR_LIMIT, "no memory for %d requests; lower `requests`", o->set->requests);
    }
    for (uint32_t i = d->n; i-- > 0;) {
        d->calls[i].dispatcher = d;
        d->calls[i].next = d->free;
        d->free = &d->calls[i];
    }
    *out = d;
    return ERR_OK;
}

void dispatcher_destroy(Dispatcher *d) {
    if (d == NULL) return;
    CHECK(d->busy == 0);
    for (uint32_t i = 0; i < d->n; i++) arena_finish(&d->calls[i].call.arena);
    free(d->calls);
    free(d);
}

uint32_t dispatcher_in_flight(const Dispatcher *d) { return d->busy; }

const char *const *dispatcher_tenant_names(const Dispatcher *d, uint32_t *n) {
    *n = LIVE_TENANTS;
    return d->names;
}

static bool has_arena(Dispatcher *d, InferCallState *e) {
    if (e->call.arena.base != NULL) {
        d->kept_bytes -= e->call.arena.high;
        return true;
    }
    return arena_init(&e->call.arena, arena_bytes(d)) == ERR_OK;
}

InferCall *dispatcher_open(Dispatcher *d, ReceiptProtocol protocol, TimeNs began, TimeNs arrived,
                           size_t bytes) {
    InferCallState *e = d->free;
    if (e == NULL || d->rejecting || !has_arena(d, e)) return NULL;
    d->free = e->next;
    d->busy++;
    Arena arena = e->call.arena;
    *e = (InferCallState){.call = {.arena = arena}, .dispatcher = d, .state = CALL_OPEN};
    e->call.receipt = (Receipt){.slot = UINT32_MAX,
                                .protocol = protocol,
                                .began = began,
                                .arrived = arrived,
                                .in_bytes = bytes};
    return &e->call;
}

// Memory that was needed once is kept for the next request, within bounds.
static void recycle(InferCallState *e) {
    Dispatcher *d = e->dispatcher;
    if (e->body != NULL) e->body->give(e->body);
    if (e->call.served != NULL) registry_release(d->o.registry, e->call.served);
    arena_rewind(&e->call.arena, 0);
    size_t high = e->call.arena.high;
    if (high > KEPT_EACH || d->kept_bytes + high > KEPT_BYTES)
        arena_finish(&e->call.arena);
    else
        d->kept_bytes += high;
    e->state = CALL_FREE;
    e->next = d->free;
    d->free = e;
    d->busy--;
}

// The client's name for it if it is one word that can be printed, or a number of our own.
static void name_it(Dispatcher *d, InferCall *a) {
    Str    id = a->request.id;
    size_t n = id.len < RECEIPT_ID - 1 ? id.len : RECEIPT_ID - 1;
    bool   plain = id.len > 0 && id.len < RECEIPT_ID;
    for (size_t i = 0; i < n && plain; i++) plain = id.at[i] > ' ' && id.at[i] < 127;
    if (plain)
        memcpy(a->receipt.id, id.at, n);
    else
        (void)snprintf(a->receipt.id, sizeof a->receipt.id, "r-%llu",
                       (unsigned long long)++d->next_id);
}

// What went wrong is told as it happens; what went well only to who asks for everything.
static void log_it(const InferCallState *e) {
    const Receipt *r = &e->call.receipt;
    bool           bad = r->end == RECEIPT_FAILED || r->end == RECEIPT_STUCK;
    LogLevel       level = bad ? LOG_ERROR : r->met ? LOG_DEBUG : LOG_INFO;
    if (level < e->dispatcher->o.log->least || r->model == NULL) return;
    log_with(e->dispatcher->o.log, level, "request", log_text("id", r->id),
             log_text("model", r->model), log_text("end", receipt_end_name(r->end)),
             log_bool("met", r->met), log_real("ms", (double)receipt_latency(r) / 1e6),
             log_text("why", r->cause[0] != 0 ? r->cause : e->call.error));
}

static void note(InferCallState *e) {
    e->call.receipt.answered = now();
    receipt_explain(&e->call.receipt);
    metrics_note(e->dispatcher->o.metrics, &e->call.receipt);
    request_history_add(e->dispatcher->o.history, &e->call.receipt);
    log_it(e);
}

// Tells the front, unless it has left.
static void say(InferCallState *e) {
    e->state = CALL_OPEN;
    note(e);
    if (e->call.receipt.end != RECEIPT_OK)
        dispatcher_set_error(e);
    else if (e->call.request.timing)
        dispatcher_add_timing(&e->call);
    if (e->gone)
        recycle(e);
    else
        e->call.done(e->call.self, &e->call);
}

static void fail(InferCallState *e, ReceiptEnd end, const char *why) {
    e->call.receipt.end = end;
    (void)snprintf(e->call.error, sizeof e->call.error, "%s", why);
    say(e);
}

static ReceiptEnd end_of(const InferCallState *e) {
    switch (e->end) {
    case LIVE_DONE: return e->no_room ? RECEIPT_LARGE : RECEIPT_OK;
    case LIVE_REFUSED: return RECEIPT_REJECTED;
    case LIVE_FULL: return RECEIPT_FULL;
    case LIVE_EXPIRED: return RECEIPT_EXPIRED;
    case LIVE_CANCELLED: return RECEIPT_CANCELLED;
    case LIVE_FAILED:  // what the numbers of a request bring about is no fault of the model
        return e->error == ERR_INVALID ? RECEIPT_BAD
               : e->error == ERR_LIMIT ? RECEIPT_LARGE
                                       : RECEIPT_FAILED;
    case LIVE_STUCK: return RECEIPT_STUCK;
    }
    return RECEIPT_FAILED;
}

static const char *tenant_name(const Dispatcher *d, uint32_t tenant) {
    return tenant < LIVE_TENANTS ? d->names[tenant] : NULL;
}

// What it says about the model, and what went wrong in the model's words.
static void judge(InferCallState *e) {
    ReceiptEnd end = end_of(e);
    bool       failed = end == RECEIPT_FAILED || end == RECEIPT_STUCK;
    if (failed || e->end == LIVE_DONE)
        registry_note_result(e->dispatcher->o.registry, e->call.served, failed);
    if (e->end == LIVE_FAILED)
        (void)snprintf(e->call.error, sizeof e->call.error, "the model failed: %s", e->failed);
}

// The engine has answered; on the loop's thread again.
static void take_back(void *self) {
    InferCallState *e = self;
    Receipt        *r = &e->call.receipt;
    registry_release_shape(e->dispatcher->o.registry, e->call.served, e->tenant);
    r->end = e->gone ? RECEIPT_CANCELLED : end_of(e);
    r->finished = e->finish;
    r->timing = e->timing;
    r->behind = tenant_name(e->dispatcher, e->timing.behind);
    r->paused_by = tenant_name(e->dispatcher, e->timing.paused_by);
    r->met = r->end == RECEIPT_OK && e->outcome == OUTCOME_MET;
    judge(e);
    e->call.response.tensors = e->outputs;
    say(e);
}

static void computed(void *self, const EngineResult *a) {  // on a worker
    InferCallState *e = self;
    e->end = a->end;
    e->outcome = a->outcome;
    e->finish = a->finish;
    e->timing = a->timing;
    e->error = a->error;
    if (a->failed != NULL) (void)snprintf(e->failed, sizeof e->failed, "%s", a->failed);
    if (a->end == LIVE_DONE) e->no_room = !dispatcher_copy_outputs(e, a->outputs);
    loop_post(e->dispatcher->o.loop, &e->computed);
}

static TimeNs least(TimeNs a, TimeNs b) { return a == 0 || (b != 0 && b < a) ? b : a; }

static bool is(const char *text, const char *word) { return strcmp(text, word) == 0; }

static void set_deadline(InferCallState *e, TimeNs target_ns) {
    TimeNs target = least(target_ns, e->limit);
    bool   firm = is(e->call.served->config->set.on_miss, "reject");
    TimeNs limit = e->limit == 0 && firm ? target : e->limit;
    e->deadline = e->arrival + (target > 0 ? target : day_ns);
    e->expire = limit > 0 ? e->arrival + limit : 0;
    bool aims = limit > 0 || !is(e->call.served->config->set.class, "best_effort");
    e->call.receipt.deadline = aims ? e->deadline : 0;
    e->call.receipt.expire = e->expire;
}

// What the client allows: the tightest of a header, a parameter and the model's setting.
static void set_times(InferCallState *e, TimeNs timeout_ns) {
    const TenantSettings *set = &e->call.served->config->set;
    int64_t               us = e->call.request.timeout_us;
    TimeNs                limit = timeout_ns;
    if (us > 0) limit = least(limit, us < day_ns / 1000 ? us * 1000 : day_ns);
    if (limit == 0 && set->timeout_ms > 0) limit = (TimeNs)(set->timeout_ms * 1e6);
    e->limit = limit < day_ns ? limit : day_ns;
    e->arrival = e->call.receipt.arrived;
    set_deadline(e, e->call.served->target_ns);
}

static void hand_over(InferCallState *e) {
    Dispatcher *d = e->dispatcher;
    ModelInfo  *s = e->call.served;
    set_deadline(e, registry_target_ns(s, e->tenant));
    EngineRequest request = {.tenant = e->tenant,
                             .arrival = e->arrival,
                             .deadline = e->deadline,
                             .expire = e->expire,
                             .late_ok = !is(s->config->set.on_miss, "reject"),
                             .priority = (double)e->call.request.priority,
                             .cancelled = &e->cancelled,
                             .inputs = e->inputs,
                             .done = computed,
                             .self = e};
    e->computed.run = take_back;
    e->computed.self = e;
    e->state = CALL_ENGINE;
    e->call.receipt.submitted = now();
    if (d->names[e->tenant] != s->name) {
        d->names[e->tenant] = s->name;
        metrics_tenant(d->o.metrics, e->tenant, s->slot);
    }
    if (node_live_submit(d->o.engine, &request)) return;
    registry_release_shape(d->o.registry, s, e->tenant);
    fail(e, RECEIPT_FULL, "as many requests as the server takes are on their way");
}

static void fit(void *self);

static void too_late(void *self) {
    InferCallState *e = self;
    registry_cancel_wait(e->dispatcher->o.registry, e->call.served, &e->compiled);
    e->call.receipt.end = RECEIPT_EXPIRED;
    say(e);
}

static void wait_for_shape(InferCallState *e) {
    e->state = CALL_COMPILING;
    e->expiry = (LoopTimer){.fire = too_late, .self = e};
    if (e->expire == 0) return;
    if (loop_arm(e->dispatcher->o.loop, &e->expiry, e->expire) == ERR_OK) return;
    registry_cancel_wait(e->dispatcher->o.registry, e->call.served, &e->compiled);
    fail(e, RECEIPT_MEMORY, "no memory for a timer");
}

static void fit(void *self) {
    InferCallState *e = self;
    Dispatcher     *d = e->dispatcher;
    if (e->state == CALL_COMPILING) loop_disarm(d->o.loop, &e->expiry);
    e->compiled.run = fit;
    e->compiled.self = e;
    switch (
        registry_find_shape(d->o.registry, e->call.served, e->inputs, &e->compiled, &e->tenant)) {
    case SHAPE_READY: hand_over(e); break;
    case SHAPE_COMPILING: wait_for_shape(e); break;
    case SHAPE_INVALID: fail(e, RECEIPT_BAD, err_why()); break;
    case SHAPE_TOO_LARGE: fail(e, RECEIPT_LARGE, err_why()); break;
    }
}

// The model, or NULL and the receipt says why there is none.
static ModelInfo *find(InferCallState *e, Str model, Str version) {
    ModelInfo *s = registry_find(e->dispatcher->o.registry, model, version);
    InferCall *a = &e->call;
    if (s == NULL) {
        (void)snprintf(a->error, sizeof a->error, "model '%.*s'%s%.*s is not known",
                       model.len < 128 ? (int)model.len : 128, model.at,
                       version.len > 0 ? " version " : "", version.len < 32 ? (int)version.len : 32,
                       version.len > 0 ? version.at : "");
        a->receipt.end = RECEIPT_UNKNOWN;
        return NULL;
    }
    a->receipt.slot = s->slot;
    a->receipt.model = s->name;
    a->receipt.version = s->version;
    return s;
}

static bool is_servable(InferCallState *e, const ModelInfo *s) {
    InferCall *a = &e->call;
    if (s->state == MODEL_READY && s->quarantined <= now()) return true;
    bool held = s->state == MODEL_READY;
    a->receipt.end = held ? RECEIPT_QUARANTINED : RECEIPT_UNREADY;
    TimeNs left = s->quarantined - now();
    a->retry_s = held ? (uint32_t)(left / 1000000000) + 1 : 1;
    (void)snprintf(a->error, sizeof a->error,
                   held ? "model '%s' failed too often and rests for %u s"
                        : "model '%s' is not ready, try again in %u s",
                   s->name, a->retry_s);
    return false;
}

static Err choose(InferCallState *e) {
    InferCall            *a = &e->call;
    const ModelSignature *p = &a->served->signature;
    uint32_t              n = 0;
    bool                 *binary = arena_try_new(&a->arena, bool, p->n_outputs);
    TensorSpec           *specs = arena_try_new(&a->arena, TensorSpec, p->n_outputs);
    e->chosen = arena_try_new(&a->arena, uint32_t, p->n_outputs);
    e->outputs = arena_try_new(&a->arena, Tensor, p->n_outputs);
    e->inputs = arena_try_new(&a->arena, Tensor, p->n_inputs);
    if (binary == NULL || specs == NULL || e->chosen == NULL || e->outputs == NULL ||
        e->inputs == NULL)
        return err_set(ERR_LIMIT, "no memory for the request");
    TRY(infer_bind_inputs(p, &a->request, &a->arena, e->inputs));
    TRY(infer_select_outputs(p, &a->request, e->chosen, binary, &n));
    for (uint32_t i = 0; i < n; i++) specs[i] = p->outputs[e->chosen[i]];
    a->response = (InferResponse){.model = a->served->name,
                                  .version = a->served->version,
                                  .id = a->request.id,
                                  .specs = specs,
                                  .binary = binary,
                                  .n = n};
    return ERR_OK;
}

static Err check_batch(const InferCallState *e) {
    const ModelInfo *s = e->call.served;
    int64_t          most = s->config->set.max_batch;
    bool             open = s->signature.n_inputs > 0 && s->signature.inputs[0].type.rank > 0 &&
                s->signature.inputs[0].type.dims[0] < 0;
    if (!open || most == 0 || e->inputs[0].rank < 1 || e->inputs[0].dims[0] <= most) return ERR_OK;
    return err_set(ERR_INVALID, "a batch of %lld, and model '%s' takes at most %lld",
                   (long long)e->inputs[0].dims[0], s->name, (long long)most);
}

static ReceiptEnd end_for(Err e) {
    if (e == ERR_LIMIT) return RECEIPT_LARGE;
    return e == ERR_PARSE || e == ERR_INVALID || e == ERR_ARG || e == ERR_UNSUPPORTED
               ? RECEIPT_BAD
               : RECEIPT_FAILED;
}

void dispatcher_submit(Dispatcher *d, InferCall *a, Str model, Str version, TimeNs timeout_ns,
                       void (*done)(void *self, InferCall *a), void *self) {
    InferCallState *e = state_of(a);
    a->done = done;
    a->self = self;
    a->receipt.decoded = now();
    name_it(d, a);
    ModelInfo *s = find(e, model, version);
    if (s == NULL || !is_servable(e, s)) {
        say(e);
        return;
    }
    a->served = s;
    registry_pin(s);
    set_times(e, timeout_ns);
    Err bad = choose(e);
    if (bad == ERR_OK) bad = check_batch(e);
    if (bad != ERR_OK) {
        fail(e, end_for(bad), err_why());
        return;
    }
    a->receipt.batch = a->served->signature.n_inputs > 0 && e->inputs[0].rank > 0
                           ? (uint32_t)e->inputs[0].dims[0]
                           : 1;
    if (e->expire != 0 && e->expire <= a->receipt.decoded) {
        a->receipt.end = RECEIPT_EXPIRED;
        say(e);
        return;
    }
    fit(e);
}

void dispatcher_reject(Dispatcher *d, InferCall *a, Str model, Str version, Err bad) {
    InferCallState *e = state_of(a);
    char            why[sizeof a->error];
    (void)snprintf(why, sizeof why, "%s", err_why());
    name_it(d, a);
    if (find(e, model, version) != NULL) {
        a->receipt.end = end_for(bad);
        (void)snprintf(a->error, sizeof a->error, "%s", why);
    }
    note(e);
}

void dispatcher_cancel(Dispatcher *d, InferCall *a, ExchangeBody *body) {
    InferCallState *e = state_of(a);
    e->gone = true;
    e->body = body;
    a->receipt.end = RECEIPT_CANCELLED;
    if (e->state == CALL_ENGINE) {
        atomic_store(&e->cancelled, true);
        node_live_cancel(d->o.engine);
        return;
    }
    if (e->state == CALL_COMPILING) {
        loop_disarm(d->o.loop, &e->expiry);
        registry_cancel_wait(d->o.registry, a->served, &e->compiled);
    }
    note(e);
    recycle(e);
}

void dispatcher_close(Dispatcher *d, InferCall *a, size_t bytes) {
    (void)d;
    a->receipt.out_bytes = bytes;
    recycle(state_of(a));
}

void dispatcher_reject_all(Dispatcher *d) {
    d->rejecting = true;
    for (uint32_t i = 0; i < d->n; i++)
        if (d->calls[i].state == CALL_ENGINE) atomic_store(&d->calls[i].cancelled, true);
    node_live_cancel(d->o.engine);
}
