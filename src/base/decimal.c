#include "base/decimal.h"

#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static bool digit(char c) { return c >= '0' && c <= '9'; }

// "1.5e3": rare, so the slow path will do.
static DecimalError read_exponent(const char *text, int64_t unit, int64_t most, int64_t *out) {
    char *end = NULL;
    if (text[strspn(text, "0123456789.eE+-")] != '\0') return DECIMAL_NOT_A_NUMBER;
    double v = strtod(text, &end) * (double)unit;
    if (*end != '\0' || end == text) return DECIMAL_NOT_A_NUMBER;
    if (!(v < (double)most)) return DECIMAL_LARGE;
    *out = (int64_t)llround(v);
    return DECIMAL_OK;
}

static DecimalError read_unsigned(const char *text, int64_t unit, int64_t most, int64_t *out) {
    const char *p = text;
    int64_t     whole = 0, part = 0, scale = 1;
    bool        large = false;
    for (; digit(*p); p++)
        large = large || __builtin_mul_overflow(whole, 10, &whole) ||
                __builtin_add_overflow(whole, *p - '0', &whole);
    size_t digits = (size_t)(p - text);
    if (*p == '.')
        for (p++; digit(*p); p++, digits++)
            if (scale < 1000000000) {
                part = part * 10 + (*p - '0');
                scale *= 10;
            }
    if (digits == 0) return DECIMAL_NOT_A_NUMBER;
    if (*p == 'e' || *p == 'E') return read_exponent(text, unit, most, out);
    if (*p != '\0') return DECIMAL_NOT_A_NUMBER;
    if (large || whole > most / unit) return DECIMAL_LARGE;
    int64_t v = whole * unit + (int64_t)llround((double)part / (double)scale * (double)unit);
    if (v > most) return DECIMAL_LARGE;
    *out = v;
    return DECIMAL_OK;
}

DecimalError decimal_read(const char *text, int64_t unit, int64_t most, int64_t *out) {
    int64_t      v = 0;
    bool         minus = *text == '-';
    DecimalError f = read_unsigned(text + (minus || *text == '+'), unit, most, &v);
    if (minus && (f == DECIMAL_LARGE || (f == DECIMAL_OK && v > 0))) return DECIMAL_NEGATIVE;
    if (f == DECIMAL_OK) *out = v;
    return f;
}

void decimal_put(FILE *f, int64_t value, int64_t unit) {
    int64_t left = value % unit;
    char    digits[24];
    size_t  n = 0;
    (void)fprintf(f, "%" PRId64, value / unit);
    if (left < 0) left = -left;
    for (; left != 0 && n < 10; left %= unit) {
        left *= 10;
        digits[n++] = (char)('0' + left / unit);
    }
    digits[n] = '\0';
    if (n > 0) (void)fprintf(f, ".%s", digits);
}

const char *decimal_error_text(DecimalError f) {
    static const char *const texts[] = {"is fine", "is not a number", "is negative",
                                        "is too large"};
    return texts[f];
}
