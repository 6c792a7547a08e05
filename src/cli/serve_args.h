// ServeArgs: the options of everything that reads a server's configuration, from the rows of its
// settings.
#pragma once

#include "cli/args.h"
#include "serve/config/config.h"

enum { SERVE_ARG_SETTINGS = 64, SERVE_ARG_ROWS = 80, SERVE_ARG_SOURCES = 256 };

typedef struct ServeArgs {
    const char *config;  // NULL: not given
    ArgList     sets;
    const char *texts[SERVE_ARG_SETTINGS];  // by row of SERVE_SETTINGS; NULL: not given
    bool        yes[SERVE_ARG_SETTINGS];    // those that take no value
    char        names[SERVE_ARG_SETTINGS][32];
    char        helps[SERVE_ARG_SETTINGS][192];
} ServeArgs;

// Writes the rows that fill x, headings included, and returns how many: a command puts its own
// before. x stays where it is until the options are parsed.
uint32_t serve_args_rows(ServeArgs *x, ArgRow rows[SERVE_ARG_ROWS]);

// What config_load takes; flags lie in a, the rest is borrowed.
MUST_USE Err serve_args_sources(const ServeArgs *x, const char *const *rest, uint32_t n_rest,
                                Arena *a, ConfigSources *out);
