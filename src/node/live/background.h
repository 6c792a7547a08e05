// Background: a low-priority thread (SCHED_IDLE or a nice level), limited to
// a share of one core.
#pragma once

#include <stdbool.h>

#include "base/err.h"

typedef struct Background Background;
typedef Err               BackgroundFn(void *ctx);

// share: of one core, above 0 and up to 1. fn must neither fork nor block on other threads.
MUST_USE Err background_start(Background **out, double share, BackgroundFn *fn, void *ctx);
// The same at a nice level, 0 to 19, so that it progresses on a busy machine: at 10 it gets about a
// tenth of a contended core.
MUST_USE Err background_nice(Background **out, double share, int nice, BackgroundFn *fn, void *ctx);
bool         background_done(const Background *b);
MUST_USE Err background_join(Background *b);  // joins, frees, and returns the result of fn
