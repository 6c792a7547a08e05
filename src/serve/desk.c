#include "serve/desk.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/clock.h"
#include "serve/desk_int.h"

enum { KEPT_BYTES = 256 << 20, KEPT_EACH = 8 << 20, DAY_S = 86400 };

static const TimeNs day_ns = DAY_S * INT64_C(1000000000);

static TimeNs now(void) { return clock_now(clock_steady()); }

static Entry *entry_of(Ask *a) { return (Entry *)(void *)a; }

static size_t arena_bytes(const Desk *d) {
    size_t body = (size_t)d->o.set->body_mb << 20, answer = (size_t)d->o.set->response_mb << 20;
    return 8 * body + 3 * answer + ((size_t)1 << 24);
}

Err desk_create(Desk **out, const DeskOptions *o) {
    Desk *d = calloc(1, sizeof *d);
    if (d == NULL) return err_set(ERR_LIMIT, "no memory for a desk");
    d->o = *o;
    d->n = (uint32_t)o->set->requests;
    d->entries = calloc(d->n, sizeof *d->entries);
    if (d->entries == NULL) {
        free(d);
        return err_set(ERR_LIMIT, "no memory for %d requests; lower `requests`", o->set->requests);
    }
    for (uint32_t i = d->n; i-- > 0;) {
        d->entries[i].desk = d;
        d->entries[i].next = d->free;
        d->free = &d->entries[i];
    }
    *out = d;
    return ERR_OK;
}

void desk_destroy(Desk *d) {
    if (d == NULL) return;
    CHECK(d->busy == 0);
    for (uint32_t i = 0; i < d->n; i++) arena_finish(&d->entries[i].ask.arena);
    free(d->entries);
    free(d);
}

uint32_t desk_busy(const Desk *d) { return d->busy; }

const char *const *desk_names(const Desk *d, uint32_t *n) {
    *n = LIVE_TENANTS;
    return d->names;
}

static bool has_arena(Desk *d, Entry *e) {
    if (e->ask.arena.base != NULL) {
        d->kept_bytes -= e->ask.arena.high;
        return true;
    }
    return arena_init(&e->ask.arena, arena_bytes(d)) == ERR_OK;
}

Ask *desk_open(Desk *d, ReceiptProtocol protocol, TimeNs began, TimeNs arrived, size_t bytes) {
    Entry *e = d->free;
    if (e == NULL || d->expelled || !has_arena(d, e)) return NULL;
    d->free = e->next;
    d->busy++;
    Arena arena = e->ask.arena;
    *e = (Entry){.ask = {.arena = arena}, .desk = d, .state = ENTRY_OPEN};
    e->ask.receipt = (Receipt){.seat = UINT32_MAX,
                               .protocol = protocol,
                               .began = began,
                               .arrived = arrived,
                               .in_bytes = bytes};
    return &e->ask;
}

// Memory that was needed once is kept for the next request, within bounds.
static void recycle(Entry *e) {
    Desk *d = e->desk;
    if (e->body != NULL) e->body->give(e->body);
    if (e->ask.served != NULL) fleet_release(d->o.fleet, e->ask.served);
    arena_rewind(&e->ask.arena, 0);
    size_t high = e->ask.arena.high;
    if (high > KEPT_EACH || d->kept_bytes + high > KEPT_BYTES)
        arena_finish(&e->ask.arena);
    else
        d->kept_bytes += high;
    e->state = ENTRY_FREE;
    e->next = d->free;
    d->free = e;
    d->busy--;
}

// The client's name for it if it is one word that can be printed, or a number of our own.
static void name_it(Desk *d, Ask *a) {
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
static void log_it(const Entry *e) {
    const Receipt *r = &e->ask.receipt;
    bool           bad = r->end == RECEIPT_FAILED || r->end == RECEIPT_STUCK;
    LogLevel       level = bad ? LOG_ERROR : r->met ? LOG_DEBUG : LOG_INFO;
    if (level < e->desk->o.log->least || r->model == NULL) return;
    log_with(e->desk->o.log, level, "request", log_text("id", r->id), log_text("model", r->model),
             log_text("end", receipt_end_name(r->end)), log_bool("met", r->met),
             log_real("ms", (double)receipt_latency(r) / 1e6),
             log_text("why", r->cause[0] != 0 ? r->cause : e->ask.error));
}

static void note(Entry *e) {
    e->ask.receipt.answered = now();
    receipt_explain(&e->ask.receipt);
    metrics_note(e->desk->o.metrics, &e->ask.receipt);
    ledger_note(e->desk->o.ledger, &e->ask.receipt);
    log_it(e);
}

// Tells the front, unless it has left.
static void say(Entry *e) {
    e->state = ENTRY_OPEN;
    note(e);
    if (e->ask.receipt.end != RECEIPT_OK)
        desk_explain(e);
    else if (e->ask.request.timing)
        desk_notes(&e->ask);
    if (e->gone)
        recycle(e);
    else
        e->ask.done(e->ask.self, &e->ask);
}

static void fail(Entry *e, ReceiptEnd end, const char *why) {
    e->ask.receipt.end = end;
    (void)snprintf(e->ask.error, sizeof e->ask.error, "%s", why);
    say(e);
}

static ReceiptEnd end_of(const Entry *e) {
    switch (e->end) {
    case LIVE_DONE: return e->no_room ? RECEIPT_LARGE : RECEIPT_OK;
    case LIVE_REFUSED: return RECEIPT_REFUSED;
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

static const char *tenant_name(const Desk *d, uint32_t tenant) {
    return tenant < LIVE_TENANTS ? d->names[tenant] : NULL;
}

// What it says about the model, and what went wrong in the model's words.
static void judge(Entry *e) {
    ReceiptEnd end = end_of(e);
    bool       failed = end == RECEIPT_FAILED || end == RECEIPT_STUCK;
    if (failed || e->end == LIVE_DONE) fleet_note(e->desk->o.fleet, e->ask.served, failed);
    if (e->end == LIVE_FAILED)
        (void)snprintf(e->ask.error, sizeof e->ask.error, "the model failed: %s", e->failed);
}

// The engine has answered; on the loop's thread again.
static void take_back(void *self) {
    Entry   *e = self;
    Receipt *r = &e->ask.receipt;
    fleet_done(e->desk->o.fleet, e->ask.served, e->tenant);
    r->end = e->gone ? RECEIPT_CANCELLED : end_of(e);
    r->finished = e->finish;
    r->timing = e->timing;
    r->behind = tenant_name(e->desk, e->timing.behind);
    r->paused_by = tenant_name(e->desk, e->timing.paused_by);
    r->met = r->end == RECEIPT_OK && e->outcome == OUTCOME_MET;
    judge(e);
    e->ask.answer.tensors = e->outputs;
    say(e);
}

static void computed(void *self, const LiveAnswer *a) {  // on a worker
    Entry *e = self;
    e->end = a->end;
    e->outcome = a->outcome;
    e->finish = a->finish;
    e->timing = a->timing;
    e->error = a->error;
    if (a->failed != NULL) (void)snprintf(e->failed, sizeof e->failed, "%s", a->failed);
    if (a->end == LIVE_DONE) e->no_room = !desk_copy(e, a->outputs);
    loop_post(e->desk->o.loop, &e->computed);
}

static TimeNs least(TimeNs a, TimeNs b) { return a == 0 || (b != 0 && b < a) ? b : a; }

static bool is(const char *text, const char *word) { return strcmp(text, word) == 0; }

static void set_deadline(Entry *e, TimeNs target_ns) {
    TimeNs target = least(target_ns, e->limit);
    bool   firm = is(e->ask.served->config->set.on_miss, "reject");
    TimeNs limit = e->limit == 0 && firm ? target : e->limit;
    e->deadline = e->arrival + (target > 0 ? target : day_ns);
    e->expire = limit > 0 ? e->arrival + limit : 0;
    bool aims = limit > 0 || !is(e->ask.served->config->set.class, "best_effort");
    e->ask.receipt.deadline = aims ? e->deadline : 0;
    e->ask.receipt.expire = e->expire;
}

// What the client allows: the tightest of a header, a parameter and the model's setting.
static void set_times(Entry *e, TimeNs timeout_ns) {
    const TenantSettings *set = &e->ask.served->config->set;
    int64_t               us = e->ask.request.timeout_us;
    TimeNs                limit = timeout_ns;
    if (us > 0) limit = least(limit, us < day_ns / 1000 ? us * 1000 : day_ns);
    if (limit == 0 && set->timeout_ms > 0) limit = (TimeNs)(set->timeout_ms * 1e6);
    e->limit = limit < day_ns ? limit : day_ns;
    e->arrival = e->ask.receipt.arrived;
    set_deadline(e, e->ask.served->target_ns);
}

static void hand_over(Entry *e) {
    Desk   *d = e->desk;
    Served *s = e->ask.served;
    set_deadline(e, fleet_target_ns(s, e->tenant));
    LiveAsk ask = {.tenant = e->tenant,
                   .arrival = e->arrival,
                   .deadline = e->deadline,
                   .expire = e->expire,
                   .late_ok = !is(s->config->set.on_miss, "reject"),
                   .priority = (double)e->ask.request.priority,
                   .cancelled = &e->cancelled,
                   .inputs = e->inputs,
                   .done = computed,
                   .self = e};
    e->computed.run = take_back;
    e->computed.self = e;
    e->state = ENTRY_ENGINE;
    e->ask.receipt.submitted = now();
    if (d->names[e->tenant] != s->name) {
        d->names[e->tenant] = s->name;
        metrics_tenant(d->o.metrics, e->tenant, s->seat);
    }
    if (node_live_submit(d->o.engine, &ask)) return;
    fleet_done(d->o.fleet, s, e->tenant);
    fail(e, RECEIPT_FULL, "as many requests as the server takes are on their way");
}

static void fit(void *self);

static void too_late(void *self) {
    Entry *e = self;
    fleet_forget_wait(e->desk->o.fleet, e->ask.served, &e->shaped);
    e->ask.receipt.end = RECEIPT_EXPIRED;
    say(e);
}

static void wait_for_shape(Entry *e) {
    e->state = ENTRY_SHAPED;
    e->expiry = (LoopTimer){.fire = too_late, .self = e};
    if (e->expire == 0) return;
    if (loop_arm(e->desk->o.loop, &e->expiry, e->expire) == ERR_OK) return;
    fleet_forget_wait(e->desk->o.fleet, e->ask.served, &e->shaped);
    fail(e, RECEIPT_MEMORY, "no memory for a timer");
}

static void fit(void *self) {
    Entry *e = self;
    Desk  *d = e->desk;
    if (e->state == ENTRY_SHAPED) loop_disarm(d->o.loop, &e->expiry);
    e->shaped.run = fit;
    e->shaped.self = e;
    switch (fleet_fit(d->o.fleet, e->ask.served, e->inputs, &e->shaped, &e->tenant)) {
    case FLEET_FITS: hand_over(e); break;
    case FLEET_LATER: wait_for_shape(e); break;
    case FLEET_NEVER: fail(e, RECEIPT_BAD, err_why()); break;
    case FLEET_LARGE: fail(e, RECEIPT_LARGE, err_why()); break;
    }
}

// The model, or NULL and the receipt says why there is none.
static Served *find(Entry *e, Str model, Str version) {
    Served *s = fleet_find(e->desk->o.fleet, model, version);
    Ask    *a = &e->ask;
    if (s == NULL) {
        (void)snprintf(a->error, sizeof a->error, "model '%.*s'%s%.*s is not known",
                       model.len < 128 ? (int)model.len : 128, model.at,
                       version.len > 0 ? " version " : "", version.len < 32 ? (int)version.len : 32,
                       version.len > 0 ? version.at : "");
        a->receipt.end = RECEIPT_UNKNOWN;
        return NULL;
    }
    a->receipt.seat = s->seat;
    a->receipt.model = s->name;
    a->receipt.version = s->version;
    return s;
}

static bool admits(Entry *e, const Served *s) {
    Ask *a = &e->ask;
    if (s->state == FLEET_READY && s->quarantined <= now()) return true;
    bool held = s->state == FLEET_READY;
    a->receipt.end = held ? RECEIPT_QUARANTINED : RECEIPT_UNREADY;
    TimeNs left = s->quarantined - now();
    a->retry_s = held ? (uint32_t)(left / 1000000000) + 1 : 1;
    (void)snprintf(a->error, sizeof a->error,
                   held ? "model '%s' failed too often and rests for %u s"
                        : "model '%s' is not ready, try again in %u s",
                   s->name, a->retry_s);
    return false;
}

static Err choose(Entry *e) {
    Ask             *a = &e->ask;
    const InferPort *p = &a->served->port;
    uint32_t         n = 0;
    bool            *binary = arena_try_new(&a->arena, bool, p->n_outputs);
    InferSlot       *slots = arena_try_new(&a->arena, InferSlot, p->n_outputs);
    e->chosen = arena_try_new(&a->arena, uint32_t, p->n_outputs);
    e->outputs = arena_try_new(&a->arena, Tensor, p->n_outputs);
    e->inputs = arena_try_new(&a->arena, Tensor, p->n_inputs);
    if (binary == NULL || slots == NULL || e->chosen == NULL || e->outputs == NULL ||
        e->inputs == NULL)
        return err_set(ERR_LIMIT, "no memory for the request");
    TRY(infer_bind(p, &a->request, &a->arena, e->inputs));
    TRY(infer_choose(p, &a->request, e->chosen, binary, &n));
    for (uint32_t i = 0; i < n; i++) slots[i] = p->outputs[e->chosen[i]];
    a->answer = (InferAnswer){.model = a->served->name,
                              .version = a->served->version,
                              .id = a->request.id,
                              .slots = slots,
                              .binary = binary,
                              .n = n};
    return ERR_OK;
}

static Err check_batch(const Entry *e) {
    const Served *s = e->ask.served;
    int64_t       most = s->config->set.max_batch;
    bool          open = s->port.n_inputs > 0 && s->port.inputs[0].type.rank > 0 &&
                s->port.inputs[0].type.dims[0] < 0;
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

void desk_submit(Desk *d, Ask *a, Str model, Str version, TimeNs timeout_ns,
                 void (*done)(void *self, Ask *a), void *self) {
    Entry *e = entry_of(a);
    a->done = done;
    a->self = self;
    a->receipt.decoded = now();
    name_it(d, a);
    Served *s = find(e, model, version);
    if (s == NULL || !admits(e, s)) {
        say(e);
        return;
    }
    a->served = s;
    fleet_pin(s);
    set_times(e, timeout_ns);
    Err bad = choose(e);
    if (bad == ERR_OK) bad = check_batch(e);
    if (bad != ERR_OK) {
        fail(e, end_for(bad), err_why());
        return;
    }
    a->receipt.batch =
        a->served->port.n_inputs > 0 && e->inputs[0].rank > 0 ? (uint32_t)e->inputs[0].dims[0] : 1;
    if (e->expire != 0 && e->expire <= a->receipt.decoded) {
        a->receipt.end = RECEIPT_EXPIRED;
        say(e);
        return;
    }
    fit(e);
}

void desk_refuse(Desk *d, Ask *a, Str model, Str version, Err bad) {
    Entry *e = entry_of(a);
    char   why[sizeof a->error];
    (void)snprintf(why, sizeof why, "%s", err_why());
    name_it(d, a);
    if (find(e, model, version) != NULL) {
        a->receipt.end = end_for(bad);
        (void)snprintf(a->error, sizeof a->error, "%s", why);
    }
    note(e);
}

void desk_cancel(Desk *d, Ask *a, ExchangeBody *body) {
    Entry *e = entry_of(a);
    e->gone = true;
    e->body = body;
    a->receipt.end = RECEIPT_CANCELLED;
    if (e->state == ENTRY_ENGINE) {
        atomic_store(&e->cancelled, true);
        node_live_cancel(d->o.engine);
        return;
    }
    if (e->state == ENTRY_SHAPED) {
        loop_disarm(d->o.loop, &e->expiry);
        fleet_forget_wait(d->o.fleet, a->served, &e->shaped);
    }
    note(e);
    recycle(e);
}

void desk_close(Desk *d, Ask *a, size_t bytes) {
    (void)d;
    a->receipt.out_bytes = bytes;
    recycle(entry_of(a));
}

void desk_expel(Desk *d) {
    d->expelled = true;
    for (uint32_t i = 0; i < d->n; i++)
        if (d->entries[i].state == ENTRY_ENGINE) atomic_store(&d->entries[i].cancelled, true);
    node_live_cancel(d->o.engine);
}
