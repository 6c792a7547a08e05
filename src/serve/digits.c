#include "serve/digits.h"

// The first 19 digits that count, of more.
static void __attribute__((noinline))
recount(const unsigned char *p, const unsigned char *end, int64_t fraction, Digits *d) {
    int     n = 0;
    int64_t left = 0;  // digits that are dropped
    d->digits = 0;
    for (; p < end; p++) {
        if (*p == '.') continue;
        if (n == 19) {
            left++;
            d->cut = d->cut || *p != '0';
        } else if (n > 0 || *p != '0') {
            d->digits = d->digits * 10 + (uint64_t)(*p - '0');
            n++;
        }
    }
    d->power = left - fraction;
}

// Behind an 'e'; NULL when there are no digits.
static unsigned char *exponent(unsigned char *p, int64_t *power) {
    const int64_t most = INT64_C(1000000000000000);
    int64_t       v = 0;
    bool          minus = *p == '-';
    if (*p == '-' || *p == '+') p++;
    if (!digits_is(*p)) return NULL;
    for (; digits_is(*p); p++)
        if (v < most) v = v * 10 + (*p - '0');
    *power += minus ? -v : v;
    return p;
}

unsigned char *digits_thorough(unsigned char *p, const unsigned char *end, Digits *d) {
    unsigned char *begin = p, *point;
    int64_t        fraction = 0, n;
    if (!digits_is(*p)) return NULL;
    if (*p == '0')
        p++;
    else
        for (; digits_is(*p); p++) d->digits = d->digits * 10 + (uint64_t)(*p - '0');
    n = p - begin;
    if (*p == '.') {
        point = ++p;
        p = digits_run(p, end, &d->digits);
        fraction = p - point;
        if (fraction == 0) return NULL;
    } else if (digits_is(*p)) {
        return NULL;
    }
    d->power = -fraction;
    if (n + fraction > 19) recount(begin, p, fraction, d);
    return (*p | 0x20) == 'e' ? exponent(p + 1, &d->power) : p;
}
