#include "serve/tensor/float_format.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DIGITS_F32 = 9, DIGITS_F64 = 17 };

enum { DIGITS_ROOM = 48, COPY = 17 };  // COPY: bytes per memcpy, the most digits there may be

// Lays out digits d[0..n), the first of value 10^exponent. d has room for COPY bytes beyond any
// digit.
static int lay_out(char *d, int n, int exponent, char *out) {
    if (exponent >= -5 && exponent < 0) {
        memset(out, '0', 6);
        out[1] = '.';
        memcpy(out + 1 - exponent, d, COPY);
        return 1 - exponent + n;
    }
    if (exponent >= 0 && exponent < 16) {
        const int whole = exponent + 1;
        memset(d + n, '0', COPY);
        if (n <= whole) n = whole + 1;
        memcpy(out, d, COPY);
        out[whole] = '.';
        memcpy(out + whole + 1, d + whole, (size_t)(n - whole));
        return n + 1;
    }
    char *p = out;
    *p++ = d[0];
    if (n > 1) *p++ = '.';
    memcpy(p, d + 1, (size_t)(n - 1));
    p += n - 1;
    *p++ = 'e';
    if (exponent < 0) *p++ = '-';
    const int e = exponent < 0 ? -exponent : exponent;
    if (e >= 100) *p++ = (char)('0' + e / 100);
    if (e >= 10) *p++ = (char)('0' + e / 10 % 10);
    *p++ = (char)('0' + e % 10);
    return (int)(p - out);
}

// Digits and exponent as printf writes them, without the point, which depends on the locale.
static int print(double v, int digits, char *d, int *exponent) {
    char text[48];
    int  n = 0;
    (void)snprintf(text, sizeof text, "%.*e", digits - 1, v);
    const char *p = text;
    for (; *p != 'e' && *p != '\0'; p++)
        if (*p >= '0' && *p <= '9') d[n++] = *p;
    *exponent = *p == 'e' ? (int)strtol(p + 1, NULL, 10) : 0;
    return n;
}

static int strip(const char *d, int n) {
    while (n > 1 && d[n - 1] == '0') n--;
    return n;
}

static bool same_f64(const char *d, int n, int exponent, double v) {
    char text[64];
    (void)snprintf(text, sizeof text, "%.*se%d", n, d, exponent - n + 1);
    return strtod(text, NULL) == v;
}

static bool same_f32(const char *d, int n, int exponent, float v) {
    char text[64];
    (void)snprintf(text, sizeof text, "%.*se%d", n, d, exponent - n + 1);
    return strtof(text, NULL) == v;
}

// Tries 1 to 9 digits until strtof reads the same value back.
static size_t __attribute__((noinline)) slow_f32(float v, char *out) {
    char d[DIGITS_ROOM];
    int  exponent = 0, n = 0;
    for (int digits = 1; digits <= DIGITS_F32; digits++) {
        n = print((double)v, digits, d, &exponent);
        if (same_f32(d, n, exponent, v)) break;
    }
    return (size_t)lay_out(d, strip(d, n), exponent, out);
}

enum { LEAST_POWER = -30, MOST_POWER = 54 };
static const double powers[] = {
    1e-30, 1e-29, 1e-28, 1e-27, 1e-26, 1e-25, 1e-24, 1e-23, 1e-22, 1e-21, 1e-20, 1e-19, 1e-18,
    1e-17, 1e-16, 1e-15, 1e-14, 1e-13, 1e-12, 1e-11, 1e-10, 1e-9,  1e-8,  1e-7,  1e-6,  1e-5,
    1e-4,  1e-3,  1e-2,  1e-1,  1e0,   1e1,   1e2,   1e3,   1e4,   1e5,   1e6,   1e7,   1e8,
    1e9,   1e10,  1e11,  1e12,  1e13,  1e14,  1e15,  1e16,  1e17,  1e18,  1e19,  1e20,  1e21,
    1e22,  1e23,  1e24,  1e25,  1e26,  1e27,  1e28,  1e29,  1e30,  1e31,  1e32,  1e33,  1e34,
    1e35,  1e36,  1e37,  1e38,  1e39,  1e40,  1e41,  1e42,  1e43,  1e44,  1e45,  1e46,  1e47,
    1e48,  1e49,  1e50,  1e51,  1e52,  1e53,  1e54};
_Static_assert(sizeof powers / sizeof *powers == MOST_POWER - LEAST_POWER + 1, "one each");

typedef struct Scaled {  // a float scaled to nine digits before the point
    double v, reach;     // reach: largest distance from v that still reads back as the float
    int    exponent;     // of the first of the nine digits
} Scaled;

static Scaled scale(float f) {
    double   v = (double)f;
    uint64_t bits;
    memcpy(&bits, &v, sizeof bits);
    const int two = (int)(bits >> 52) - 1023, least = two < -126 ? -126 : two;
    int       ten = (two * 78913) >> 18;  // log10(2) times two, rounded down
    // Floats are closer below a power of two; the smaller distance is used on both sides.
    const bool even = two > -126 && (bits & ((UINT64_C(1) << 52) - 1)) == 0;
    uint64_t   half = (uint64_t)(least - 24 - even + 1023) << 52;
    double     reach;
    memcpy(&reach, &half, sizeof reach);
    if (v * powers[8 - ten - LEAST_POWER] >= 1e9) ten++;
    const double p = powers[8 - ten - LEAST_POWER];
    return (Scaled){v * p, reach * p, ten};
}

static void put_four(char *out, uint32_t v) {
    const uint32_t high = v / 100, low = v % 100;
    out[0] = (char)('0' + high / 10);
    out[1] = (char)('0' + high % 10);
    out[2] = (char)('0' + low / 10);
    out[3] = (char)('0' + low % 10);
}

// The nine digits, with as many trailing zeros as still read back. 0: undecided, use slow_f32.
static uint32_t nearest(const Scaled *s) {
    enum { NINE = 9 };
    const double doubt = 1e-5;  // far above the rounding error of v and reach
    uint32_t     best = (uint32_t)(s->v + 0.5), floor = (uint32_t)s->v, unit = 10;
    for (int i = 1; i < NINE; i++, unit *= 10) {
        uint32_t low = floor / unit * unit;
        double   above = s->v - (double)low, below = (double)unit - above;
        bool     up = below < above;
        double   far = up ? below : above;
        if (far > s->reach + doubt) break;
        if (far > s->reach - doubt) return 0;
        best = up ? low + unit : low;
    }
    return best;
}

static size_t fast_f32(float v, char *out) {
    char     d[DIGITS_ROOM];
    Scaled   s = scale(v);
    uint32_t digits = nearest(&s);
    if (digits == 0) return slow_f32(v, out);
    if (digits == 1000000000) {
        digits /= 10;
        s.exponent++;
    }
    d[0] = (char)('0' + digits / 100000000);
    put_four(d + 1, digits / 10000 % 10000);
    put_four(d + 5, digits % 10000);
    return (size_t)lay_out(d, strip(d, DIGITS_F32), s.exponent, out);
}

static char *zero(char *p) {
    *p++ = '0';
    *p++ = '.';
    *p++ = '0';
    return p;
}

size_t float_format_f32(float v, char out[FLOAT_FORMAT_ROOM]) {
    char *p = out;
    if (signbit(v)) *p++ = '-';
    v = fabsf(v);
    if (v == 0) return (size_t)(zero(p) - out);
    return (size_t)(p - out) + fast_f32(v, p);
}

size_t float_format_f64(double v, char out[FLOAT_FORMAT_ROOM]) {
    char *p = out, d[DIGITS_ROOM];
    int   exponent = 0, n = 0;
    if (signbit(v)) *p++ = '-';
    v = fabs(v);
    if (v == 0) return (size_t)(zero(p) - out);
    for (int digits = v < 0x1p-1022 ? 1 : 15; digits <= DIGITS_F64; digits++) {
        n = print(v, digits, d, &exponent);
        if (same_f64(d, n, exponent, v)) break;
    }
    return (size_t)(p - out) + (size_t)lay_out(d, strip(d, n), exponent, p);
}
