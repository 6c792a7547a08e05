// Operators on strings. New text lives in the call's keep arena.
#include <string.h>

#include "base/text.h"
#include "compile/run.h"
#include "kernel/ref_string.h"
#include "kernel/walk.h"
#include "model/infer_string.h"
#include "model/select.h"

static Err new_text(const OpCall *c, size_t len, char **text) {
    *text = arena_try_new(c->keep, char, len + 1);
    return *text != NULL ? ERR_OK : err_set(ERR_LIMIT, "no room for a string of %zu bytes", len);
}

Err run_string_normalizer(const OpCall *c, Tensor *out) {
    bool       upper = attr_is(c->node, "case_change_action", "UPPER", false);
    bool       lower = attr_is(c->node, "case_change_action", "LOWER", false);
    const Str *words = c->in[0]->data;
    Str       *y = out->data;
    Selected   s;
    TRY(select_words(c, &s));
    if (s.n == 0) y[0] = (Str){"", 0};
    for (int64_t i = 0; i < s.n; i++) {
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
    Walk       w = walk_begin(out->rank, out->dims);
    walk_broadcast(&w, c->in[0]);
    walk_broadcast(&w, c->in[1]);
    for (; walk_more(&w); walk_next(&w)) {
        Str   left = a[w.off[0]], right = b[w.off[1]];
        char *text = NULL;
        TRY(new_text(c, left.len + right.len, &text));
        if (left.len > 0) memcpy(text, left.at, left.len);
        if (right.len > 0) memcpy(text + left.len, right.at, right.len);
        y[w.at] = (Str){text, left.len + right.len};
    }
    return ERR_OK;
}

Err run_string_split(const OpCall *c, Tensor *out) {
    Str        separator = text_of(attr_str(c->node, "delimiter", ""));
    int64_t    cuts = attr_int(c->node, "maxsplit", -1), most = out[0].dims[out[0].rank - 1];
    const Str *x = c->in[0]->data;
    for (int64_t i = 0; i < tensor_count(c->in[0]); i++) {
        Str    *row = (Str *)out[0].data + i * most;
        int64_t n = text_split(x[i], separator, cuts, row);
        for (int64_t k = n; k < most; k++) row[k] = (Str){"", 0};
        if (c->node->n_out > 1) ((int64_t *)out[1].data)[i] = n;
    }
    return ERR_OK;
}

Err run_tfidf(const OpCall *c, Tensor *out) {
    MoveGrams g;
    Tensor    shape;
    TRY(move_grams(c, &shape, &g));
    RefGrams p = {.shortest = g.shortest,
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
    ref_grams(&p, c->in[0], out);
    return ERR_OK;
}
