#include "base/err.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WHY_BYTES = 768 };
static _Thread_local char why[WHY_BYTES];

static const char *const texts[] = {
#define X(id, text) [ERR_##id] = text,
#include "base/err.def"
#undef X
};

bool err_note(const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(why, sizeof why, fmt, ap);
    va_end(ap);
    return n >= 0;
}

bool err_place(const char *fmt, ...) {
    char    whole[WHY_BYTES];
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(whole, sizeof whole, fmt, ap);
    va_end(ap);
    if (n < 0 || (size_t)n >= sizeof whole) return false;
    (void)snprintf(whole + n, sizeof whole - (size_t)n, ": %s", why);
    memcpy(why, whole, sizeof why);
    return true;
}

const char *err_why(void) { return why; }
const char *err_text(Err e) { return texts[e]; }

_Noreturn void check_fail(const char *expr, const char *file, int line) {
    fprintf(stderr, "%s:%d: assertion failed: %s\n", file, line, expr);
    abort();
}
