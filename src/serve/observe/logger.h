// Logger: the server's log. Logging never blocks: lines go through a ring buffer to a writer
// thread.
//
// Lines above the rate limit are suppressed and lines that do not fit into the ring are dropped;
// both are counted and reported in the log. A full disk only loses lines.
#pragma once

#include "base/log.h"

typedef struct Logger Logger;

typedef struct LoggerOptions {
    const char *file;  // appended to; "" or NULL: standard error
    LogLevel    least;
    LogFormat   format;
    uint32_t    rate;  // lines per second; 0: 200
    uint32_t    room;  // lines in the ring; 0: 512
} LoggerOptions;

typedef struct LoggerCounts {
    uint64_t written, suppressed, dropped;  // dropped: ring full, or write failed
} LoggerCounts;

// ERR_IO: the file cannot be opened.
MUST_USE Err logger_create(Logger **out, const LoggerOptions *o);
// Writes pending lines, for at most 2 s. Accepts NULL; no thread may log any more.
void logger_destroy(Logger *l);

const Log   *logger_log(const Logger *l);  // for log_with; from any thread
void         logger_reopen(Logger *l);     // after log rotation; async-signal-safe
LoggerCounts logger_counts(const Logger *l);
