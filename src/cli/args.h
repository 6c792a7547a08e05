// Args: the options of a command as rows, which parse the command line and print the help.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/option_list.h"

enum { EXIT_FAILED = 1, EXIT_USAGE = 2, EXIT_CONFIG = 3 };

// ARG_GROUP is a heading in the help, not an option.
typedef enum ArgKind { ARG_FLAG, ARG_INT, ARG_REAL, ARG_TEXT, ARG_LIST, ARG_GROUP } ArgKind;

typedef struct ArgRow {
    const char *name;  // without dashes; of one letter: also accepted with a single dash
    ArgKind     kind;
    void       *to;   // bool, int64_t, double, const char * or ArgList by kind
    const char *arg;  // placeholder of the value in the help; NULL for flags
    const char *help;
    int64_t     min, max;  // of ARG_INT and ARG_REAL
} ArgRow;

typedef struct Command {
    const char *name, *about, *usage, *examples;
    int (*run)(const struct Command *c, int argc, char **argv);
} Command;

// Options may appear anywhere; the other words are stored in rest (min_rest to max_rest of them).
// Returns -1 to go on, or the exit code after --help or a usage error.
int args_parse(const Command *c, const ArgRow *rows, uint32_t n_rows, int argc, char **argv,
               const char **rest, uint32_t min_rest, uint32_t max_rest, uint32_t *n_rest);

int args_fail(int code, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
