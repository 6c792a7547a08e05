#include "serve/dispatcher.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/err.h"
#include "serve/dispatcher_int.h"
#include "serve/server_metadata.h"

enum { DAY_S = 86400 };

static const TimeNs day_ns = DAY_S * INT64_C(1000000000);

Err dispatcher_create(Dispatcher **out, const DispatcherOptions *o) {
    Dispatcher *d = calloc(1, sizeof *d);
    if (d == NULL) return err_set(ERR_LIMIT, "out of memory for the dispatcher");
    d->o = *o;
    d->n = (uint32_t)o->set->requests;
    d->calls = calloc(d->n, sizeof *d->calls);
    if (d->calls == NULL) {
        free(d);
        return err_set(ERR_LIMIT, "out of memory for %d requests; lower `requests`",
                       o->set->requests);
    }
    d->reclaim = (LoopTimer){.fire = dispatcher_reclaim, .self = d};
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
    loop_disarm(d->o.loop, &d->reclaim);
    run_delay_close(&d->delay);
    for (uint32_t i = 0; i < d->n; i++) arena_finish(&d->calls[i].call.arena);
    for (uint32_t i = 0; i < d->n_coroutines; i++) coroutine_destroy(d->coroutines[i]);
    free(d->calls);
    free(d);
}

uint32_t dispatcher_in_flight(const Dispatcher *d) { return d->busy; }

const char *const *dispatcher_tenant_names(const Dispatcher *d, uint32_t *n) {
    *n = LIVE_TENANTS;
    return d->names;
}

// The client's id if it is one printable word shorter than RECEIPT_ID, else r-NUMBER.
static void set_id(Dispatcher *d, InferCall *call) {
    Str    id = call->request.id;
    size_t n = id.len < RECEIPT_ID - 1 ? id.len : RECEIPT_ID - 1;
    if (call->receipt.id[0] != '\0') return;
    bool plain = id.len > 0 && id.len < RECEIPT_ID;
    for (size_t i = 0; i < n && plain; i++) plain = id.at[i] > ' ' && id.at[i] < 127;
    if (plain)
        memcpy(call->receipt.id, id.at, n);
    else
        (void)snprintf(call->receipt.id, sizeof call->receipt.id, "r-%llu",
                       (unsigned long long)++d->next_id);
}

// Failures are logged as errors, misses as info, requests that met their deadlines at debug level.
static void log_request(const InferCallState *e) {
    const Receipt *r = &e->call.receipt;
    bool           bad = r->end == RECEIPT_FAILED || r->end == RECEIPT_STUCK;
    LogLevel       level = bad ? LOG_ERROR : r->met ? LOG_DEBUG : LOG_INFO;
    if (level < e->dispatcher->o.log->min_level || r->model == NULL) return;
    log_with(e->dispatcher->o.log, level, "request", log_text("id", r->id),
             log_text("model", r->model), log_text("end", receipt_end_name(r->end)),
             log_bool("met", r->met), log_real("ms", (double)receipt_latency(r) / 1e6),
             log_bool("degraded", r->timing.degraded),
             log_text("why", e->call.error[0] != 0 ? e->call.error : r->cause));
}

static void record(InferCallState *e) {
    dispatcher_explain(e);
    metrics_note(e->dispatcher->o.metrics, &e->call.receipt);
    request_history_add(e->dispatcher->o.history, &e->call.receipt);
    log_request(e);
}

void dispatcher_complete(InferCallState *e) {
    e->state = CALL_OPEN;
    e->call.receipt.timing.core_ns += e->job_core_ns;
    set_id(e->dispatcher, &e->call);
    record(e);
    if (e->call.receipt.end != RECEIPT_OK) dispatcher_set_error(e);
    if (e->detached)
        dispatcher_release(e);
    else
        e->call.done(e->call.self, &e->call);
}

void dispatcher_end_with(InferCallState *e, ReceiptEnd end, const char *why) {
    e->call.receipt.end = end;
    (void)snprintf(e->call.error, sizeof e->call.error, "%s", why);
    dispatcher_complete(e);
}

// A request that other requests left too little memory may succeed later.
static ReceiptEnd end_for_limit(const InferCallState *e) {
    return budget_crowded(&e->budget) ? RECEIPT_MEMORY : RECEIPT_LARGE;
}

ReceiptEnd dispatcher_end_of(const InferCallState *e) {
    switch (e->end) {
    case LIVE_DONE: return e->no_room ? end_for_limit(e) : RECEIPT_OK;
    case LIVE_REFUSED: return RECEIPT_REJECTED;
    case LIVE_FULL: return RECEIPT_FULL;
    case LIVE_EXPIRED: return RECEIPT_EXPIRED;
    case LIVE_CANCELLED: return RECEIPT_CANCELLED;
    case LIVE_FAILED:  // the inputs' fault, not the model's: they may choose a branch that cannot
                       // run
        return e->error == ERR_INVALID || e->error == ERR_UNSUPPORTED ? RECEIPT_BAD
               : e->error == ERR_LIMIT                                ? end_for_limit(e)
                                                                      : RECEIPT_FAILED;
    case LIVE_STUCK: return RECEIPT_STUCK;
    }
    return RECEIPT_FAILED;
}

static const char *tenant_name(const Dispatcher *d, uint32_t tenant) {
    return tenant < LIVE_TENANTS ? d->names[tenant] : NULL;
}

// Counts the result for the model's quarantine; keeps the message of a layer that failed.
static void note_result(InferCallState *e) {
    ReceiptEnd end = dispatcher_end_of(e);
    bool       failed = end == RECEIPT_FAILED || end == RECEIPT_STUCK;
    if (failed || e->end == LIVE_DONE)
        registry_note_result(e->dispatcher->o.registry, e->call.model,
                             end == RECEIPT_STUCK    ? MODEL_STUCK
                             : end == RECEIPT_FAILED ? MODEL_FAILED
                                                     : MODEL_WORKED);
    if (end == RECEIPT_MEMORY)
        (void)snprintf(e->call.error, sizeof e->call.error, "%s", DISPATCHER_CROWDED);
    else if (e->end == LIVE_FAILED)
        (void)snprintf(e->call.error, sizeof e->call.error, "%s%s",
                       end == RECEIPT_FAILED ? "the model failed: " : "", e->failed);
}

static ReceiptEnd end_for_error(const InferCallState *e, Err error) {
    if (error == ERR_LIMIT) return end_for_limit(e);
    return error == ERR_PARSE || error == ERR_INVALID || error == ERR_ARG ||
                   error == ERR_UNSUPPORTED
               ? RECEIPT_BAD
               : RECEIPT_FAILED;
}

static void end_with_error(InferCallState *e, Err error, const char *why) {
    ReceiptEnd end = end_for_error(e, error);
    dispatcher_end_with(e, end, end == RECEIPT_MEMORY ? DISPATCHER_CROWDED : why);
}

static void encoded(InferCallState *e) {
    Receipt *r = &e->call.receipt;
    if (e->work_error != ERR_OK) {
        r->met = false;
        end_with_error(e, e->work_error, e->work_why);
        return;
    }
    if (r->deadline > 0 && e->job_core_ns > 0 && clock_monotonic_ns() > r->deadline) r->met = false;
    dispatcher_complete(e);
}

// The engine has finished the request; runs on the loop's thread.
static void engine_done(void *self) {
    InferCallState *e = self;
    Receipt        *r = &e->call.receipt;
    registry_release_shape(e->dispatcher->o.registry, e->call.model, &e->shape);
    r->end = e->detached ? RECEIPT_CANCELLED : dispatcher_end_of(e);
    r->finished = e->finish;
    r->timing = e->timing;
    r->behind = tenant_name(e->dispatcher, e->timing.behind);
    r->paused_by = tenant_name(e->dispatcher, e->timing.paused_by);
    r->met = r->end == RECEIPT_OK && e->outcome == OUTCOME_MET;
    note_result(e);
    e->call.response.tensors = e->outputs;
    if (r->end != RECEIPT_OK) {
        dispatcher_complete(e);
        return;
    }
    if (e->call.request.timing || e->call.timing) {
        dispatcher_explain(e);
        dispatcher_add_timing(&e->call);
    }
    const InferCodec *codec = e->call.codec;
    dispatcher_run(e, codec->encode, codec->encode_ns(&e->call), encoded);
}

static void computed(void *self, const EngineResult *a) {  // on a worker thread
    InferCallState *e = self;
    e->end = a->end;
    e->outcome = a->outcome;
    e->finish = a->finish;
    e->timing = a->timing;
    e->error = a->error;
    if (a->failed != NULL) (void)snprintf(e->failed, sizeof e->failed, "%s", a->failed);
    if (a->end == LIVE_DONE) e->no_room = !dispatcher_copy_outputs(e, a->outputs);
}

void dispatcher_post(void *call) {
    InferCallState *e = call;
    loop_post(e->dispatcher->o.loop, &e->computed);
}

static TimeNs least(TimeNs a, TimeNs b) { return a == 0 || (b != 0 && b < a) ? b : a; }

// Time from arrival after which a request is not computed any further; 0: none. Under
// `on_miss: reject` the target is such a limit.
static TimeNs limit_of(const InferCallState *e, TimeNs target_ns) {
    return e->limit == 0 && e->call.model->on_miss == ON_MISS_REJECT ? target_ns : e->limit;
}

static void set_deadline(InferCallState *e, TimeNs target_ns) {
    TimeNs target = least(target_ns, e->limit), limit = limit_of(e, target_ns);
    e->deadline = e->arrival + (target > 0 ? target : day_ns);
    e->expire = limit > 0 ? e->arrival + limit : 0;
    bool aims = limit > 0 || e->call.model->class != CLASS_BEST_EFFORT;
    e->call.receipt.deadline = aims ? e->deadline : 0;
    e->call.receipt.expire = e->expire;
}

// The client's timeout: the shorter of header and parameter, or else the model's `timeout_ms`.
static void set_limit(InferCallState *e, TimeNs timeout_ns) {
    const TenantSettings *set = &e->call.model->config->set;
    int64_t               us = e->call.request.timeout_us;
    TimeNs                limit = timeout_ns;
    if (us > 0) limit = least(limit, us < day_ns / 1000 ? us * 1000 : day_ns);
    if (limit == 0 && set->timeout_ms > 0) limit = (TimeNs)(set->timeout_ms * 1e6);
    e->limit = limit < day_ns ? limit : day_ns;
    e->arrival = e->call.receipt.arrived;
}

void dispatcher_name_tenant(InferCallState *e, uint32_t tenant) {
    Dispatcher *d = e->dispatcher;
    ModelInfo  *s = e->call.model;
    if (d->names[tenant] == s->name) return;
    d->names[tenant] = s->name;
    metrics_tenant(d->o.metrics, tenant, s->slot);
}

static void submit_to_engine(InferCallState *e) {
    Dispatcher *d = e->dispatcher;
    ModelInfo  *s = e->call.model;
    set_deadline(e, e->shape.target_ns);
    EngineRequest request = {.tenant = e->shape.tenant,
                             .program = e->shape.program,
                             .arrival = e->arrival,
                             .deadline = e->deadline,
                             .expire = e->expire,
                             .on_miss = s->on_miss,
                             .priority = (double)e->call.request.priority,
                             .cancelled = &e->cancelled,
                             .inputs = e->inputs,
                             .budget = &e->budget,
                             .done = computed,
                             .released = dispatcher_post,
                             .self = e};
    e->computed.run = engine_done;
    e->computed.self = e;
    e->state = CALL_ENGINE;
    e->call.receipt.submitted = clock_monotonic_ns();
    dispatcher_name_tenant(e, e->shape.tenant);
    if (node_live_submit(d->o.engine, &request)) return;
    registry_release_shape(d->o.registry, s, &e->shape);
    dispatcher_end_with(e, RECEIPT_FULL, DISPATCHER_LIMIT);
}

static void find_shape(void *self);

static void expire_waiting(void *self) {
    InferCallState *e = self;
    registry_cancel_wait(e->dispatcher->o.registry, e->call.model, &e->compiled);
    e->call.receipt.end = RECEIPT_EXPIRED;
    dispatcher_complete(e);
}

static void wait_for_shape(InferCallState *e) {
    e->state = CALL_COMPILING;
    e->expiry = (LoopTimer){.fire = expire_waiting, .self = e};
    if (e->expire == 0) return;
    if (loop_arm(e->dispatcher->o.loop, &e->expiry, e->expire) == ERR_OK) return;
    registry_cancel_wait(e->dispatcher->o.registry, e->call.model, &e->compiled);
    dispatcher_end_with(e, RECEIPT_MEMORY, "out of memory; retry later");
}

static void find_shape(void *self) {
    InferCallState *e = self;
    Dispatcher     *d = e->dispatcher;
    if (e->state == CALL_COMPILING) loop_disarm(d->o.loop, &e->expiry);
    e->compiled.run = find_shape;
    e->compiled.self = e;
    ShapeLookup found = registry_find_shape(d->o.registry, e->call.model, e->inputs,
                                            budget_used(&e->budget), &e->compiled, &e->shape);
    if (found != SHAPE_READY) set_deadline(e, e->call.model->target_ns);
    switch (found) {
    case SHAPE_READY: submit_to_engine(e); break;
    case SHAPE_COMPILING: wait_for_shape(e); break;
    case SHAPE_INVALID: dispatcher_end_with(e, RECEIPT_BAD, err_why()); break;
    case SHAPE_TOO_LARGE: dispatcher_end_with(e, RECEIPT_LARGE, err_why()); break;
    case SHAPE_CROWDED: dispatcher_end_with(e, RECEIPT_MEMORY, err_why()); break;
    }
}

// The model named, or NULL with the reason in the receipt.
static ModelInfo *find_model(InferCallState *e, Str model, Str version) {
    ModelInfo *s = registry_find(e->dispatcher->o.registry, model, version);
    InferCall *call = &e->call;
    if (s == NULL) {
        char why[METADATA_UNKNOWN];
        (void)snprintf(call->error, sizeof call->error, "%s",
                       metadata_unknown(model, version, why));
        call->receipt.end = RECEIPT_UNKNOWN;
        return NULL;
    }
    call->receipt.slot = s->slot;
    call->receipt.model = s->name;
    call->receipt.version = s->version;
    return s;
}

static bool is_servable(InferCallState *e, const ModelInfo *s) {
    InferCall *call = &e->call;
    if (s->state == MODEL_READY && s->quarantined <= clock_monotonic_ns()) return true;
    bool held = s->state == MODEL_READY;
    call->receipt.end = held ? RECEIPT_QUARANTINED : RECEIPT_UNREADY;
    TimeNs left = s->quarantined - clock_monotonic_ns();
    call->retry_s = held ? (uint32_t)(left / 1000000000) + 1 : 1;
    (void)snprintf(call->error, sizeof call->error,
                   held ? "model '%s' is in quarantine after repeated failures; retry in %u s"
                        : "model '%s' is not ready; retry in %u s",
                   s->name, call->retry_s);
    return false;
}

static Err bind_request(InferCallState *e) {
    InferCall            *call = &e->call;
    const ModelSignature *p = &call->model->signature;
    uint32_t              n = 0;
    bool                 *binary = arena_try_new(&call->arena, bool, p->n_outputs);
    TensorSpec           *specs = arena_try_new(&call->arena, TensorSpec, p->n_outputs);
    e->chosen = arena_try_new(&call->arena, uint32_t, p->n_outputs);
    e->outputs = arena_try_new(&call->arena, Tensor, p->n_outputs);
    e->inputs = arena_try_new(&call->arena, Tensor, p->n_inputs);
    if (binary == NULL || specs == NULL || e->chosen == NULL || e->outputs == NULL ||
        e->inputs == NULL)
        return err_set(ERR_LIMIT, "out of memory for the request");
    TRY(infer_bind_inputs(p, &call->request, &call->arena, e->inputs));
    TRY(infer_select_outputs(p, &call->request, e->chosen, binary, &n));
    for (uint32_t i = 0; i < n; i++) specs[i] = p->outputs[e->chosen[i]];
    call->response = (InferResponse){.model = call->model->name,
                                     .version = call->model->version,
                                     .id = call->request.id,
                                     .specs = specs,
                                     .binary = binary,
                                     .n = n};
    return ERR_OK;
}

static Err check_batch(const InferCallState *e) {
    const ModelInfo *s = e->call.model;
    int64_t          most = s->config->set.max_batch;
    bool             open = s->signature.n_inputs > 0 && s->signature.inputs[0].type.rank > 0 &&
                s->signature.inputs[0].type.dims[0] < 0;
    if (!open || most == 0 || e->inputs[0].rank < 1 || e->inputs[0].dims[0] <= most) return ERR_OK;
    return err_set(ERR_INVALID,
                   "batch size %lld exceeds the %lld that model '%s' allows (`max_batch`)",
                   (long long)e->inputs[0].dims[0], (long long)most, s->name);
}

static void decoded(InferCallState *e) {
    InferCall *call = &e->call;
    ModelInfo *s = call->model;
    Err        bad = e->work_error;
    call->receipt.decoded = clock_monotonic_ns();
    set_id(e->dispatcher, call);
    if (bad != ERR_OK) {
        end_with_error(e, bad, e->work_why);
        return;
    }
    set_limit(e, e->timeout_ns);
    bad = bind_request(e);
    if (bad == ERR_OK) bad = check_batch(e);
    if (bad != ERR_OK) {
        set_deadline(e, s->target_ns);
        end_with_error(e, bad, err_why());
        return;
    }
    call->receipt.batch = call->model->signature.n_inputs > 0 && e->inputs[0].rank > 0
                              ? (uint32_t)e->inputs[0].dims[0]
                              : 1;
    infer_reshape_inputs(&s->signature, e->inputs);
    TimeNs limit = limit_of(e, s->target_ns);
    if (limit > 0 && e->arrival + limit <= call->receipt.decoded) {
        set_deadline(e, s->target_ns);
        call->receipt.end = RECEIPT_EXPIRED;
        dispatcher_complete(e);
        return;
    }
    find_shape(e);
}

void dispatcher_submit(Dispatcher *d, InferCall *call, Str model, Str version, TimeNs timeout_ns,
                       void (*done)(void *self, InferCall *call), void *self) {
    InferCallState *e = dispatcher_state_of(call);
    (void)d;
    call->done = done;
    call->self = self;
    e->timeout_ns = timeout_ns;
    ModelInfo *s = find_model(e, model, version);
    if (s == NULL || !is_servable(e, s)) {
        dispatcher_complete(e);
        return;
    }
    call->model = s;
    registry_pin(s);
    set_limit(e, timeout_ns);
    set_deadline(e, s->target_ns);
    if (!dispatcher_join_budget(e)) {
        dispatcher_end_with(e, RECEIPT_MEMORY, DISPATCHER_CROWDED);
        return;
    }
    dispatcher_run(e, call->codec->decode, call->codec->decode_ns(call), decoded);
}

void dispatcher_cancel(Dispatcher *d, InferCall *call, ExchangeBody *body) {
    InferCallState *e = dispatcher_state_of(call);
    e->detached = true;
    e->body = body;
    call->receipt.end = RECEIPT_CANCELLED;
    if (e->state == CALL_ENGINE || e->state == CALL_JOB) {
        atomic_store(&e->cancelled, true);
        node_live_cancel(d->o.engine);
        return;
    }
    if (e->state == CALL_COMPILING) {
        loop_disarm(d->o.loop, &e->expiry);
        registry_cancel_wait(d->o.registry, call->model, &e->compiled);
    }
    set_id(d, call);
    record(e);
    dispatcher_release(e);
}

void dispatcher_reject_all(Dispatcher *d) {
    d->rejecting = true;
    for (uint32_t i = 0; i < d->n; i++)
        if (d->calls[i].state == CALL_ENGINE || d->calls[i].state == CALL_JOB)
            atomic_store(&d->calls[i].cancelled, true);
    node_live_cancel(d->o.engine);
}
