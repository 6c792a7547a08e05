// HttpFetch: one GET from a running cotenant, for commands that print what it says.
#pragma once

#include <stdbool.h>

#include "base/arena.h"
#include "base/tensor.h"
#include "net/loop.h"

typedef struct HttpFetch {
    Loop    *loop;   // private
    Arena   *arena;  // of the body
    uint32_t status;
    Str      body;
    bool     cut, full;
    char     fault[256];  // "": there is a response
} HttpFetch;

// Fails only where there can be no request; see also fault and status.
MUST_USE Err http_fetch(const char *url, const char *path, double seconds, size_t most,
                        HttpFetch *v);
// The body of a response with status 200; else an error with what the server said. what: "server".
MUST_USE Err http_fetch_result(const char *url, const char *what, const HttpFetch *v, Str *out);

// Prints text of a server: control characters do not reach the terminal.
void http_print_safe(const char *before, const char *text);
