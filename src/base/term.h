// Term: what the stream at the other end can show.
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/clock.h"

bool     term_is_tty(FILE *f);      // a person is watching
bool     term_has_colour(FILE *f);  // a terminal that is not dumb, and NO_COLOR is unset or empty
uint32_t term_columns(FILE *f);     // 80 when unknown

// Progress: how far we are, one redrawn line on a terminal, one line per 10 % elsewhere.

typedef struct Progress {
    FILE       *out;
    const char *what;  // borrowed
    Clock       clock;
    int64_t     total, done;
    TimeNs      start, drawn;
    int32_t     tenth;         // last one told
    bool        live, colour;  // what out can show
} Progress;

// For libraries, which never print: they tell a sink how much of how much is done.
typedef struct ProgressSink {
    void (*step)(void *self, int64_t done, int64_t of);  // NULL: nobody listens
    void *self;
} ProgressSink;

void progress_begin(Progress *p, FILE *out, Clock clock, const char *what, int64_t total);
void progress_step(Progress *p, int64_t n);  // n more are done
void progress_end(Progress *p);              // leaves the line; also when it stopped early

ProgressSink       progress_sink(Progress *p);  // draws what it is told; p has begun
static inline void progress_report(ProgressSink s, int64_t done, int64_t of) {
    if (s.step != NULL) s.step(s.self, done, of);
}
