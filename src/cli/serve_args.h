// ServeArgs: the command line of `serve`, `check` and `config dump`: an option for each server
// setting.
#pragma once

#include "cli/args.h"
#include "serve/config/config.h"

enum { SERVE_ARG_SETTINGS = 64, SERVE_ARG_ROWS = 80, SERVE_ARG_SOURCES = 256 };

typedef struct ServeArgs {
    const char *config;  // NULL: not given
    ArgList     sets;
    const char *texts[SERVE_ARG_SETTINGS];  // by row of SERVE_SETTINGS; NULL: not given
    bool        flags[SERVE_ARG_SETTINGS];  // of settings that take no value
    char        names[SERVE_ARG_SETTINGS][32];
    char        helps[SERVE_ARG_SETTINGS][192];
    const char *sources[SERVE_ARG_SOURCES];  // model directories and files
} ServeArgs;

// Parses the command line, with one option of the command's own, and initialises the arena. Returns
// -1 and what config_load takes (it refers to x, a and argv), or the exit code; then a is finished.
int serve_args_parse(const Command *c, ArgRow own, int argc, char **argv, ServeArgs *x, Arena *a,
                     ConfigSources *out);
