// InferenceServer: everything that serves models, from its start to the last answer.
//
// Told to end (SIGTERM, SIGINT) it first says that it is not ready, serves on for a while, then
// takes no more connections, answers what is due and goes. SIGHUP reads the configuration again.
#pragma once

#include <stdio.h>

#include "base/log.h"
#include "contract/node.h"
#include "serve/config/config.h"

enum { SERVER_BIND = 4, SERVER_MODEL = 5 };  // exit codes beside 0 and 1

typedef struct ServerOptions {
    Config           *config;   // the server's from now on; from malloc
    ConfigSources     sources;  // for reading it again
    const NodePolicy *policy;
    const void       *settings;  // of the policy
    FILE             *out;       // where the addresses are said, once all is ready
} ServerOptions;

// Returns when the server has ended. On failure *code is what the program exits with.
MUST_USE Err server_run(const ServerOptions *o, int *code);
