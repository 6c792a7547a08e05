// Args: a command's options as rows; parses them and prints the help from the same rows.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/option_list.h"

enum { EXIT_FAILED = 1, EXIT_USAGE = 2, EXIT_CONFIG = 3 };

// ARG_GROUP is no option: its name is a heading in the help.
typedef enum ArgKind { ARG_FLAG, ARG_INT, ARG_REAL, ARG_TEXT, ARG_LIST, ARG_GROUP } ArgKind;

typedef struct ArgRow {
    const char *name;  // without the dashes; of one letter: also with a single dash
    ArgKind     kind;
    void       *to;   // bool, int64_t, double, const char * or ArgList by kind
    const char *arg;  // what stands for the value in the help; NULL for flags
    const char *help;
    int64_t     min, max;  // of ARG_INT and ARG_REAL
} ArgRow;

typedef struct Command {
    const char *name, *about, *usage, *examples;
    int (*run)(const struct Command *c, int argc, char **argv);
} Command;

// Options may stand anywhere; what is left is moved to rest (at most max_rest, at least min_rest).
// Returns -1 to go on, or the exit code when help was asked for or the usage is wrong.
int args_parse(const Command *c, const ArgRow *rows, uint32_t n_rows, int argc, char **argv,
               const char **rest, uint32_t min_rest, uint32_t max_rest, uint32_t *n_rest);

int args_fail(int code, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
