// Loader: a thread that loads and compiles models, one job after another, beside the server.
#pragma once

#include "base/err.h"
#include "net/loop.h"

typedef struct LoaderJob LoaderJob;

struct LoaderJob {              // must stay valid until done has run
    void (*begun)(void *self);  // on the loop's thread, once the job has its turn; may be NULL
    // Runs at low priority on a background thread and must not block; may be NULL.
    Err (*work)(void *self);
    // Then runs on the loader's thread with the result of work; may block; may be NULL.
    Err (*settle)(void *self, Err e);
    void (*done)(void *self, Err e, const char *why);  // finally, on the loop's thread
    void      *self;
    bool       urgent;  // a request waits for it: goes before jobs that are not
    bool       quick;   // work takes milliseconds: runs on the loader's thread
    bool       paced;   // work rests by itself: runs at the lowest priority, without a share
    LoaderJob *next;
    LoopPost   begin_post, post;
    TimeNs     began;  // set before `begun` and `work`
    Err        result;
    char       why[512];
};

typedef struct Loader Loader;

MUST_USE Err loader_create(Loader **out, Loop *loop);
// Ends the thread after the present job; other jobs and callbacks are dropped. Accepts NULL.
void loader_destroy(Loader *l);
void loader_put(Loader *l, LoaderJob *j);  // never blocks, never fails
// Share of a core for the background thread; 1: no model is served yet, so it runs at full
// priority.
void loader_share(Loader *l, double of_core);
