// What leaves the engine: copies of outputs, and words for those who get none.
#include <stdio.h>
#include <string.h>

#include "serve/dispatcher_int.h"

static bool copy_text(Arena *a, const Tensor *from, Tensor *to) {
    int64_t    n = tensor_count(from);
    const Str *in = from->data;
    Str       *out = to->data;
    for (int64_t i = 0; i < n; i++) {
        char *text = arena_try(a, in[i].len, 1, 1);
        if (text == NULL) return false;
        if (in[i].len > 0) memcpy(text, in[i].at, in[i].len);
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
    if (bytes > 0) memcpy(to->data, from->data, bytes);
    return true;
}

bool dispatcher_copy_outputs(InferCallState *e, const Tensor *outputs) {
    size_t left = (size_t)e->dispatcher->o.set->response_mb << 20;
    for (uint32_t i = 0; i < e->call.response.n; i++)
        if (!copy_one(&e->call.arena, &outputs[e->chosen[i]], &e->outputs[i], &left)) return false;
    return true;
}

// About when there is room again: what waits, one after the other.
static uint32_t retry_after(const InferCallState *e) {
    double ns = (double)(e->timing.waiting + 1) * (double)registry_estimate_ns(e->call.served);
    double s = ns / 1e9;
    return s < 1 ? 1 : s > 60 ? 60 : (uint32_t)s + 1;
}

void dispatcher_set_error(InferCallState *e) {
    InferCall     *a = &e->call;
    const Receipt *r = &a->receipt;
    bool           again = r->end == RECEIPT_FULL || r->end == RECEIPT_REJECTED;
    if (again && a->served != NULL) a->retry_s = retry_after(e);
    if (r->end == RECEIPT_MEMORY) a->retry_s = 1;
    if (a->error[0] != 0) return;
    if (r->cause[0] != 0)
        (void)snprintf(a->error, sizeof a->error, "%s", r->cause);
    else if (r->end == RECEIPT_FULL && a->served != NULL)
        (void)snprintf(a->error, sizeof a->error, "the queue of model '%s' is full (%d wait)",
                       r->model, a->served->config->set.queue);
    else if (r->end == RECEIPT_LARGE)
        (void)snprintf(a->error, sizeof a->error, "the answer is larger than %d MiB",
                       e->dispatcher->o.set->response_mb);
    else
        (void)snprintf(a->error, sizeof a->error, "%s", receipt_end_about(r->end));
}

static void add(InferCall *a, uint32_t *n, const char *key, const char *text, double number) {
    InferParameter *parameters = (InferParameter *)(uintptr_t)a->response.parameters;
    parameters[(*n)++] = (InferParameter){.key = key, .text = text, .number = number};
}

// "0:12 2:3": twelve layers by version 0, three by version 2.
static const char *versions_text(InferCall *a, const uint32_t *versions) {
    char  *text = arena_try(&a->arena, LIVE_VERSIONS * 16, 1, 1);
    size_t n = 0;
    for (uint32_t v = 0; v < LIVE_VERSIONS && text != NULL; v++)
        if (versions[v] > 0)
            n += (size_t)snprintf(text + n, 16, "%s%u:%u", n > 0 ? " " : "", v, versions[v]);
    return text;
}

void dispatcher_add_timing(InferCall *a) {
    const Receipt    *r = &a->receipt;
    const LiveTiming *t = &r->timing;
    uint32_t          n = 0;
    a->response.parameters = arena_try_new(&a->arena, InferParameter, 20);
    if (a->response.parameters == NULL) return;
    add(a, &n, "cotenant_id", r->id, 0);
    add(a, &n, "decode_us", NULL, (double)(r->decoded - r->arrived) / 1e3);
    add(a, &n, "queue_us", NULL, (double)t->queue_ns / 1e3);
    add(a, &n, "compute_us", NULL, (double)t->compute_ns / 1e3);
    add(a, &n, "preempted_us", NULL, (double)t->paused_ns / 1e3);
    add(a, &n, "blocks", NULL, t->blocks);
    add(a, &n, "cores", NULL, t->cores_most);
    add(a, &n, "level", NULL, t->level);
    add(a, &n, "deadline_us", NULL, (double)(r->deadline - r->arrived) / 1e3);
    add(a, &n, "met", r->met ? "true" : "false", 0);
    const char *versions = versions_text(a, t->versions);
    if (versions != NULL) add(a, &n, "versions", versions, 0);
    if (r->behind != NULL) add(a, &n, "queued_behind", r->behind, 0);
    if (r->paused_by != NULL) add(a, &n, "preempted_by", r->paused_by, 0);
    if (r->cause[0] != 0) add(a, &n, "cause", r->cause, 0);
    a->response.n_parameters = n;
}
