// List: what an option names, parted by commas.
#pragma once

#include <stdint.h>

#include "base/arena.h"

enum { OPTION_LIST_MAX = 64, ARG_LIST_MAX = 64 };

typedef struct ArgList {  // an option that may be given several times
    const char *at[ARG_LIST_MAX];
    uint32_t    n;
} ArgList;

// Nothing empty, nothing twice; errors name the option.
MUST_USE Err option_list_words(const char *option, const char *text, Arena *a, const char ***out,
                               uint32_t *n);
// Words that are among n names, a bit for each.
MUST_USE Err option_list_flags(const char *option, const char *text, const char *const *names,
                               uint32_t n, Arena *a, uint32_t *bits);
MUST_USE Err option_list_numbers(const char *option, const char *text, double lo, double hi,
                                 Arena *a, const double **out, uint32_t *n);
