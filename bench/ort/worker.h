// Worker: an engine in its own process, which runs in bursts and is stopped in between.
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

// Loads and warms up the network; the answer lives in the arena. On failure no process is left.
MUST_USE Err worker_start(Worker *w, const Engine *e, const char *path, const EngineOptions *cfg,
                          Arena *a, Answer *out);
MUST_USE Err worker_burst(Worker *w, uint32_t n, TimeNs *took);  // took[i]: time of run i
void         worker_end(Worker *w);  // accepts a worker that never started
