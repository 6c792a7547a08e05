// Fetch: one document from a server over HTTP, for commands that show it.
#pragma once

#include "base/arena.h"
#include "base/err.h"
#include "base/tensor.h"

// GET of a path below url ("http://127.0.0.1:8002"), of at most `most` bytes, within `seconds`; the
// text is a's. What is not answered with 200 is an error with the server's own words.
MUST_USE Err fetch(const char *url, const char *path, double seconds, size_t most, Arena *a,
                   Str *out);
