// Child: a child process connected by two pipes, stopped while idle, so that its spinning threads
// take no CPU time.
#pragma once

#include <stddef.h>

#include "base/err.h"

typedef struct Child {
    int pid, to, from;  // pid 0: none
} Child;

typedef Err ChildFn(const void *job, int in,
                    int out);  // its main function; it exits when this returns

MUST_USE Err child_start(Child *c, ChildFn *fn, const void *job);
void         child_hold(const Child *c);
void         child_wake(const Child *c);
// Sends `leave`, which makes its function return. Accepts a child that never started.
void child_end(Child *c, const void *leave, size_t n);

// Send and receive whole messages.
MUST_USE Err child_send(int fd, const void *bytes, size_t n);
MUST_USE Err child_take(int fd, void *bytes, size_t n);
