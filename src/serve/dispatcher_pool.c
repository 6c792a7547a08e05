// The pool of calls: their arenas, what those keep between requests, and the budgets that pay for
// them.
#include "base/clock.h"
#include "base/err.h"
#include "serve/dispatcher_int.h"

enum {
    KEPT_BYTES = 64 << 20,
    KEPT_EACH = 2 << 20,
    RECLAIM_BYTES = 16 << 20,
    RESERVED_EACH = 1 << 18,
};

// The run delay of the loop's thread is read at most this often as requests arrive.
enum { DELAY_AGE_NS = 2000000 };

static size_t arena_bytes(const Dispatcher *d) {
    size_t body = (size_t)d->o.set->body_mb << 20, answer = (size_t)d->o.set->response_mb << 20;
    return 8 * body + 3 * answer + ((size_t)1 << 24);
}

// The arena is charged to the call's budget, which is part of the server's until the model is
// known.
static bool has_arena(Dispatcher *d, InferCallState *e) {
    if (e->call.arena.base != NULL) {
        d->kept_bytes -= e->call.arena.high;
        return true;
    }
    if (arena_init(&e->call.arena, arena_bytes(d)) != ERR_OK) return false;
    arena_use_huge_pages(&e->call.arena, KEPT_EACH);
    e->budget = (Budget){.setting = "request_mb", .whole = d->o.memory};
    return arena_charge(&e->call.arena, &e->budget);
}

static TimeNs delay_before(Dispatcher *d, TimeNs arrived) {
    if (d->delay.at == 0) run_delay_open(&d->delay, clock_monotonic_ns());
    if (arrived - d->delay.at <= DELAY_AGE_NS) return d->delay.total;
    return run_delay_until(&d->delay, arrived, clock_monotonic_ns());
}

InferCall *dispatcher_open(Dispatcher *d, ReceiptProtocol protocol, TimeNs began, TimeNs arrived,
                           size_t bytes) {
    InferCallState *e = d->free;
    if (e == NULL || d->rejecting || !has_arena(d, e)) return NULL;
    d->free = e->next;
    d->busy++;
    Arena  arena = e->call.arena;
    size_t used = budget_used(&e->budget);
    *e = (InferCallState){.call = {.arena = arena}, .dispatcher = d, .state = CALL_OPEN};
    e->budget = (Budget){.setting = "request_mb", .whole = d->o.memory};
    atomic_store_explicit(&e->budget.used, used, memory_order_relaxed);
    e->delay_before = delay_before(d, arrived);
    e->call.max_body = (size_t)d->o.set->body_mb << 20;
    e->call.max_response = (size_t)d->o.set->response_mb << 20;
    e->call.receipt = (Receipt){.slot = UINT32_MAX,
                                .protocol = protocol,
                                .began = began,
                                .arrived = arrived,
                                .in_bytes = bytes};
    return &e->call;
}

static void add_free(InferCallState *e) {
    Dispatcher *d = e->dispatcher;
    e->state = CALL_FREE;
    e->next = d->free;
    d->free = e;
    d->busy--;
}

// Returning much memory at once would take milliseconds, so it is done in pieces.
void dispatcher_reclaim(void *self) {
    Dispatcher     *d = self;
    InferCallState *e = d->reclaimed;
    Arena          *a = &e->call.arena;
    if (a->high > RECLAIM_BYTES) {
        arena_shrink(a, a->high - RECLAIM_BYTES);
    } else {
        d->reclaimed = e->next;
        arena_finish(a);
        add_free(e);
    }
    if (d->reclaimed == NULL) return;
    if (loop_arm(d->o.loop, &d->reclaim, loop_now(d->o.loop)) == ERR_OK) return;
    while (d->reclaimed != NULL) {
        e = d->reclaimed;
        d->reclaimed = e->next;
        arena_finish(&e->call.arena);
        add_free(e);
    }
}

static void reclaim_later(InferCallState *e) {
    Dispatcher *d = e->dispatcher;
    bool        idle = d->reclaimed == NULL;
    e->next = d->reclaimed;
    d->reclaimed = e;
    if (!idle) return;
    if (loop_arm(d->o.loop, &d->reclaim, loop_now(d->o.loop)) != ERR_OK) dispatcher_reclaim(d);
}

// The arena keeps its memory for the next request, up to KEPT_EACH bytes and KEPT_BYTES in total.
void dispatcher_release(InferCallState *e) {
    Dispatcher *d = e->dispatcher;
    if (e->body != NULL) e->body->give(e->body);
    inflate_end(e->call.inflate);
    e->body = NULL;
    e->call.inflate = NULL;
    (void)budget_move(&e->budget, d->o.memory);  // part of it already: cannot fail
    if (e->call.model != NULL) registry_release(d->o.registry, e->call.model);
    arena_rewind(&e->call.arena, 0);
    size_t high = e->call.arena.high;
    if (high > RECLAIM_BYTES) {
        reclaim_later(e);
        return;
    }
    if (high > KEPT_EACH || d->kept_bytes + high > KEPT_BYTES)
        arena_finish(&e->call.arena);
    else
        d->kept_bytes += high;
    add_free(e);
}

void dispatcher_close(Dispatcher *d, InferCall *call, size_t bytes) {
    (void)d;
    call->receipt.out_bytes = bytes;
    dispatcher_release(dispatcher_state_of(call));
}

// Makes the request's memory part of its model's budget. If large requests of other models have
// used up the memory, a small one stays in the server's reserve, with all that it may come to need.
bool dispatcher_join_budget(InferCallState *e) {
    ModelInfo *s = e->call.model;
    size_t     used = budget_used(&e->budget);
    if (used > RESERVED_EACH && budget_short(&s->memory, used) != NULL) {
        arena_shrink(&e->call.arena, e->call.arena.used);  // kept from an earlier, larger request
        used = budget_used(&e->budget);
    }
    bool          small = used <= RESERVED_EACH;
    const Budget *lacking = budget_short(&s->memory, small ? RESERVED_EACH : used);
    bool          own = lacking == &s->memory;
    e->budget.most = (size_t)s->config->set.request_mb << 20;
    if ((lacking == NULL || own || !small) && budget_move(&e->budget, &s->memory)) return true;
    if (!small || own) return false;
    e->budget.most = RESERVED_EACH;
    return true;
}
