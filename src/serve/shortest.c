#include "serve/shortest.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DIGITS_F32 = 9, DIGITS_F64 = 17 };

// Digits d[0..n), the first one of value 10^exponent.
static size_t lay_out(const char *d, int n, int exponent, char *out) {
    char *p = out;
    if (exponent >= -5 && exponent < 0) {
        memcpy(p, "0.0000", 6);
        p += 1 - exponent;
        memcpy(p, d, (size_t)n);
        return (size_t)(p + n - out);
    }
    if (exponent >= 0 && exponent < 16) {
        int whole = exponent + 1;
        for (int i = 0; i < whole; i++) *p++ = i < n ? d[i] : '0';
        *p++ = '.';
        if (n <= whole) *p++ = '0';
        for (int i = whole; i < n; i++) *p++ = d[i];
        return (size_t)(p - out);
    }
    *p++ = d[0];
    if (n > 1) *p++ = '.';
    for (int i = 1; i < n; i++) *p++ = d[i];
    *p++ = 'e';
    if (exponent < 0) *p++ = '-';
    int e = exponent < 0 ? -exponent : exponent;
    if (e >= 100) *p++ = (char)('0' + e / 100);
    if (e >= 10) *p++ = (char)('0' + e / 10 % 10);
    *p++ = (char)('0' + e % 10);
    return (size_t)(p - out);
}

// What printf writes with so many digits, without the point, which depends on the locale.
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

static size_t slow_f32(float v, char *out) {
    char d[48];
    int  exponent = 0, n = 0;
    for (int digits = 1; digits <= DIGITS_F32; digits++) {
        n = print((double)v, digits, d, &exponent);
        if (same_f32(d, n, exponent, v)) break;
    }
    return lay_out(d, strip(d, n), exponent, out);
}

size_t shortest_f32(float v, char out[SHORTEST_ROOM]) {
    char *p = out;
    if (signbit(v)) *p++ = '-';
    v = fabsf(v);
    if (v == 0) {
        memcpy(p, "0.0", 3);
        return (size_t)(p + 3 - out);
    }
    return (size_t)(p - out) + slow_f32(v, p);
}

size_t shortest_f64(double v, char out[SHORTEST_ROOM]) {
    char *p = out, d[48];
    int   exponent = 0, n = 0;
    if (signbit(v)) *p++ = '-';
    v = fabs(v);
    if (v == 0) {
        memcpy(p, "0.0", 3);
        return (size_t)(p + 3 - out);
    }
    for (int digits = 15; digits <= DIGITS_F64; digits++) {
        n = print(v, digits, d, &exponent);
        if (same_f64(d, n, exponent, v)) break;
    }
    return (size_t)(p - out) + lay_out(d, strip(d, n), exponent, p);
}
