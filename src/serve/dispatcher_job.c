// Decoding and encoding: short work on the loop's thread, long work as a job of the model.
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "serve/dispatcher_int.h"

// SHORT_NS: estimated time up to which work stays on the loop's thread. MORE_NS: assumed for work
// that takes longer than estimated.
enum { SHORT_NS = 400000, MORE_NS = 8000000 };

static void run_work(void *self) {
    InferCallState *e = self;
    e->work_error = e->work(&e->call);
    e->work_why[0] = '\0';
    if (e->work_error != ERR_OK) (void)snprintf(e->work_why, sizeof e->work_why, "%s", err_why());
}

static Coroutine *take_coroutine(Dispatcher *d) {
    Coroutine *c = NULL;
    if (d->n_coroutines > 0) return d->coroutines[--d->n_coroutines];
    return coroutine_create(&c) == ERR_OK ? c : NULL;
}

static void give_coroutine(InferCallState *e) {
    Dispatcher *d = e->dispatcher;
    if (d->n_coroutines < DISPATCHER_COROUTINES)
        d->coroutines[d->n_coroutines++] = e->coroutine;
    else
        coroutine_destroy(e->coroutine);
    e->coroutine = NULL;
}

static void job_ended(void *self, const EngineResult *a) {  // on a worker
    InferCallState *e = self;
    e->end = a->end;
    e->error = a->error;
    e->job_core_ns += a->timing.core_ns;
    e->timing.waiting = a->timing.waiting;
    loop_post(e->dispatcher->o.loop, &e->computed);
}

static void job_over(void *self);

static void submit_job(InferCallState *e) {
    Dispatcher   *d = e->dispatcher;
    ModelInfo    *s = e->call.model;
    bool          encodes = e->call.receipt.finished > 0;
    EngineRequest request = {.tenant = s->job_tenant,
                             .job = true,
                             .first = job_first_layer(e->work_ns),
                             .arrival = clock_monotonic_ns(),
                             .deadline = e->deadline,
                             .expire = e->expire,
                             .on_miss = encodes ? ON_MISS_SERVE_LATE : s->on_miss,
                             .priority = (double)e->call.request.priority,
                             .cancelled = &e->cancelled,
                             .inputs = &e->job_input,
                             .done = job_ended,
                             .self = e};
    e->computed.run = job_over;
    e->computed.self = e;
    e->state = CALL_JOB;
    dispatcher_name_tenant(e, s->job_tenant);
    if (node_live_submit(d->o.engine, &request)) return;
    e->end = LIVE_FULL;
    job_over(e);
}

// The engine has finished a job, or all layers of its program: the rest is submitted again.
static void job_over(void *self) {
    InferCallState *e = self;
    if (e->end == LIVE_DONE && !e->job.done && !e->detached) {
        e->work_ns = MORE_NS;
        submit_job(e);
        return;
    }
    bool done = e->end == LIVE_DONE && e->job.done && !e->detached;
    give_coroutine(e);
    if (done) {
        e->state = CALL_OPEN;
        e->then(e);
        return;
    }
    e->call.receipt.end = e->detached ? RECEIPT_CANCELLED : dispatcher_end_of(e);
    e->call.receipt.timing.waiting = e->timing.waiting;
    dispatcher_complete(e);
}

void dispatcher_run(InferCallState *e, Err (*work)(InferCall *call), TimeNs about_ns,
                    void (*then)(InferCallState *e)) {
    e->work = work;
    e->then = then;
    e->work_ns = about_ns;
    if (about_ns <= SHORT_NS || e->call.model->job_tenant == UINT32_MAX) {
        run_work(e);
        then(e);
        return;
    }
    e->coroutine = take_coroutine(e->dispatcher);
    if (e->coroutine == NULL) {
        dispatcher_end_with(e, RECEIPT_MEMORY, "out of memory; retry later");
        return;
    }
    coroutine_begin(e->coroutine, run_work, e);
    e->job = (EngineJob){.coroutine = e->coroutine};
    e->job_input = job_input(&e->job);
    submit_job(e);
}
