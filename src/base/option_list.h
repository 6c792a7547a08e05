// OptionList: comma-separated values of command line options.
#pragma once

#include <stdint.h>

#include "base/arena.h"

enum { OPTION_LIST_MAX = 64, ARG_LIST_MAX = 64 };

typedef struct ArgList {  // values of an option that may be repeated
    const char *at[ARG_LIST_MAX];
    uint32_t    n;
    const char *option;  // its name, for messages; set with the first value
} ArgList;

// Rejects empty and repeated entries; errors name the option.
MUST_USE Err option_list_words(const char *option, const char *text, Arena *a, const char ***out,
                               uint32_t *n);
// Entries must be among n names; bit i of *bits stands for names[i].
MUST_USE Err option_list_flags(const char *option, const char *text, const char *const *names,
                               uint32_t n, Arena *a, uint32_t *bits);
MUST_USE Err option_list_numbers(const char *option, const char *text, double lo, double hi,
                                 Arena *a, const double **out, uint32_t *n);
