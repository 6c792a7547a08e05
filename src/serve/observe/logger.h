// Logger: the server's log. Logging never blocks: lines go through a ring buffer to a writer
// thread.
//
// There are two logs with one file. Lines about requests have a rate limit, above which they are
// suppressed, and are dropped while the ring is full. Lines about the server's life cycle (start,
// models, reloads, warnings, errors) have no limit and wait for the writer, 16384 at most. Lost
// lines are counted and reported in the log. A full disk only loses lines.
#pragma once

#include "base/log.h"

typedef struct Logger Logger;

typedef struct LoggerOptions {
    const char *file;  // appended to; "" or NULL: standard error
    LogLevel    least;
    LogFormat   format;
    uint32_t    rate;  // lines about requests per second; 0: 200
    uint32_t    room;  // lines in the ring; 0: 512
} LoggerOptions;

typedef struct LoggerCounts {
    uint64_t written, suppressed, dropped;  // dropped: ring full, or write failed
} LoggerCounts;

// ERR_CONFIG: the file cannot be written, or is not text.
MUST_USE Err logger_create(Logger **out, const LoggerOptions *o);
// Writes pending lines, for at most 2 s. Accepts NULL; no thread may log any more.
void logger_destroy(Logger *l);

MUST_USE Err logger_check(const char *path);  // as logger_create, without creating the file

const Log   *logger_log(const Logger *l);       // of the life cycle, for log_with; any thread
const Log   *logger_requests(const Logger *l);  // of requests, likewise
void         logger_reopen(Logger *l);          // after log rotation; async-signal-safe
LoggerCounts logger_counts(const Logger *l);
