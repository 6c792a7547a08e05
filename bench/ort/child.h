// Child: a process of ours at the other end of two pipes, stopped while it has nothing to do, so
// that its spinning threads disturb nobody.
#pragma once

#include <stddef.h>

#include "base/err.h"

typedef struct Child {
    int pid, to, from;  // pid 0: none
} Child;

typedef Err ChildFn(const void *job, int in, int out);  // what it does; it leaves when this returns

MUST_USE Err child_start(Child *c, ChildFn *fn, const void *job);
void         child_hold(const Child *c);
void         child_wake(const Child *c);
// Tells it to leave, by the bytes that its function takes for that. Accepts one that never started.
void child_end(Child *c, const void *leave, size_t n);

// Whole messages through a pipe.
MUST_USE Err child_send(int fd, const void *bytes, size_t n);
MUST_USE Err child_take(int fd, void *bytes, size_t n);
