// Loader: a thread that does what is heavy, one job after another, while others are served.
#pragma once

#include "base/err.h"
#include "net/loop.h"

typedef struct LoaderJob LoaderJob;

struct LoaderJob {  // its owner keeps it where it is until done has run
    // In the background, behind those who serve. NULL: nothing. Must not wait.
    Err (*work)(void *self);
    // Then on the loader's own thread, with what came of work; may wait. NULL: nothing.
    Err (*settle)(void *self, Err e);
    void (*done)(void *self, Err e, const char *why);  // at last on the loop's thread
    void      *self;
    bool       urgent;  // a request waits for it: before those that are not
    LoaderJob *next;
    LoopPost   post;
    Err        result;
    char       why[512];
};

typedef struct Loader Loader;

MUST_USE Err loader_create(Loader **out, Loop *loop);
// Ends the thread after the job at hand; jobs that did not begin, or whose done did not run yet,
// are forgotten. Accepts NULL.
void loader_destroy(Loader *l);
void loader_put(Loader *l, LoaderJob *j);  // never waits, never fails
// That jobs' work may use from now on. 1: nobody is served yet, so it is as important as any.
void loader_share(Loader *l, double of_core);
