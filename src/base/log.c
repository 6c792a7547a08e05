#include "base/log.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <string.h>
#include <time.h>

#include "base/utf8.h"

enum { TAIL_BYTES = 64 };  // reserved for a closing quote and cut=true

typedef struct LogLine {
    char   text[LOG_BYTES];
    size_t len;
    bool   cut, json;
} LogLine;

static const char *const level_names[] = {"debug", "info", "warn", "error"};

static bool put(LogLine *l, const char *s, size_t n) {
    if (l->cut || l->len + n > sizeof l->text - TAIL_BYTES) {
        l->cut = true;
        return false;
    }
    memcpy(l->text + l->len, s, n);
    l->len += n;
    return true;
}

static void PRINTF(2, 3) putf(LogLine *l, const char *fmt, ...) {
    char    text[512];
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    if (n > 0) (void)put(l, text, (size_t)n < sizeof text ? (size_t)n : sizeof text - 1);
}

static bool needs_quotes(const char *s) {
    if (*s == '\0') return true;
    for (; *s != '\0'; s++)
        if ((unsigned char)*s <= ' ' || (unsigned char)*s >= 0x7F || strchr("=\"\\", *s) != NULL)
            return true;
    return false;
}

// JSON escapes in both formats, so that every value can be read back.
static bool put_escaped(LogLine *l, uint32_t point, const char *bytes, size_t n) {
    static const char plain[] = "\"\\\n\r\t", code[] = "\"\\nrt";
    if (point == UTF8_BAD) return put(l, "\\ufffd", 6);
    for (size_t i = 0; plain[i] != '\0'; i++)
        if (point == (unsigned char)plain[i]) return put(l, (char[]){'\\', code[i]}, 2);
    if (!utf8_control(point)) return put(l, bytes, n);
    char text[8];
    (void)snprintf(text, sizeof text, "\\u%04x", (unsigned)point & 0xFFFFu);
    return put(l, text, 6);
}

static void put_text(LogLine *l, const char *s) {
    if (!l->json && !needs_quotes(s)) {
        (void)put(l, s, strlen(s));
        return;
    }
    if (!put(l, "\"", 1)) return;
    for (const char *at = s, *end = s + strlen(s); at < end;) {
        const char *start = at;
        uint32_t    point = utf8_next(&at, end);
        if (!put_escaped(l, point, start, (size_t)(at - start))) break;
    }
    l->text[l->len++] = '"';  // from the reserved tail, so that a cut value is closed too
}

static void put_time(LogLine *l, TimeNs now) {
    int64_t   seconds = now / 1000000000, rest = now % 1000000000;
    time_t    t = (time_t)(rest < 0 ? seconds - 1 : seconds);
    struct tm utc = {0};
    char      text[32];
    (void)gmtime_r(&t, &utc);
    (void)strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &utc);
    putf(l, l->json ? "{\"ts\":\"%s.%06dZ\"" : "ts=%s.%06dZ", text,
         (int)((rest < 0 ? rest + 1000000000 : rest) / 1000));
}

static void put_key(LogLine *l, const char *key) {
    (void)put(l, l->json ? "," : " ", 1);
    if (l->json) {
        put_text(l, key);
        (void)put(l, ":", 1);
        return;
    }
    for (; *key != '\0'; key++) (void)put(l, needs_quotes((char[]){*key, '\0'}) ? "_" : key, 1);
    (void)put(l, "=", 1);
}

static void put_field(LogLine *l, const LogField *f) {
    put_key(l, f->key);
    if (f->kind == LOG_FIELD_TEXT) put_text(l, f->text != NULL ? f->text : "null");
    if (f->kind == LOG_FIELD_INT) putf(l, "%" PRId64, f->number);
    if (f->kind == LOG_FIELD_REAL && l->json && !isfinite(f->real))
        putf(l, "null");
    else if (f->kind == LOG_FIELD_REAL)
        putf(l, "%.9g", f->real);
    if (f->kind == LOG_FIELD_BOOL) putf(l, "%s", f->number != 0 ? "true" : "false");
}

static void put_head(LogLine *l, const Log *log, LogLevel level, const char *msg) {
    l->len = 0;
    l->cut = false;
    l->json = log->format == LOG_JSON;
    put_time(l, clock_now(log->clock));
    put_field(l, &(LogField){"level", LOG_FIELD_TEXT, {.text = level_names[level]}});
    put_field(l, &(LogField){"msg", LOG_FIELD_TEXT, {.text = msg}});
}

// A field that does not fit is dropped with its key, so that the line stays valid.
static void put_fields(LogLine *l, const LogField *f, size_t n) {
    for (size_t i = 0; i < n && !l->cut; i++) {
        size_t before = l->len;
        if (f[i].key == NULL) continue;
        put_field(l, &f[i]);
        if (l->cut && l->json) l->len = before;
    }
    const char *end = l->json ? l->cut ? ",\"cut\":true}\n" : "}\n" : l->cut ? " cut=true\n" : "\n";
    memcpy(l->text + l->len, end, strlen(end));
    l->len += strlen(end);
}

void log_write(const Log *log, LogLevel level, const char *msg, const LogField *f, size_t n) {
    if (level < log->min_level || (log->admit != NULL && !log->admit(log->self))) return;
    LogLine l;
    put_head(&l, log, level, msg);
    put_fields(&l, f, n);
    if (log->put != NULL) {
        log->put(log->self, l.text, l.len);
        return;
    }
    (void)fwrite(l.text, 1, l.len, log->out);
    (void)fflush(log->out);
}

void log_line(const Log *log, LogLevel level, const char *msg) {
    log_write(log, level, msg, NULL, 0);
}

Err log_level_parse(const char *name, LogLevel *out) {
    for (size_t i = 0; i < sizeof level_names / sizeof *level_names; i++)
        if (strcmp(name, level_names[i]) == 0) {
            *out = (LogLevel)i;
            return ERR_OK;
        }
    return err_set(ERR_ARG, "unknown log level '%s'; use debug, info, warn or error", name);
}

Err log_format_parse(const char *name, LogFormat *out) {
    bool json = strcmp(name, "json") == 0;
    if (!json && strcmp(name, "logfmt") != 0)
        return err_set(ERR_ARG, "unknown log format '%s'; use logfmt or json", name);
    *out = json ? LOG_JSON : LOG_LOGFMT;
    return ERR_OK;
}
