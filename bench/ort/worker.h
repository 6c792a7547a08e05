// Worker: an engine in a process of its own that runs in bursts and is stopped in between.
#pragma once

#include "base/clock.h"
#include "bench/ort/child.h"
#include "bench/ort/engine.h"

typedef struct Worker {
    const char *name;
    Child       child;
} Worker;

enum { WORKER_BURST_MAX = 1 << 16 };

typedef struct Answer {  // what the engine computed
    Tensor  *outputs;    // [n]
    uint32_t n;
    bool     quantised;
} Answer;

// Loads the network and runs it until warm; the answer lives in the arena. On failure nothing runs.
MUST_USE Err worker_start(Worker *w, const Engine *e, const char *path, const Terms *terms,
                          Arena *a, Answer *out);
MUST_USE Err worker_burst(Worker *w, uint32_t n, TimeNs *took);  // what each of n runs took
void         worker_end(Worker *w);                              // accepts one that never started
