// Coroutine: a function on a stack of its own that can pause; any thread may resume it.
//
// Code that may run for long calls coroutine_point() often. Outside a coroutine, or before its
// slice is used up, that costs a counter. A paused coroutine that is not resumed any more is
// finished like any other: its stack holds nothing that needs cleaning up.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/err.h"

typedef struct Coroutine Coroutine;

MUST_USE Err coroutine_create(Coroutine **out);
void         coroutine_destroy(Coroutine *c);  // accepts NULL; paused, done or never begun

// Sets the function to run from the next coroutine_resume on.
void coroutine_begin(Coroutine *c, void (*run)(void *self), void *self);
// Runs it for about slice_ns, up to the next coroutine_point; true: run() has returned.
bool coroutine_resume(Coroutine *c, TimeNs slice_ns);

// Pauses the coroutine that runs on this thread if its slice is used up. `work` is about the number
// of nanoseconds of work since the last call.
void coroutine_spend(uint32_t work);

extern _Thread_local int64_t coroutine_left;  // work until the clock is read; internal

static inline void coroutine_point(uint32_t work) {
    coroutine_left -= work;
    if (__builtin_expect(coroutine_left <= 0, 0)) coroutine_spend(work);
}
