// Terminal output: capabilities of a stream, and a progress line.
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/clock.h"

bool     term_is_tty(FILE *f);
bool     term_has_colour(FILE *f);  // a terminal, TERM is not dumb and NO_COLOR is unset
uint32_t term_columns(FILE *f);     // 80 if unknown

// Progress: one redrawn line on a terminal, a line per 10 % elsewhere.
typedef struct Progress {
    FILE       *out;
    const char *what;  // borrowed
    Clock       clock;
    int64_t     total, done;
    TimeNs      start, drawn;
    int32_t     tenth;         // last tenth printed
    bool        live, colour;  // capabilities of out
} Progress;

// For libraries, which never print: they report progress to a sink.
typedef struct ProgressSink {
    void (*step)(void *self, int64_t done, int64_t of);  // NULL: ignored
    void *self;
} ProgressSink;

void progress_begin(Progress *p, FILE *out, Clock clock, const char *what, int64_t total);
void progress_step(Progress *p, int64_t n);  // n more steps are done
void progress_end(Progress *p);              // ends the line, also after an early stop

ProgressSink       progress_sink(Progress *p);  // draws with p, which has begun
static inline void progress_report(ProgressSink s, int64_t done, int64_t of) {
    if (s.step != NULL) s.step(s.self, done, of);
}
