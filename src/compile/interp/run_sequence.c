// Sequences, optionals and strings. Elements live in the call's `keep` arena; a sequence is an
// array of tensors.
#include <string.h>

#include "base/tensor.h"
#include "base/text.h"
#include "base/work_stop.h"
#include "compile/interp/run_ops.h"
#include "kernel/nd_iter.h"
#include "kernel/ref/ref_copy.h"
#include "kernel/ref/ref_feature.h"
#include "model/infer/infer_params.h"
#include "model/infer/selection.h"

static void copy_elements(Tensor *to, const Tensor *from, int64_t n) {
    if (n > 0) work_copy(to, from, (size_t)n * sizeof *to);
}

static Err copy_bytes(const Tensor *from, Tensor *out) {
    size_t bytes = 0;
    TRY(tensor_measure(out, &bytes));
    work_copy(out->data, from->data, bytes);
    return ERR_OK;
}

Err run_sequence_empty(const OpCall *c, Tensor *out) {
    (void)c;
    (void)out;
    return ERR_OK;
}

Err run_sequence_construct(const OpCall *c, Tensor *out) {
    Tensor *elements = out->data;
    for (uint32_t i = 0; i < c->node->n_in; i++) TRY(run_copy(c->keep, c->in[i], &elements[i]));
    return ERR_OK;
}

Err run_sequence_insert(const OpCall *c, Tensor *out) {
    const Tensor *from = c->in[0]->data;
    Tensor       *to = out->data;
    int64_t       n = c->in[0]->dims[0], at = n;
    TRY(infer_sequence_position(c, 2, n, n + 1, &at));
    copy_elements(to, from, at);
    copy_elements(to + at + 1, from + at, n - at);
    return run_copy(c->keep, c->in[1], &to[at]);
}

Err run_sequence_erase(const OpCall *c, Tensor *out) {
    const Tensor *from = c->in[0]->data;
    Tensor       *to = out->data;
    int64_t       n = c->in[0]->dims[0], at = n - 1;
    TRY(infer_sequence_position(c, 1, n, n, &at));
    copy_elements(to, from, at);
    copy_elements(to + at, from + at + 1, n - at - 1);
    return ERR_OK;
}

Err run_sequence_at(const OpCall *c, Tensor *out) {
    int64_t n = c->in[0]->dims[0], at = 0;
    TRY(infer_sequence_position(c, 1, n, n, &at));
    return copy_bytes(&((const Tensor *)c->in[0]->data)[at], out);
}

Err run_sequence_length(const OpCall *c, Tensor *out) {
    *(int64_t *)out->data = c->in[0]->dims[0];
    return ERR_OK;
}

// Copies one piece of the split.
static Err make_piece(const OpCall *c, const SplitToSequenceParams *p, RefStrided from,
                      int64_t size, Tensor *piece) {
    Tensor t = *c->in[0];
    t.dims[p->axis] = size;
    TRY(tensor_alloc(&t, c->keep));
    ref_copy(t.rank, t.dims, dtype_size(t.dtype), ref_strided(&t), from);
    if (p->drop_axis) {
        for (int32_t i = p->axis; i + 1 < t.rank; i++) t.dims[i] = t.dims[i + 1];
        t.rank--;
    }
    *piece = t;
    return ERR_OK;
}

Err run_split_to_sequence(const OpCall *c, Tensor *out) {
    Tensor                shape, *pieces = out->data;
    SplitToSequenceParams p;
    TRY(infer_split_to_sequence_params(c, &shape, &p));
    RefStrided from = ref_strided(c->in[0]);
    int64_t    left = c->in[0]->dims[p.axis];
    for (int64_t i = 0; i < p.n && !work_stopped(); i++) {
        int64_t size = p.sizes != NULL ? tensor_get_i64(p.sizes, i) : left < p.each ? left : p.each;
        TRY(make_piece(c, &p, from, size, &pieces[i]));
        from.start += size * from.stride[p.axis];
        left -= size;
    }
    return ERR_OK;
}

Err run_concat_from_sequence(const OpCall *c, Tensor *out) {
    Tensor  shape;
    int32_t axis = 0;
    TRY(infer_concat_from_sequence_axis(c, &shape, &axis));
    RefStrided to = ref_strided(out);
    for (int64_t i = 0; i < c->in[0]->dims[0] && !work_stopped(); i++) {
        Tensor part = infer_concat_from_sequence_element(c, i, axis);
        ref_copy(part.rank, part.dims, dtype_size(part.dtype), to, ref_strided(&part));
        to.start += part.dims[axis] * to.stride[axis];
    }
    return ERR_OK;
}

Err run_optional(const OpCall *c, Tensor *out) {
    const Tensor *x = infer_input(c, 0);
    return x != NULL ? run_copy(c->keep, x, out->data) : ERR_OK;
}

Err run_optional_get_element(const OpCall *c, Tensor *out) {
    const Tensor *x = c->in[0];
    return copy_bytes(x->dtype == DT_OPT ? x->data : x, out);
}

Err run_optional_has_element(const OpCall *c, Tensor *out) {
    const Tensor *x = infer_input(c, 0);
    *(uint8_t *)out->data = x != NULL && (x->dtype != DT_OPT || x->dims[0] > 0);
    return ERR_OK;
}

// String operators. New strings live in the call's `keep` arena.

static Err new_text(const OpCall *c, size_t len, char **text) {
    *text = arena_try_new(c->keep, char, len + 1);
    return *text != NULL ? ERR_OK : err_set(ERR_LIMIT, "no memory for a string of %zu bytes", len);
}

Err run_string_normalizer(const OpCall *c, Tensor *out) {
    bool       upper = attr_is(c->node, "case_change_action", "UPPER", false);
    bool       lower = attr_is(c->node, "case_change_action", "LOWER", false);
    const Str *words = c->in[0]->data;
    Str       *y = out->data;
    Selection  s;
    TRY(selection_words(c, &s));
    if (s.n == 0) y[0] = (Str){"", 0};
    for (int64_t i = 0; i < s.n && !work_stopped(); i++) {
        char *text = NULL;
        y[i] = words[s.at[i]];
        if (!upper && !lower) continue;
        TRY(new_text(c, y[i].len, &text));
        if (upper)
            text_upper(y[i], text);
        else
            text_lower(y[i], text);
        y[i].at = text;
    }
    return ERR_OK;
}

Err run_string_concat(const OpCall *c, Tensor *out) {
    const Str *a = c->in[0]->data, *b = c->in[1]->data;
    Str       *y = out->data;
    NdIter     w = nd_iter_begin(out->rank, out->dims);
    nd_iter_broadcast(&w, c->in[0]);
    nd_iter_broadcast(&w, c->in[1]);
    for (; nd_iter_more(&w); nd_iter_next(&w)) {
        Str   left = a[w.off[0]], right = b[w.off[1]];
        char *text = NULL;
        TRY(new_text(c, left.len + right.len, &text));
        work_copy(text, left.at, left.len);
        work_copy(text + left.len, right.at, right.len);
        y[w.at] = (Str){text, left.len + right.len};
    }
    return ERR_OK;
}

Err run_string_split(const OpCall *c, Tensor *out) {
    Str        separator = text_of(attr_str(c->node, "delimiter", ""));
    int64_t    cuts = attr_int(c->node, "maxsplit", -1), most = out[0].dims[out[0].rank - 1];
    const Str *x = c->in[0]->data;
    for (int64_t i = 0; i < tensor_count(c->in[0]) && !work_stopped(); i++) {
        Str    *row = (Str *)out[0].data + i * most;
        int64_t n = text_split(x[i], separator, cuts, row);
        for (int64_t k = n; k < most && !work_stopped(); k++) row[k] = (Str){"", 0};
        if (c->node->n_out > 1) ((int64_t *)out[1].data)[i] = n;
    }
    return ERR_OK;
}

Err run_tfidf(const OpCall *c, Tensor *out) {
    TfIdfParams g;
    Tensor      shape;
    TRY(infer_tfidf_params(c, &shape, &g));
    RefNgrams p = {.shortest = g.shortest,
                   .longest = g.longest,
                   .skips = g.skips,
                   .counts = g.counts,
                   .indexes = g.indexes,
                   .ints = g.ints,
                   .texts = g.texts,
                   .weights = g.weights,
                   .n_counts = g.n_counts,
                   .n_pool = g.n_pool,
                   .clip = g.clip};
    ref_ngrams(&p, c->in[0], out);
    return ERR_OK;
}
