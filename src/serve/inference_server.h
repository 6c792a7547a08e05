// InferenceServer: runs a server from its start to the last response.
//
// On SIGTERM or SIGINT it reports not ready, keeps serving for `drain_delay_ms`, then accepts no
// more connections, finishes requests within `drain_ms` and ends. SIGHUP reloads the configuration.
#pragma once

#include <stdio.h>

#include "base/log.h"
#include "contract/node.h"
#include "serve/config/config.h"

enum { SERVER_BIND = 4, SERVER_MODEL = 5 };  // exit codes besides 0 and 1

typedef struct ServerOptions {
    Config           *config;   // from malloc; owned by the server
    ConfigSources     sources;  // for reloading
    const NodePolicy *policy;
    const void       *settings;  // of the policy
    FILE             *out;       // the addresses are printed here once all models are ready
} ServerOptions;

// Returns when the server has ended. *code: exit code of the program.
MUST_USE Err server_run(const ServerOptions *o, int *code);
