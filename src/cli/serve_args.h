// ServeArgs: the command line of `serve`, `check` and `config dump`: an option for each server
// setting.
#pragma once

#include "cli/args.h"
#include "eval/policy_choice.h"
#include "serve/config/config.h"

enum { SERVE_ARG_SETTINGS = 64, SERVE_ARG_ROWS = 80, SERVE_ARG_SOURCES = 256 };

typedef struct ServeArgs {
    const char *config;  // NULL: not given
    ArgList     sets, policy_sets;
    const char *texts[SERVE_ARG_SETTINGS];  // by row of SERVE_SETTINGS; NULL: not given
    bool        flags[SERVE_ARG_SETTINGS];  // of settings that take no value
    char        names[SERVE_ARG_SETTINGS][32];
    char        helps[SERVE_ARG_SETTINGS][192];
    const char *sources[SERVE_ARG_SOURCES];  // model directories and files
} ServeArgs;

// Parses the command line, with the option --json if json is not NULL, and initialises the arena.
// Returns -1 and what config_load takes (it refers to x, a and argv), or the exit code; then a is
// finished.
int serve_args_parse(const Command *c, bool *json, int argc, char **argv, ServeArgs *x, Arena *a,
                     ConfigSources *out);
// Sets what the process may use, so that the configuration is checked against it.
MUST_USE Err serve_args_machine(Arena *a, ConfigSources *out);
// The policy of the configuration with its settings; ERR_CONFIG: there is none.
MUST_USE Err serve_args_policy(const ServeArgs *x, const Config *c, Arena *a, PolicyChoice *out);
