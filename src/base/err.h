// Errors: one enum for the whole program, with a message per thread; and CHECK for programming
// errors.
#pragma once

#include <stdbool.h>

typedef enum Err {
#define X(id, text) ERR_##id,
#include "base/err.def"
#undef X
} Err;

#define MUST_USE     __attribute__((warn_unused_result))
#define PRINTF(f, a) __attribute__((format(printf, f, a)))
#define TRY(call)                                                                                  \
    do {                                                                                           \
        Err e_ = (call);                                                                           \
        if (e_ != ERR_OK) return e_;                                                               \
    } while (0)

// Macros, so that compilers and analysers see that the returned error is e.
#define err_set(e, ...) err_same((e), err_note(__VA_ARGS__))  // sets the message, returns e
#define err_add(e, ...)                                                                            \
    err_same((e), err_place(__VA_ARGS__))  // prefixes the message with "place: "

const char *err_why(void);    // this thread's last message
const char *err_text(Err e);  // fixed text for the code
bool        err_note(const char *fmt, ...) PRINTF(1, 2);
bool        err_place(const char *fmt, ...) PRINTF(1, 2);

static inline Err err_same(Err e, bool noted) {
    (void)noted;
    return e;
}

// An assertion that is active in every build; a failure aborts the process.
_Noreturn void check_fail(const char *expr, const char *file, int line);

#define CHECK(expr) ((expr) ? (void)0 : check_fail(#expr, __FILE__, __LINE__))
