// Errors: one enum for the whole program, plus one sentence per thread saying what went wrong.
#pragma once

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

Err         err_set(Err e, const char *fmt, ...) PRINTF(2, 3);  // remember the reason, return e
Err         err_add(Err e, const char *fmt, ...) PRINTF(2, 3);  // put "place: " before the reason
const char *err_why(void);                                      // this thread's last reason
const char *err_text(Err e);                                    // fixed text for the code
