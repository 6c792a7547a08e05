// Results of a request: outputs copied out of the engine, the message of one that failed, timing.
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/work_stop.h"
#include "serve/dispatcher_int.h"
#include "serve/server_metadata.h"
#include "serve/tensor/classification.h"

static bool copy_text(Arena *a, const Tensor *from, Tensor *to) {
    int64_t    n = tensor_count(from);
    const Str *in = from->data;
    Str       *out = to->data;
    for (int64_t i = 0; i < n; i++) {
        char *text = arena_try(a, in[i].len, 1, 1);
        if (text == NULL) return false;
        work_copy_all(text, in[i].at, in[i].len);
        out[i] = (Str){text, in[i].len};
    }
    return true;
}

static bool copy_one(Arena *a, const Tensor *from, Tensor *to, size_t *left) {
    size_t bytes;
    *to = *from;
    if (from->dtype == DT_SEQ || from->dtype == DT_OPT) return false;
    if (tensor_measure(from, &bytes) != ERR_OK || bytes > *left) return false;
    *left -= bytes;
    to->data = arena_try(a, bytes, 1, TENSOR_ALIGN);
    if (to->data == NULL) return false;
    if (from->dtype == DT_STR) return copy_text(a, from, to);
    work_copy_all(to->data, from->data, bytes);
    return true;
}

// An output with `classification` is ranked in the engine's memory; only the text is copied.
static bool classify(InferCallState *e, uint32_t i, const Tensor *from, int64_t classes,
                     size_t *left) {
    InferCall *call = &e->call;
    bool       batched = metadata_max_batch(call->model) > 0;
    e->outputs[i] = *from;
    if (classification_apply(&call->response.specs[i], batched, classes, left, &call->arena,
                             &e->outputs[i]) == ERR_OK)
        return true;
    if (!work_stopped()) (void)snprintf(call->error, sizeof call->error, "%s", err_why());
    return false;
}

// Ranking may take long: the engine stops it like the run that it follows.
static bool was_stopped(InferCallState *e) {
    if (!work_stopped()) return false;
    e->end = e->expire > 0 && clock_monotonic_ns() >= e->expire ? LIVE_EXPIRED : LIVE_STUCK;
    return true;
}

// An output of another shape than config.pbtxt reshapes follows from the inputs: the request fails.
static bool reshape(InferCallState *e, uint32_t i, Tensor *t) {
    if (infer_apply_reshape(&e->call.response.specs[i], false, t) == ERR_OK) return true;
    e->end = LIVE_FAILED;
    e->error = ERR_INVALID;
    (void)snprintf(e->failed, sizeof e->failed, "output %s", err_why());
    return false;
}

bool dispatcher_copy_outputs(InferCallState *e, const Tensor *outputs) {
    const InferRequest *r = &e->call.request;
    size_t              left = (size_t)e->dispatcher->o.set->response_mb << 20;
    for (uint32_t i = 0; i < e->call.response.n; i++) {
        Tensor  from = outputs[e->chosen[i]];
        int64_t classes = i < r->n_requested ? r->requested[i].classes : 0;
        if (!reshape(e, i, &from)) return true;
        if (classes > 0 ? !classify(e, i, &from, classes, &left)
                        : !copy_one(&e->call.arena, &from, &e->outputs[i], &left))
            return was_stopped(e);
    }
    return true;
}

// Seconds until the queue has drained, if its requests ran one after the other: 1 to 60.
static uint32_t retry_after(const InferCallState *e) {
    double ns = (double)(e->timing.waiting + 1) * (double)registry_estimate_ns(e->call.model);
    double s = ns / 1e9;
    return s < 1 ? 1 : s > 60 ? 60 : (uint32_t)s + 1;
}

// A response beyond the budget of its request, or beyond what a response may have.
static void explain_large(InferCallState *e) {
    InferCall    *call = &e->call;
    size_t        more = call->arena.refused;
    const Budget *full = more > 0 ? budget_short(&e->budget, more) : NULL;
    if (full != NULL && full->setting != NULL)
        (void)snprintf(
            call->error, sizeof call->error,
            "the outputs need %zu more bytes; %zu of the %zu that `%s` allows are in use", more,
            budget_used(full), full->most, full->setting);
    else
        (void)snprintf(call->error, sizeof call->error, "response exceeds %d MiB (`response_mb`)",
                       e->dispatcher->o.set->response_mb);
}

void dispatcher_set_error(InferCallState *e) {
    InferCall     *call = &e->call;
    const Receipt *r = &call->receipt;
    bool           again = r->end == RECEIPT_FULL || r->end == RECEIPT_REJECTED;
    if (again && call->model != NULL) call->retry_s = retry_after(e);
    if (r->end == RECEIPT_MEMORY) call->retry_s = 1;
    if (call->error[0] != 0) return;
    if (r->end == RECEIPT_LARGE)
        explain_large(e);
    else if (r->cause[0] != 0)
        (void)snprintf(call->error, sizeof call->error, "%s", r->cause);
    else if (r->end == RECEIPT_FULL && call->model != NULL)
        (void)snprintf(call->error, sizeof call->error, "queue of model '%s' is full (`queue`: %d)",
                       r->model, call->model->config->set.queue);
    else
        (void)snprintf(call->error, sizeof call->error, "%s", receipt_end_about(r->end));
}

void dispatcher_explain(InferCallState *e) {
    Receipt *r = &e->call.receipt;
    r->answered = clock_monotonic_ns();
    if (receipt_outcome(r) == RECEIPT_OUTCOME_MISSED)
        r->loop_delay_ns = run_delay_read(&e->dispatcher->delay, r->answered) - e->delay_before;
    receipt_explain(r);
}

static void add(InferCall *call, uint32_t *n, const char *key, const char *text, double number) {
    InferParameter *parameters = (InferParameter *)(uintptr_t)call->response.parameters;
    parameters[(*n)++] = (InferParameter){.key = key, .text = text, .number = number};
}

// "0:12 2:3": 12 layers ran compiled version 0, 3 ran version 2.
static const char *versions_text(InferCall *call, const uint32_t *versions) {
    char  *text = arena_try(&call->arena, LIVE_VERSIONS * 16, 1, 1);
    size_t n = 0;
    for (uint32_t v = 0; v < LIVE_VERSIONS && text != NULL; v++)
        if (versions[v] > 0)
            n += (size_t)snprintf(text + n, 16, "%s%u:%u", n > 0 ? " " : "", v, versions[v]);
    return text;
}

void dispatcher_add_timing(InferCall *call) {
    const Receipt    *r = &call->receipt;
    const LiveTiming *t = &r->timing;
    uint32_t          n = 0;
    call->response.parameters = arena_try_new(&call->arena, InferParameter, 20);
    if (call->response.parameters == NULL) return;
    add(call, &n, "cotenant_id", r->id, 0);
    add(call, &n, "decode_us", NULL, (double)(r->decoded - r->arrived) / 1e3);
    add(call, &n, "queue_us", NULL, (double)t->queue_ns / 1e3);
    add(call, &n, "compute_us", NULL, (double)t->compute_ns / 1e3);
    add(call, &n, "preempted_us", NULL, (double)t->paused_ns / 1e3);
    add(call, &n, "blocks", NULL, t->blocks);
    add(call, &n, "cores", NULL, t->cores_most);
    add(call, &n, "level", NULL, t->level);
    add(call, &n, "deadline_us", NULL, (double)(r->deadline - r->arrived) / 1e3);
    add(call, &n, "met", r->met ? "true" : "false", 0);
    if (t->degraded) add(call, &n, "degraded", "true", 0);
    const char *versions = versions_text(call, t->versions);
    if (versions != NULL) add(call, &n, "versions", versions, 0);
    if (r->behind != NULL) add(call, &n, "queued_behind", r->behind, 0);
    if (r->paused_by != NULL) add(call, &n, "preempted_by", r->paused_by, 0);
    if (r->cause[0] != 0) add(call, &n, "cause", r->cause, 0);
    call->response.n_parameters = n;
}
