// Thread: starts threads that handle no signals, so that signals reach the thread that waits for
// them.
#pragma once

#include <pthread.h>

#include "base/err.h"

// name: at most 15 characters, for tools such as top. ERR_LIMIT if the system allows no more
// threads.
MUST_USE Err thread_start(pthread_t *out, const char *name, void *(*run)(void *self), void *self);
