#include "base/log.h"

#include <inttypes.h>
#include <stdarg.h>
#include <string.h>
#include <time.h>

#include "base/utf8.h"

enum { LINE_BYTES = 4096, TAIL_BYTES = 64 };  // the tail stays free for a quote and " cut=true\n"

typedef struct Line {
    char   text[LINE_BYTES];
    size_t len;
    bool   cut;
} Line;

static const char *const level_names[] = {"debug", "info", "warn", "error"};

static bool put(Line *l, const char *s, size_t n) {
    if (l->cut || n > sizeof l->text - TAIL_BYTES - l->len) {
        l->cut = true;
        return false;
    }
    memcpy(l->text + l->len, s, n);
    l->len += n;
    return true;
}

static void PRINTF(2, 3) putf(Line *l, const char *fmt, ...) {
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

// Escapes as JSON does, so that a reader of either takes the value back whole.
static bool put_escaped(Line *l, uint32_t point, const char *bytes, size_t n) {
    static const char plain[] = "\"\\\n\r\t", code[] = "\"\\nrt";
    if (point == UTF8_BAD) return put(l, "\\ufffd", 6);
    for (size_t i = 0; plain[i] != '\0'; i++)
        if (point == (unsigned char)plain[i]) return put(l, (char[]){'\\', code[i]}, 2);
    if (!utf8_control(point)) return put(l, bytes, n);
    char text[8];
    (void)snprintf(text, sizeof text, "\\u%04x", (unsigned)point & 0xFFFFu);
    return put(l, text, 6);
}

static void put_text(Line *l, const char *s) {
    if (!needs_quotes(s)) {
        (void)put(l, s, strlen(s));
        return;
    }
    if (!put(l, "\"", 1)) return;
    for (const char *at = s, *end = s + strlen(s); at < end;) {
        const char *start = at;
        uint32_t    point = utf8_next(&at, end);
        if (!put_escaped(l, point, start, (size_t)(at - start))) break;
    }
    l->text[l->len++] = '"';  // from the tail, so that a cut value is closed too
}

static void put_time(Line *l, TimeNs now) {
    int64_t   seconds = now / 1000000000, rest = now % 1000000000;
    time_t    t = (time_t)(rest < 0 ? seconds - 1 : seconds);
    struct tm utc = {0};
    char      text[32];
    (void)gmtime_r(&t, &utc);
    (void)strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &utc);
    putf(l, "ts=%s.%06dZ", text, (int)((rest < 0 ? rest + 1000000000 : rest) / 1000));
}

static void put_key(Line *l, const char *key) {
    (void)put(l, " ", 1);
    for (; *key != '\0'; key++) (void)put(l, needs_quotes((char[]){*key, '\0'}) ? "_" : key, 1);
    (void)put(l, "=", 1);
}

static void put_field(Line *l, const LogField *f) {
    put_key(l, f->key);
    if (f->kind == LOG_FIELD_TEXT) put_text(l, f->text != NULL ? f->text : "null");
    if (f->kind == LOG_FIELD_INT) putf(l, "%" PRId64, f->number);
    if (f->kind == LOG_FIELD_REAL) putf(l, "%.9g", f->real);
    if (f->kind == LOG_FIELD_BOOL) putf(l, "%s", f->number != 0 ? "true" : "false");
}

void log_write(const Log *log, LogLevel level, const char *msg, const LogField *f, size_t n) {
    if (level < log->least) return;
    Line l;
    l.len = 0;
    l.cut = false;
    put_time(&l, clock_now(log->clock));
    putf(&l, " level=%s msg=", level_names[level]);
    put_text(&l, msg);
    for (size_t i = 0; i < n && !l.cut; i++) put_field(&l, &f[i]);
    const char *end = l.cut ? " cut=true\n" : "\n";
    memcpy(l.text + l.len, end, strlen(end));
    (void)fwrite(l.text, 1, l.len + strlen(end), log->out);
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
    return err_set(ERR_ARG, "'%s' is no log level; write debug, info, warn or error", name);
}
