// Logger: a server's log. Who logs never waits: lines go through a ring to a thread that writes.
//
// Lines beyond the rate are suppressed, lines that find the ring full are dropped; both are counted
// and told in the log once there is room. A full disk costs lines, nothing else.
#pragma once

#include "base/log.h"

typedef struct Logger Logger;

typedef struct LoggerOptions {
    const char *file;  // appended to; "" or NULL: standard error
    LogLevel    least;
    LogFormat   format;
    uint32_t    rate;  // lines a second; 0: 200
    uint32_t    room;  // lines that wait to be written; 0: 512
} LoggerOptions;

typedef struct LoggerCounts {
    uint64_t written, suppressed, dropped;  // dropped: the ring was full, or writing failed
} LoggerCounts;

// ERR_IO when the file cannot be opened.
MUST_USE Err logger_create(Logger **out, const LoggerOptions *o);
// Writes what waits, for at most a second. Accepts NULL; nobody may log any more.
void logger_destroy(Logger *l);

const Log   *logger_log(const Logger *l);  // for log_with; from any thread
void         logger_reopen(Logger *l);     // the file was moved away; also from signal handlers
LoggerCounts logger_counts(const Logger *l);
bool logger_flush(Logger *l, TimeNs most);  // all that was logged before; false: not in time
