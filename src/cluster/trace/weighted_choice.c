#include "cluster/trace/weighted_choice.h"

#include <string.h>

#include "base/decimal.h"

static Err read_one(const char *what, const char *text, size_t len, Arena *a, WeightedChoice *w) {
    const char *colon = memchr(text, ':', len);
    size_t      word = colon != NULL ? (size_t)(colon - text) : 0;
    int64_t     millionths = 0;
    if (w->n == WEIGHTED_CHOICE_MAX)
        return err_set(ERR_CONFIG, "%s: more than %d words", what, WEIGHTED_CHOICE_MAX);
    if (word == 0)
        return err_set(ERR_CONFIG, "%s: '%.*s' lacks a weight; write 1:90 2:10", what, (int)len,
                       text);
    char        *weight = arena_printf(a, "%.*s", (int)(len - word - 1), colon + 1);
    DecimalError f = decimal_read(weight, 1000000, INT64_C(1000000000000000), &millionths);
    if (f != DECIMAL_OK)
        return err_set(ERR_CONFIG, "%s: weight '%.40s' %s", what, weight, decimal_error_text(f));
    w->word[w->n] = arena_printf(a, "%.*s", (int)word, text);
    w->weight[w->n] = (double)millionths / 1e6;
    w->sum += w->weight[w->n++];
    return ERR_OK;
}

Err weighted_choice_read(const char *what, const char *text, Arena *a, WeightedChoice *out) {
    *out = (WeightedChoice){0};
    for (;;) {
        text += strspn(text, " ,");
        size_t len = strcspn(text, " ,");
        if (len == 0) break;
        TRY(read_one(what, text, len, a, out));
        text += len;
    }
    if (!(out->sum > 0)) return err_set(ERR_CONFIG, "%s: nothing in it has a weight", what);
    return ERR_OK;
}

uint32_t weighted_choice_draw(const WeightedChoice *w, Rng *r) {
    double at = rng_unit64(r) * w->sum;
    for (uint32_t i = 0; i < w->n; i++) {
        if (at < w->weight[i]) return i;
        at -= w->weight[i];
    }
    uint32_t last = w->n - 1;  // against rounding
    while (last > 0 && w->weight[last] == 0) last--;
    return last;
}
