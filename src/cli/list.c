#include "cli/list.h"

#include <stdlib.h>
#include <string.h>

Err list_words(const char *option, const char *text, Arena *a, const char ***out, uint32_t *n) {
    const char **words = arena_new(a, const char *, LIST_MAX);
    uint32_t     found = 0;
    for (const char *at = text;; at++) {
        size_t len = strcspn(at, ",");
        char  *word = arena_printf(a, "%.*s", (int)len, at);
        if (len == 0) return err_set(ERR_ARG, "--%s '%s': a name is missing", option, text);
        if (found == LIST_MAX)
            return err_set(ERR_ARG, "--%s: more than %d names", option, LIST_MAX);
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

Err list_numbers(const char *option, const char *text, double lo, double hi, double *out,
                 uint32_t max, uint32_t *n) {
    for (*n = 0;; text++) {
        char  *end = NULL;
        double v = strtod(text, &end);
        if (end == text || (*end != ',' && *end != '\0') || !(v >= lo && v <= hi))
            return err_set(ERR_ARG, "--%s: '%s' is not a list of numbers from %g to %g", option,
                           text, lo, hi);
        if (*n == max) return err_set(ERR_LIMIT, "--%s: more than %u numbers", option, max);
        out[(*n)++] = v;
        text = end;
        if (*text == '\0') return ERR_OK;
    }
}
