// Sequences, optionals and strings. The length of a sequence is its only dimension; its data are
// Tensors, the elements.
#include <inttypes.h>
#include <string.h>

#include "base/tensor.h"
#include "base/text.h"
#include "base/work_stop.h"
#include "model/infer/infer_params.h"
#include "model/infer/selection.h"

static Err check_sequence(const Tensor *t) {
    return infer_check_type(t, dtype_bit(DT_SEQ), "sequence");
}

static Err sequence_of(Tensor *out, DType kind, int64_t n) {
    *out = (Tensor){.dtype = kind, .rank = 1, .dims = {n}};
    return ERR_OK;
}

static Err unknown_type(Tensor *out) {
    *out = (Tensor){.dtype = DT_NONE, .rank = RANK_UNKNOWN};
    return ERR_OK;
}

static const Tensor *element(const Tensor *sequence, int64_t i) {
    return &((const Tensor *)sequence->data)[i];
}

static Err like(const Tensor *t, Tensor *out) {
    *out = infer_like(t);
    return ERR_OK;
}

Err infer_sequence_position(const OpCall *c, uint32_t input, int64_t n, int64_t end, int64_t *at) {
    int64_t v = *at;
    bool    known = true;
    TRY(infer_int_input(c, input, &v, &known));
    if (!known) return err_set(ERR_INVALID, "the position is not known");
    if (v < -n || v >= end)
        return err_set(ERR_INVALID, "position %" PRId64 " is outside a sequence of %" PRId64, v, n);
    *at = v < 0 ? v + n : v;
    return ERR_OK;
}

Err infer_sequence_empty(const OpCall *c, Tensor *out) {
    DType type = DT_NONE;
    TRY(infer_dtype_attr(c->node, "dtype", DT_F32, TYPES_TENSOR, &type));
    return sequence_of(out, DT_SEQ, 0);
}

Err infer_sequence_construct(const OpCall *c, Tensor *out) {
    for (uint32_t i = 0; i < c->node->n_in; i++) {
        TRY(infer_present(c, i));
        TRY(infer_check_type(c->in[i], TYPES_TENSOR, "of a sequence"));
        if (c->in[i]->dtype != c->in[0]->dtype)
            return err_set(ERR_INVALID, "the elements have types %s and %s",
                           dtype_name(c->in[0]->dtype), dtype_name(c->in[i]->dtype));
    }
    return sequence_of(out, DT_SEQ, c->node->n_in);
}

Err infer_sequence_insert(const OpCall *c, Tensor *out) {
    const Tensor *s = c->in[0];
    int64_t       at = 0;
    bool          known = true;
    TRY(check_sequence(s));
    TRY(infer_check_type(c->in[1], TYPES_TENSOR, "tensor"));
    TRY(infer_int_input(c, 2, &at, &known));
    if (s->data != NULL && s->dims[0] > 0 && element(s, 0)->dtype != c->in[1]->dtype)
        return err_set(ERR_INVALID, "the sequence holds %s, the tensor is %s",
                       dtype_name(element(s, 0)->dtype), dtype_name(c->in[1]->dtype));
    return sequence_of(out, DT_SEQ, s->dims[0] + 1);
}

Err infer_sequence_erase(const OpCall *c, Tensor *out) {
    int64_t at = 0;
    bool    known = true;
    TRY(check_sequence(c->in[0]));
    TRY(infer_int_input(c, 1, &at, &known));
    if (c->in[0]->dims[0] == 0) return err_set(ERR_INVALID, "the sequence is empty");
    return sequence_of(out, DT_SEQ, c->in[0]->dims[0] - 1);
}

Err infer_sequence_at(const OpCall *c, Tensor *out) {
    const Tensor *s = c->in[0];
    int64_t       at = 0;
    bool          known = true;
    TRY(check_sequence(s));
    TRY(infer_int_input(c, 1, &at, &known));
    if (!known || s->data == NULL) return unknown_type(out);
    TRY(infer_sequence_position(c, 1, s->dims[0], s->dims[0], &at));
    return like(element(s, at), out);
}

Err infer_sequence_length(const OpCall *c, Tensor *out) {
    TRY(check_sequence(c->in[0]));
    *out = (Tensor){.dtype = DT_I64};
    return ERR_OK;
}

// Counts the pieces of equal size, or checks that the given sizes add up to the dimension.
static Err pieces_count(int64_t dim, SplitToSequenceParams *p, Tensor *out) {
    const Tensor *sizes = p->sizes;
    if (sizes == NULL || sizes->rank == 0) {
        if (sizes != NULL) p->each = tensor_get_i64(sizes, 0);
        if (p->each < 1) return err_set(ERR_INVALID, "a piece has the size %" PRId64, p->each);
        p->sizes = NULL;
        p->n = dim / p->each + (dim % p->each != 0);
        return sequence_of(out, DT_SEQ, p->n);
    }
    int64_t left = dim;
    p->n = sizes->dims[0];
    for (int64_t i = 0; i < p->n; i++) {
        int64_t size = tensor_get_i64(sizes, i);
        if (size < 0 || size > left)
            return err_set(ERR_INVALID, "piece %" PRId64 " of size %" PRId64 " exceeds the input",
                           i, size);
        left -= size;
    }
    if (left != 0)
        return err_set(ERR_INVALID, "the pieces leave %" PRId64 " of %" PRId64 " elements", left,
                       dim);
    return sequence_of(out, DT_SEQ, p->n);
}

Err infer_split_to_sequence_params(const OpCall *c, Tensor *out, SplitToSequenceParams *p) {
    const Tensor *x = c->in[0], *sizes = infer_input(c, 1);
    TRY(infer_check_type(x, TYPES_TENSOR, "input"));
    *p = (SplitToSequenceParams){.each = 1, .sizes = sizes};
    TRY(infer_axis(attr_int(c->node, "axis", 0), x->rank, &p->axis));
    p->drop_axis = sizes == NULL && attr_int(c->node, "keepdims", 1) == 0;
    TRY(sequence_of(out, DT_SEQ, 0));
    if (sizes != NULL) {
        TRY(infer_check_type(sizes, TYPES_INDEX, "split"));
        if (sizes->rank > 1) return err_set(ERR_INVALID, "split has rank %d", sizes->rank);
        if (!infer_has_data(sizes)) return infer_unknown_shape(out);
    }
    return pieces_count(x->dims[p->axis], p, out);
}

Err infer_split_to_sequence(const OpCall *c, Tensor *out) {
    SplitToSequenceParams p;
    return infer_split_to_sequence_params(c, out, &p);
}

static bool has_new_axis(const OpCall *c) { return attr_int(c->node, "new_axis", 0) != 0; }

Tensor infer_concat_from_sequence_element(const OpCall *c, int64_t i, int32_t axis) {
    Tensor t = *element(c->in[0], i);
    if (!has_new_axis(c)) return t;
    for (int32_t d = t.rank; d > axis; d--) t.dims[d] = t.dims[d - 1];
    t.dims[axis] = 1;
    t.rank++;
    return t;
}

Err infer_concat_from_sequence_axis(const OpCall *c, Tensor *out, int32_t *axis) {
    const Tensor *s = c->in[0];
    TRY(check_sequence(s));
    if (!attr_has(c->node, "axis")) return err_set(ERR_INVALID, "axis is missing");
    if (s->dims[0] == 0) return err_set(ERR_INVALID, "the sequence is empty");
    if (s->data == NULL) return unknown_type(out);
    int32_t rank = element(s, 0)->rank + (has_new_axis(c) ? 1 : 0);
    TRY(infer_check_rank(rank));
    TRY(infer_axis(attr_int(c->node, "axis", 0), rank, axis));
    Tensor first = infer_concat_from_sequence_element(c, 0, *axis);
    TRY(like(&first, out));
    for (int64_t i = 1; i < s->dims[0]; i++) {
        if (element(s, i)->rank != element(s, 0)->rank)
            return err_set(ERR_INVALID, "elements have ranks %d and %d", element(s, 0)->rank,
                           element(s, i)->rank);
        Tensor part = infer_concat_from_sequence_element(c, i, *axis);
        TRY(infer_concat_dim(&part, *axis, out));
    }
    return ERR_OK;
}

Err infer_concat_from_sequence(const OpCall *c, Tensor *out) {
    int32_t axis = 0;
    return infer_concat_from_sequence_axis(c, out, &axis);
}

Err infer_optional(const OpCall *c, Tensor *out) {
    const Tensor *x = infer_input(c, 0);
    if (x == NULL && !attr_has(c->node, "type"))
        return err_set(ERR_INVALID, "has neither an input nor a type");
    if (x != NULL) TRY(infer_check_type(x, TYPES_TENSOR | dtype_bit(DT_SEQ), "element"));
    return sequence_of(out, DT_OPT, x != NULL);
}

Err infer_optional_get_element(const OpCall *c, Tensor *out) {
    const Tensor *x = c->in[0];
    if (x->dtype != DT_OPT) return like(x, out);
    if (x->dims[0] == 0) return err_set(ERR_INVALID, "the optional is empty");
    return x->data != NULL ? like(element(x, 0), out) : unknown_type(out);
}

Err infer_optional_has_element(const OpCall *c, Tensor *out) {
    (void)c;
    *out = (Tensor){.dtype = DT_BOOL};
    return ERR_OK;
}

Err infer_string_normalizer(const OpCall *c, Tensor *out) {
    const Tensor *x = c->in[0];
    const char   *action = attr_str(c->node, "case_change_action", "NONE");
    Selection     s;
    TRY(infer_check_type(x, dtype_bit(DT_STR), "X"));
    if (x->rank < 1 || x->rank > 2 || (x->rank == 2 && x->dims[0] != 1))
        return err_set(ERR_INVALID, "the input must have shape C or 1xC");
    if (strcmp(action, "NONE") != 0 && strcmp(action, "LOWER") != 0 && strcmp(action, "UPPER") != 0)
        return err_set(ERR_INVALID, "case_change_action '%s' is invalid", action);
    *out = infer_like(x);
    if (!infer_has_data(x)) return infer_unknown_shape(out);
    TRY(selection_words(c, &s));
    out->dims[out->rank - 1] = s.n > 0 ? s.n : 1;
    return ERR_OK;
}

Err infer_string_concat(const OpCall *c, Tensor *out) {
    *out = (Tensor){.dtype = DT_STR};
    for (uint32_t i = 0; i < 2; i++) {
        TRY(infer_check_type(c->in[i], dtype_bit(DT_STR), "of strings"));
        TRY(infer_broadcast(c->in[i], out));
    }
    return ERR_OK;
}

Err infer_string_split(const OpCall *c, Tensor *out) {
    const Tensor *x = c->in[0];
    Str           separator = text_of(attr_str(c->node, "delimiter", ""));
    int64_t       cuts = attr_int(c->node, "maxsplit", -1), most = 0;
    TRY(infer_check_type(x, dtype_bit(DT_STR), "X"));
    TRY(infer_check_rank((int64_t)x->rank + 1));
    if (c->node->n_out > 1) out[1] = tensor_of(DT_I64, x->rank, x->dims, NULL);
    out[0] = tensor_of(DT_STR, x->rank, x->dims, NULL);
    if (!infer_has_data(x)) return infer_unknown_shape(&out[0]);
    for (int64_t i = 0; i < tensor_count(x); i++) {
        TRY(work_stop_check());
        int64_t n = text_split(((const Str *)x->data)[i], separator, cuts, NULL);
        if (n > most) most = n;
    }
    out[0].dims[out[0].rank++] = most;
    return ERR_OK;
}

// The n-grams of each length lie one after the other in the pool.
static Err check_grams(const TfIdfParams *g) {
    int64_t grams = 0;
    if (g->shortest < 1 || g->longest < g->shortest || g->longest > g->n_counts || g->skips < 0)
        return err_set(ERR_INVALID,
                       "gram lengths %" PRId64 " to %" PRId64 " with %" PRId64 " skips are invalid",
                       g->shortest, g->longest, g->skips);
    for (int64_t len = 1; len <= g->n_counts; len++) {
        int64_t from = g->counts[len - 1], to = len < g->n_counts ? g->counts[len] : g->n_pool;
        if (from < 0 || to < from || to > g->n_pool || (to - from) % len != 0)
            return err_set(ERR_INVALID, "ngram_counts does not fit the pool at length %" PRId64,
                           len);
        grams += (to - from) / len;
    }
    if (g->counts[0] != 0 || grams != g->n_indexes)
        return err_set(ERR_INVALID, "the pool holds %" PRId64 " n-grams, ngram_indexes %" PRId64,
                       grams, g->n_indexes);
    if (g->weights != NULL && g->n_weights != g->n_indexes)
        return err_set(ERR_INVALID, "%" PRId64 " weights for %" PRId64 " n-grams", g->n_weights,
                       g->n_indexes);
    return ERR_OK;
}

static void read_grams(const Node *n, TfIdfParams *g) {
    uint32_t counts = 0, indexes = 0, ints = 0, texts = 0, weights = 0;
    *g = (TfIdfParams){.shortest = attr_int(n, "min_gram_length", 0),
                       .longest = attr_int(n, "max_gram_length", 0),
                       .skips = attr_int(n, "max_skip_count", 0),
                       .counts = attr_ints(n, "ngram_counts", &counts),
                       .indexes = attr_ints(n, "ngram_indexes", &indexes),
                       .ints = attr_ints(n, "pool_int64s", &ints),
                       .texts = attr_strings(n, "pool_strings", &texts),
                       .weights = attr_floats(n, "weights", &weights)};
    g->n_counts = counts;
    g->n_indexes = indexes;
    g->n_weights = weights;
    g->n_pool = (int64_t)(texts > 0 ? texts : ints);
}

Err infer_tfidf_params(const OpCall *c, Tensor *out, TfIdfParams *g) {
    const Tensor *x = c->in[0];
    const char   *mode = attr_str(c->node, "mode", "");
    read_grams(c->node, g);
    bool words = x->dtype == DT_STR;
    TRY(infer_check_type(x, TYPES_INDEX | dtype_bit(DT_STR), "X"));
    if (x->rank < 1 || x->rank > 2) return err_set(ERR_INVALID, "the input has rank %d", x->rank);
    if (words != (g->texts != NULL && g->n_pool > 0) && g->n_pool > 0)
        return err_set(ERR_INVALID, "the pool must have the input's type");
    if (g->n_counts == 0) return err_set(ERR_INVALID, "ngram_counts is empty");
    TRY(check_grams(g));
    g->clip = strcmp(mode, "IDF") == 0;
    if (strcmp(mode, "TF") == 0)
        g->weights = NULL;
    else if (!g->clip && strcmp(mode, "TFIDF") != 0)
        return err_set(ERR_INVALID, "mode '%s' is not TF, IDF or TFIDF", mode);
    g->width = 0;
    for (int64_t i = 0; i < g->n_indexes; i++) {
        if (g->indexes[i] < 0 || g->indexes[i] == INT64_MAX)
            return err_set(ERR_INVALID, "ngram_indexes holds %" PRId64, g->indexes[i]);
        if (g->indexes[i] >= g->width) g->width = g->indexes[i] + 1;
    }
    *out = tensor_of(DT_F32, x->rank, x->dims, NULL);
    out->dims[out->rank - 1] = g->width;
    return ERR_OK;
}

Err infer_tfidf(const OpCall *c, Tensor *out) {
    TfIdfParams g;
    return infer_tfidf_params(c, out, &g);
}
