// Background: work that must not be felt: a thread that runs when nobody else wants the core, and
// never more than a share of one.
#pragma once

#include <stdbool.h>

#include "base/err.h"

typedef struct Background Background;
typedef Err               BackgroundFn(void *ctx);

// share: of one core, above 0 and up to 1. fn must neither fork nor wait for others.
MUST_USE Err background_start(Background **out, double share, BackgroundFn *fn, void *ctx);
// The same at a nice level, 0 to 19, so that it gets on beside others: at 10 about a tenth of a
// core that they want as well.
MUST_USE Err background_nice(Background **out, double share, int nice, BackgroundFn *fn, void *ctx);
bool         background_done(const Background *b);
MUST_USE Err background_join(Background *b);  // waits, frees it, and returns what fn returned
