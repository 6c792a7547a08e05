// Thread: starts threads that handle no signals, so that signals reach the thread that waits for
// them.
#pragma once

#include <pthread.h>
#include <sys/types.h>

#include "base/clock.h"
#include "base/err.h"

// name: at most 15 characters, for tools such as top. ERR_LIMIT if the system allows no more
// threads.
MUST_USE Err thread_start(pthread_t *out, const char *name, void *(*run)(void *self), void *self);

// Time that a thread (0: the calling one) may use a CPU before others; 0: the system's default. A
// thread with a short slice that wakes up does not wait for the end of another's longer one. A
// hint: Linux before 6.12 ignores it.
void thread_set_slice(pid_t tid, TimeNs slice);
