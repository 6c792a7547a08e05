// Log: structured log lines in logfmt or JSON, one write per line. Programs and engines log,
// libraries do not.
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/err.h"

typedef enum LogLevel { LOG_DEBUG, LOG_INFO, LOG_WARN, LOG_ERROR } LogLevel;

typedef enum LogFormat { LOG_LOGFMT, LOG_JSON } LogFormat;

enum { LOG_BYTES = 4096 };  // of a line, at most; longer lines end with cut=true

typedef struct Log {  // may be shared between threads after setup
    FILE     *out;
    LogLevel  min_level;
    Clock     clock;
    LogFormat format;
    // put receives each line, newline included, in place of out; NULL: out. A line is dropped
    // before it is formatted if admit returns false; NULL: none is.
    void (*put)(void *self, const char *line, size_t len);
    bool (*admit)(void *self);
    void *self;
} Log;

typedef struct LogField {
    const char *key;  // NULL: the field is left out
    enum { LOG_FIELD_TEXT, LOG_FIELD_INT, LOG_FIELD_REAL, LOG_FIELD_BOOL } kind;
    union {
        const char *text;
        int64_t     number;
        double      real;
    };
} LogField;

static inline LogField log_text(const char *key, const char *text) {
    return (LogField){key, LOG_FIELD_TEXT, {.text = text}};
}
static inline LogField log_int(const char *key, int64_t number) {
    return (LogField){key, LOG_FIELD_INT, {.number = number}};
}
static inline LogField log_real(const char *key, double real) {
    return (LogField){key, LOG_FIELD_REAL, {.real = real}};
}
static inline LogField log_bool(const char *key, bool yes) {
    return (LogField){key, LOG_FIELD_BOOL, {.number = yes}};
}

// A field without a value yet is left out of the line.
static inline LogField log_if(bool has_value, LogField f) { return has_value ? f : (LogField){0}; }

// log_with(&log, LOG_WARN, "model rejected", log_text("name", name), log_int("node", 7));
#define log_with(log, level, msg, ...)                                                             \
    log_write((log), (level), (msg), (const LogField[]){__VA_ARGS__},                              \
              sizeof((const LogField[]){__VA_ARGS__}) / sizeof(LogField))

void log_line(const Log *log, LogLevel level, const char *msg);
void log_write(const Log *log, LogLevel level, const char *msg, const LogField *f, size_t n);
MUST_USE Err log_level_parse(const char *name, LogLevel *out);    // "debug" to "error"
MUST_USE Err log_format_parse(const char *name, LogFormat *out);  // "logfmt" or "json"
