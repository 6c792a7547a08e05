// What leaves the engine: copies of outputs, and words for those who get none.
#include <stdio.h>
#include <string.h>

#include "serve/desk_int.h"

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

bool desk_copy(Entry *e, const Tensor *outputs) {
    size_t left = (size_t)e->desk->o.set->response_mb << 20;
    for (uint32_t i = 0; i < e->ask.answer.n; i++)
        if (!copy_one(&e->ask.arena, &outputs[e->chosen[i]], &e->outputs[i], &left)) return false;
    return true;
}

// About when there is room again: what waits, one after the other.
static uint32_t retry_after(const Entry *e) {
    double ns = (double)(e->timing.waiting + 1) * (double)fleet_estimate_ns(e->ask.served);
    double s = ns / 1e9;
    return s < 1 ? 1 : s > 60 ? 60 : (uint32_t)s + 1;
}

void desk_explain(Entry *e) {
    Ask           *a = &e->ask;
    const Receipt *r = &a->receipt;
    bool           again = r->end == RECEIPT_FULL || r->end == RECEIPT_REFUSED;
    if (again && a->served != NULL) a->retry_s = retry_after(e);
    if (r->end == RECEIPT_MEMORY) a->retry_s = 1;
    if (a->error[0] != 0) return;
    if (r->cause[0] != 0)
        (void)snprintf(a->error, sizeof a->error, "%s", r->cause);
    else if (r->end == RECEIPT_FULL)
        (void)snprintf(a->error, sizeof a->error, "the queue of model '%s' is full (%d wait)",
                       r->model, a->served->config->set.queue);
    else if (r->end == RECEIPT_LARGE)
        (void)snprintf(a->error, sizeof a->error, "the answer is larger than %d MiB",
                       e->desk->o.set->response_mb);
    else
        (void)snprintf(a->error, sizeof a->error, "%s", receipt_end_about(r->end));
}
