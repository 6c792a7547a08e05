#include "base/option_list.h"

#include <stdlib.h>
#include <string.h>

#include "base/text.h"

Err option_list_words(const char *option, const char *text, Arena *a, const char ***out,
                      uint32_t *n) {
    const char **words = arena_new(a, const char *, OPTION_LIST_MAX);
    uint32_t     found = 0;
    for (const char *at = text;; at++) {
        size_t len = strcspn(at, ",");
        char  *word = arena_printf(a, "%.*s", (int)len, at);
        if (len == 0) return err_set(ERR_ARG, "--%s '%s': a name is missing", option, text);
        if (found == OPTION_LIST_MAX)
            return err_set(ERR_ARG, "--%s: more than %d names", option, OPTION_LIST_MAX);
        for (uint32_t i = 0; i < found; i++)
            if (strcmp(words[i], word) == 0)
                return err_set(ERR_ARG, "--%s %s: '%s' is named twice", option, text, word);
        words[found++] = word;
        at += len;
        if (*at == '\0') break;
    }
    *out = words;
    *n = found;
    return ERR_OK;
}

// "one, two and three"
static char *enumerate(const char *const *names, uint32_t n, Arena *a) {
    char *all = arena_str(a, names[0]);
    for (uint32_t i = 1; i < n; i++)
        all = arena_printf(a, "%s%s%s", all, i + 1 < n ? ", " : " and ", names[i]);
    return all;
}

static Err unknown(const char *option, const char *word, const char *const *names, uint32_t n,
                   Arena *a) {
    char hint[TEXT_MEANT];
    return err_set(
        ERR_ARG, "--%s: unknown '%s'; %s", option, word,
        text_meant(word, names, n, arena_printf(a, "use %s", enumerate(names, n, a)), hint));
}

Err option_list_flags(const char *option, const char *text, const char *const *names, uint32_t n,
                      Arena *a, uint32_t *bits) {
    const char **words = NULL;
    uint32_t     found = 0;
    *bits = 0;
    TRY(option_list_words(option, text, a, &words, &found));
    for (uint32_t i = 0; i < found; i++) {
        uint32_t k = 0;
        while (k < n && strcmp(words[i], names[k]) != 0) k++;
        if (k == n) return unknown(option, words[i], names, n, a);
        *bits |= 1U << k;
    }
    return ERR_OK;
}

Err option_list_numbers(const char *option, const char *text, double lo, double hi, Arena *a,
                        const double **out, uint32_t *n) {
    const char **words = NULL;
    uint32_t     found = 0;
    TRY(option_list_words(option, text, a, &words, &found));
    double *numbers = arena_new(a, double, found);
    for (uint32_t i = 0; i < found; i++) {
        char *end = NULL;
        numbers[i] = strtod(words[i], &end);
        if (end == words[i] || *end != '\0' || !(numbers[i] >= lo && numbers[i] <= hi))
            return err_set(ERR_ARG, "--%s: '%s' is not a number from %g to %g", option, words[i],
                           lo, hi);
        for (uint32_t k = 0; k < i; k++)
            if (numbers[k] == numbers[i])
                return err_set(ERR_ARG, "--%s %s: %g is named twice", option, text, numbers[i]);
    }
    *out = numbers;
    *n = found;
    return ERR_OK;
}
