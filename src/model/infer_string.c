// Strings: StringNormalizer, StringConcat, StringSplit, TfIdfVectorizer.
#include "model/infer_string.h"

#include <inttypes.h>
#include <string.h>

#include "base/text.h"
#include "model/move.h"
#include "model/select.h"

static Str lowered(const OpCall *c, Str s) {
    char *low = arena_try_new(c->scratch, char, s.len);
    if (low == NULL) return (Str){0};
    text_lower(s, low);
    return (Str){low, s.len};
}

Err select_words(const OpCall *c, Selected *s) {
    const Tensor *x = c->in[0];
    uint32_t      n = 0;
    const Str    *stops = attr_strings(c->node, "stopwords", &n), *words = x->data;
    bool          exact = attr_int(c->node, "is_case_sensitive", 0) != 0;
    int64_t       count = tensor_count(x);
    Str          *low = arena_try_new(c->scratch, Str, n);
    *s = (Selected){.at = arena_try_new(c->scratch, int64_t, (size_t)count)};
    if (low == NULL || s->at == NULL) return err_set(ERR_LIMIT, "no room for the words");
    for (uint32_t i = 0; i < n; i++) {
        low[i] = exact ? stops[i] : lowered(c, stops[i]);
        if (low[i].at == NULL && low[i].len != stops[i].len)
            return err_set(ERR_LIMIT, "no room for the stop words");
    }
    for (int64_t i = 0; i < count; i++) {
        size_t mark = c->scratch->used;
        Str    word = exact ? words[i] : lowered(c, words[i]);
        if (word.len != words[i].len) return err_set(ERR_LIMIT, "no room for a word");
        bool stop = false;
        for (uint32_t k = 0; k < n && !stop; k++) stop = text_equal(word, low[k]);
        if (!stop) s->at[s->n++] = i;
        arena_rewind(c->scratch, mark);
    }
    return ERR_OK;
}

Err infer_string_normalizer(const OpCall *c, Tensor *out) {
    const Tensor *x = c->in[0];
    const char   *action = attr_str(c->node, "case_change_action", "NONE");
    Selected      s;
    TRY(infer_need(x, dtype_bit(DT_STR), "X"));
    if (x->rank < 1 || x->rank > 2 || (x->rank == 2 && x->dims[0] != 1))
        return err_set(ERR_INVALID, "the input must have shape C or 1xC");
    if (strcmp(action, "NONE") != 0 && strcmp(action, "LOWER") != 0 && strcmp(action, "UPPER") != 0)
        return err_set(ERR_INVALID, "case_change_action '%s' is not known", action);
    *out = *x;
    out->data = NULL;
    if (!move_known(x)) return move_unknown(out);
    TRY(select_words(c, &s));
    out->dims[out->rank - 1] = s.n > 0 ? s.n : 1;
    return ERR_OK;
}

Err infer_string_concat(const OpCall *c, Tensor *out) {
    *out = (Tensor){.dtype = DT_STR};
    for (uint32_t i = 0; i < 2; i++) {
        TRY(infer_need(c->in[i], dtype_bit(DT_STR), "of strings"));
        TRY(infer_broadcast(c->in[i], out));
    }
    return ERR_OK;
}

Err infer_string_split(const OpCall *c, Tensor *out) {
    const Tensor *x = c->in[0];
    Str           separator = text_of(attr_str(c->node, "delimiter", ""));
    int64_t       cuts = attr_int(c->node, "maxsplit", -1), most = 0;
    TRY(infer_need(x, dtype_bit(DT_STR), "X"));
    TRY(move_rank((int64_t)x->rank + 1));
    if (c->node->n_out > 1) out[1] = tensor_of(DT_I64, x->rank, x->dims, NULL);
    out[0] = tensor_of(DT_STR, x->rank, x->dims, NULL);
    if (!move_known(x)) return move_unknown(&out[0]);
    for (int64_t i = 0; i < tensor_count(x); i++) {
        int64_t n = text_split(((const Str *)x->data)[i], separator, cuts, NULL);
        if (n > most) most = n;
    }
    out[0].dims[out[0].rank++] = most;
    return ERR_OK;
}

// Where the n-grams of each length lie in the pool; all must fit.
static Err check_grams(const MoveGrams *g) {
    int64_t grams = 0;
    if (g->shortest < 1 || g->longest < g->shortest || g->longest > g->n_counts || g->skips < 0)
        return err_set(ERR_INVALID,
                       "gram lengths %" PRId64 " to %" PRId64 " with %" PRId64
                       " skips make no sense",
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

static void read_grams(const Node *n, MoveGrams *g) {
    uint32_t counts = 0, indexes = 0, ints = 0, texts = 0, weights = 0;
    *g = (MoveGrams){.shortest = attr_int(n, "min_gram_length", 0),
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

Err move_grams(const OpCall *c, Tensor *out, MoveGrams *g) {
    const Tensor *x = c->in[0];
    const char   *mode = attr_str(c->node, "mode", "");
    read_grams(c->node, g);
    bool words = x->dtype == DT_STR;
    TRY(infer_need(x, TYPES_INDEX | dtype_bit(DT_STR), "X"));
    if (x->rank < 1 || x->rank > 2) return err_set(ERR_INVALID, "the input has rank %d", x->rank);
    if (words != (g->texts != NULL && g->n_pool > 0) && g->n_pool > 0)
        return err_set(ERR_INVALID, "the pool is not of the input's type");
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
    MoveGrams g;
    return move_grams(c, out, &g);
}
