#include <string.h>

#include "serve/grpc_int.h"

enum { TIMEOUT_DIGITS = 8 };

uint32_t grpc_unframe(const unsigned char *body, size_t len, Str *message, const char **why) {
    *why = "a call begins with a flag and the length of its message";
    if (len < GRPC_PREFIX) return GRPC_INVALID;
    size_t n = (size_t)body[1] << 24 | (size_t)body[2] << 16 | (size_t)body[3] << 8 | body[4];
    *why = "messages are not compressed here: grpc-encoding identity";
    if (body[0] == 1) return GRPC_UNIMPLEMENTED;
    *why = "the flag before a message is 0 or 1";
    if (body[0] > 1) return GRPC_INVALID;
    *why = n > len - GRPC_PREFIX ? "the message is shorter than its length says"
                                 : "this call takes one message";
    if (n != len - GRPC_PREFIX) return GRPC_INVALID;
    *message = (Str){(const char *)body + GRPC_PREFIX, n};
    return GRPC_OK;
}

void grpc_frame(unsigned char prefix[GRPC_PREFIX], size_t len) {
    prefix[0] = 0;
    for (int i = 0; i < 4; i++) prefix[1 + i] = (unsigned char)(len >> (24 - 8 * i));
}

bool grpc_timeout(Str s, TimeNs *out) {
    static const struct {
        char   unit;
        TimeNs ns;
    } units[] = {{'n', 1},          {'u', 1000},        {'m', 1000000},
                 {'S', 1000000000}, {'M', 60000000000}, {'H', 3600000000000}};
    const TimeNs day = 86400000000000;
    TimeNs       v = 0;
    if (s.len < 2 || s.len > TIMEOUT_DIGITS + 1) return false;
    for (size_t i = 0; i + 1 < s.len; i++) {
        if (s.at[i] < '0' || s.at[i] > '9') return false;
        v = v * 10 + (s.at[i] - '0');
    }
    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        if (units[i].unit != s.at[s.len - 1]) continue;
        *out = v == 0 ? 1 : v < day / units[i].ns ? v * units[i].ns : day;
        return true;
    }
    return false;
}

void grpc_quote(const char *text, char *out, size_t room) {
    static const char digits[] = "0123456789ABCDEF";
    size_t            n = 0;
    for (; *text != '\0' && n + 4 <= room; text++) {
        unsigned char c = (unsigned char)*text;
        if (c >= ' ' && c <= '~' && c != '%') {
            out[n++] = *text;
            continue;
        }
        out[n++] = '%';
        out[n++] = digits[c >> 4];
        out[n++] = digits[c & 15];
    }
    out[n] = '\0';
}
