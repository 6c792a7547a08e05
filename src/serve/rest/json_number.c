// Numbers of JSON: decimal digits and a power of ten, read 8 or 16 bytes at a time, then rounded to
// the nearest float, double or integer.
//
// A number never ends the text, so scans over digits stop before its end.
#include <float.h>
#include <locale.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#ifdef __SSE2__
#include <emmintrin.h>
#endif

#include "base/coroutine.h"
#include "serve/rest/json_reader.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "digits are read as little-endian words");

typedef struct JsonNumber {  // digits * 10^power
    uint64_t digits;         // the first 19 significant ones
    int64_t  power;
    bool     minus, cut;  // cut: nonzero digits were dropped
} JsonNumber;

static inline bool json_is_digit(unsigned char c) { return (unsigned char)(c - '0') <= 9; }

// Value of eight digits, the first in the lowest byte, each already minus '0'.
static inline uint64_t json_eight_digits(uint64_t v) {
    const uint64_t mask = UINT64_C(0x000000FF000000FF);
    v = v * 10 + (v >> 8);
    return ((v & mask) * UINT64_C(0x000F424000000064) +
            ((v >> 16) & mask) * UINT64_C(0x0000271000000001)) >>
           32;
}

static const uint64_t json_powers_of_ten[] = {1, 10, 100, 1000, 10000, 100000, 1000000, 10000000};

// Reads digits into *sum, which overflows if there are many; returns the end.
static inline unsigned char *json_digit_run(unsigned char *p, const unsigned char *end,
                                            uint64_t *sum) {
    const uint64_t ones = UINT64_C(0x0101010101010101);
    while (end - p >= 8) {
        uint64_t v;
        memcpy(&v, p, sizeof v);
        v ^= ones * '0';
        uint64_t other = ((v + ones * 0x76) | v) & ones << 7;
        if (other == 0) {
            *sum = *sum * 100000000 + (uint32_t)json_eight_digits(v);
            p += 8;
            continue;
        }
        uint32_t n = (uint32_t)__builtin_ctzll(other) / 8;
        if (n == 0) return p;
        *sum = *sum * json_powers_of_ten[n] + (uint32_t)json_eight_digits(v << (64 - 8 * n));
        return p + n;
    }
    for (; json_is_digit(*p); p++) *sum = *sum * 10 + (uint64_t)(*p - '0');
    return p;
}

enum { JSON_NUMBER_WIDE = 16 };  // bytes examined at once

// A bit for each of 16 bytes that is not a digit, and one above them.
static inline uint32_t json_non_digits(const unsigned char *p) {
    uint32_t mask = 1u << JSON_NUMBER_WIDE;
#ifdef __SSE2__
    const __m128i v = _mm_xor_si128(_mm_loadu_si128((const __m128i *)p), _mm_set1_epi8('0'));
    const __m128i is = _mm_cmpeq_epi8(_mm_min_epu8(v, _mm_set1_epi8(9)), v);
    return mask | (~(uint32_t)_mm_movemask_epi8(is) & 0xFFFF);
#else
    for (uint32_t i = 0; i < JSON_NUMBER_WIDE; i++) mask |= (uint32_t)!json_is_digit(p[i]) << i;
    return mask;
#endif
}

// Value of the first n of 16 digits, the first in the lowest byte of low.
static inline uint64_t json_join_digits(uint64_t low, uint64_t high, uint32_t n) {
    const uint64_t nibbles = UINT64_C(0x0F0F0F0F0F0F0F0F);
    low &= nibbles;
    high &= nibbles;
    if (n <= 8) return (uint32_t)json_eight_digits(low << (64 - 8 * n));
    const uint32_t up = 8 * (JSON_NUMBER_WIDE - n);
    return (uint32_t)json_eight_digits(low << up) * UINT64_C(100000000) +
           (uint32_t)json_eight_digits(high << up | low >> 1 >> (63 - up));
}

// The common forms: an integer within 16 bytes, or up to 7 digits, a point, and up to 18 digits in
// all. Returns the end; NULL: another form, valid or not. The sign costs no branch: it is
// unpredictable.
static inline unsigned char *json_number_fast(unsigned char *p, const unsigned char *end,
                                              JsonNumber *d) {
    uint64_t       low, high;
    const uint32_t all = json_non_digits(p), minus = all & 1, mask = all >> minus,
                   most = JSON_NUMBER_WIDE - minus;
    const uint32_t whole = (uint32_t)__builtin_ctz(mask);
    uint32_t       last = whole;
    if (minus != (*p == '-')) return NULL;
    p += minus;
    if (whole == 0 || whole == most || (whole > 1 && *p == '0')) return NULL;
    memcpy(&low, p, sizeof low);
    memcpy(&high, p + 8, sizeof high);
    d->minus = minus != 0;
    d->power = 0;
    if (p[whole] == '.') {
        last = (uint32_t)__builtin_ctz(mask & (mask - 1));
        if (last == whole + 1 || whole > 7) return NULL;
        const uint64_t front = (UINT64_C(1) << (8 * whole)) - 1;
        low = (low & front) << 8 | (low & ~(front << 8 | 0xFF));
        d->power = (int64_t)whole + 1;
    }
    d->digits = json_join_digits(low, high, last);
    unsigned char *behind = p + last;
    if (last == most) behind = json_digit_run(behind, end, &d->digits);
    if (behind - p > 19 || (*behind | 0x20) == 'e') return NULL;
    if (d->power != 0) d->power -= behind - p;
    return behind;
}

// The first 19 significant digits of more.
__attribute__((noinline)) static void recount(const unsigned char *p, const unsigned char *end,
                                              int64_t fraction, JsonNumber *d) {
    int     n = 0;
    int64_t left = 0;  // digits dropped
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

// Reads an exponent after 'e'; NULL: no digits.
static unsigned char *exponent(unsigned char *p, int64_t *power) {
    const int64_t most = INT64_C(1000000000000000);
    int64_t       v = 0;
    bool          minus = *p == '-';
    if (*p == '-' || *p == '+') p++;
    if (!json_is_digit(*p)) return NULL;
    for (; json_is_digit(*p); p++)
        if (v < most) v = v * 10 + (*p - '0');
    *power += minus ? -v : v;
    return p;
}

__attribute__((noinline)) static unsigned char *
json_number_slow(unsigned char *p, const unsigned char *end, JsonNumber *d) {
    unsigned char *begin = p, *point;
    int64_t        fraction = 0, n;
    if (!json_is_digit(*p)) return NULL;
    if (*p == '0')
        p++;
    else
        for (; json_is_digit(*p); p++) d->digits = d->digits * 10 + (uint64_t)(*p - '0');
    n = p - begin;
    if (*p == '.') {
        point = ++p;
        p = json_digit_run(p, end, &d->digits);
        fraction = p - point;
        if (fraction == 0) return NULL;
    } else if (json_is_digit(*p)) {
        return NULL;
    }
    d->power = -fraction;
    if (n + fraction > 19) recount(begin, p, fraction, d);
    return (*p | 0x20) == 'e' ? exponent(p + 1, &d->power) : p;
}

// Reads a number; returns its end, NULL: not a number.
static inline unsigned char *json_number_read(unsigned char *p, const unsigned char *end,
                                              JsonNumber *out) {
    out->cut = false;
    if (end - p > JSON_NUMBER_WIDE) {
        unsigned char *behind = json_number_fast(p, end, out);
        if (behind != NULL) return behind;
    }
    JsonNumber d = {.minus = *p == '-'};  // a copy, so that *out stays in registers
    p = json_number_slow(p + d.minus, end, &d);
    *out = d;
    return p;
}

bool json_reader_skip_number(JsonReader *s) {
    JsonNumber     d;
    unsigned char *p = s->at < s->end ? json_number_read(s->at, s->end, &d) : NULL;
    if (p != NULL) s->at = p;
    return p != NULL;
}

// The exact result of strtof or strtod in the C locale. The byte after the number is overwritten
// with a terminator meanwhile.
static double library(unsigned char *begin, unsigned char *end, bool single) {
    locale_t      c = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    unsigned char next = *end;
    *end = '\0';
    double v = c == (locale_t)0 ? (double)NAN
               : single         ? (double)strtof_l((char *)begin, NULL, c)
                                : strtod_l((char *)begin, NULL, c);
    *end = next;
    if (c != (locale_t)0) freelocale(c);
    return v;
}

enum { LEAST_POWER = -64, MOST_POWER = 38 };  // outside, a float of 19 digits is 0 or infinite

static const double powers[] = {
    1e-64, 1e-63, 1e-62, 1e-61, 1e-60, 1e-59, 1e-58, 1e-57, 1e-56, 1e-55, 1e-54, 1e-53, 1e-52,
    1e-51, 1e-50, 1e-49, 1e-48, 1e-47, 1e-46, 1e-45, 1e-44, 1e-43, 1e-42, 1e-41, 1e-40, 1e-39,
    1e-38, 1e-37, 1e-36, 1e-35, 1e-34, 1e-33, 1e-32, 1e-31, 1e-30, 1e-29, 1e-28, 1e-27, 1e-26,
    1e-25, 1e-24, 1e-23, 1e-22, 1e-21, 1e-20, 1e-19, 1e-18, 1e-17, 1e-16, 1e-15, 1e-14, 1e-13,
    1e-12, 1e-11, 1e-10, 1e-9,  1e-8,  1e-7,  1e-6,  1e-5,  1e-4,  1e-3,  1e-2,  1e-1,  1e0,
    1e1,   1e2,   1e3,   1e4,   1e5,   1e6,   1e7,   1e8,   1e9,   1e10,  1e11,  1e12,  1e13,
    1e14,  1e15,  1e16,  1e17,  1e18,  1e19,  1e20,  1e21,  1e22,  1e23,  1e24,  1e25,  1e26,
    1e27,  1e28,  1e29,  1e30,  1e31,  1e32,  1e33,  1e34,  1e35,  1e36,  1e37,  1e38};
_Static_assert(sizeof powers / sizeof *powers == MOST_POWER - LEAST_POWER + 1,
               "one for each power");

static float from_bits(uint32_t bits) {
    float f;
    memcpy(&f, &bits, sizeof f);
    return f;
}

// Without a branch, since signs are unpredictable.
static inline float signed_f32(float f, bool minus) {
    uint32_t bits;
    memcpy(&bits, &f, sizeof bits);
    return from_bits(bits | (uint32_t)minus << 31);
}

// Rounds to a denormal float. False: too close to the middle of two.
static bool denormal(double v, float *out) {
    double   places = v * 0x1p149;
    uint32_t whole = (uint32_t)places;
    double   part = places - whole;
    if (fabs(part - 0.5) < 1e-6) return false;
    *out = from_bits(whole + (part > 0.5));
    return true;
}

// digits * 10^power in double is off by less than 4 units of its last place: rounding to float is
// doubtful only that close to the middle of two floats.
static inline bool doubtful(double v) {
    enum { DOUBT = 8 };
    const uint64_t middle = UINT64_C(1) << 28, below = (UINT64_C(1) << 29) - 1;
    uint64_t       bits;
    memcpy(&bits, &v, sizeof bits);
    return (bits & below) - (middle - DOUBT) <= 2 * DOUBT;
}

// False: doubtful.
static bool single(const JsonNumber *d, float *out) {
    if (d->digits == 0 || d->power < LEAST_POWER) {
        *out = 0;
        return true;
    }
    if (d->power > MOST_POWER) {
        *out = HUGE_VALF;
        return true;
    }
    double v = (double)d->digits * powers[d->power - LEAST_POWER];
    if (v < 0x1p-126) return denormal(v, out);
    *out = (float)v;
    return !doubtful(v);
}

// Any number, for those that read_f32 does not handle.
static JsonFault __attribute__((noinline))
slow_f32(unsigned char **at, const unsigned char *end, float *out) {
    JsonNumber     d;
    float          f;
    unsigned char *p = json_number_read(*at, end, &d);
    if (p == NULL) return JSON_FAULT_KIND;
    if (!single(&d, &f)) f = (float)fabs(library(*at, p, true));
    if (!(f <= 0x1.fffffep127F)) return JSON_FAULT_RANGE;
    *at = p;
    *out = signed_f32(f, d.minus);
    return JSON_FAULT_NONE;
}

static inline JsonFault read_f32(unsigned char **at, const unsigned char *end, float *out) {
    JsonNumber     d;
    unsigned char *p = end - *at > JSON_NUMBER_WIDE ? json_number_fast(*at, end, &d) : NULL;
    if (p == NULL) return slow_f32(at, end, out);
    const double v = (double)(int64_t)d.digits * powers[d.power - LEAST_POWER];
    if (v < 0x1p-126 ? d.digits != 0 : doubtful(v)) return slow_f32(at, end, out);
    *at = p;
    *out = signed_f32((float)v, d.minus);
    return JSON_FAULT_NONE;
}

// 19 digits and these powers of ten are exact in 64 bits of mantissa, so one operation is off by
// half a unit of the last place: doubtful only next to the middle of two doubles. False: doubtful,
// or long double is not such a type here.
static bool extended(const JsonNumber *d, double *out) {
#if LDBL_MANT_DIG == 64
    static const long double tens[] = {1e0L,  1e1L,  1e2L,  1e3L,  1e4L,  1e5L,  1e6L,
                                       1e7L,  1e8L,  1e9L,  1e10L, 1e11L, 1e12L, 1e13L,
                                       1e14L, 1e15L, 1e16L, 1e17L, 1e18L, 1e19L, 1e20L,
                                       1e21L, 1e22L, 1e23L, 1e24L, 1e25L, 1e26L, 1e27L};
    enum { MOST = sizeof tens / sizeof *tens - 1, BELOW = 0x7FF, MIDDLE = 0x400 };
    uint64_t bits;
    if (d->cut || d->power < -MOST || d->power > MOST) return false;
    const long double v = d->power < 0 ? (long double)d->digits / tens[-d->power]
                                       : (long double)d->digits * tens[d->power];
    memcpy(&bits, &v, sizeof bits);
    *out = (double)v;
    return (bits & BELOW) - (MIDDLE - 1) > 2;
#else
    (void)d;
    (void)out;
    return false;
#endif
}

static inline JsonFault read_f64(unsigned char **at, const unsigned char *end, double *out) {
    enum { EXACT = 22 };  // powers of ten that are exact in double
    JsonNumber     d;
    unsigned char *p = json_number_read(*at, end, &d);
    if (p == NULL) return JSON_FAULT_KIND;
    double v;
    if (!d.cut && d.digits < UINT64_C(1) << 53 && d.power >= -EXACT && d.power <= EXACT)
        v = d.power < 0 ? (double)d.digits / powers[-d.power - LEAST_POWER]
                        : (double)d.digits * powers[d.power - LEAST_POWER];
    else if (!extended(&d, &v))
        v = fabs(library(*at, p, false));
    if (!(v <= 0x1.fffffffffffffp1023)) return JSON_FAULT_RANGE;
    *at = p;
    *out = d.minus ? -v : v;
    return JSON_FAULT_NONE;
}

static inline JsonFault read_whole(unsigned char **at, int64_t least, uint64_t most, int64_t *out) {
    unsigned char *p = *at;
    bool           minus = *p == '-', over = false;
    uint64_t       v = 0;
    p += minus;
    if (!json_is_digit(*p) || (*p == '0' && json_is_digit(p[1]))) return JSON_FAULT_KIND;
    for (; json_is_digit(*p); p++)
        over = __builtin_mul_overflow(v, UINT64_C(10), &v) ||
               __builtin_add_overflow(v, (uint64_t)(*p - '0'), &v) || over;
    if (*p == '.' || (*p | 0x20) == 'e') return JSON_FAULT_FRACTION;
    if (over || (minus ? v > (uint64_t)0 - (uint64_t)least : v > most)) return JSON_FAULT_RANGE;
    *at = p;
    *out = (int64_t)(minus ? (uint64_t)0 - v : v);
    return JSON_FAULT_NONE;
}

JsonFault json_reader_integer(JsonReader *s, int64_t least, uint64_t most, int64_t *out) {
    return json_reader_peek(s) == 0 ? JSON_FAULT_KIND : read_whole(&s->at, least, most, out);
}

static inline JsonFault read_bool(unsigned char **at, const unsigned char *end, uint8_t *out) {
    unsigned char *p = *at;
    const size_t   left = (size_t)(end - p);
    size_t         len = 1;
    if (left > 4 && memcmp(p, "true", 4) == 0)
        len = 4;
    else if (left > 5 && memcmp(p, "false", 5) == 0)
        len = 5;
    else if ((*p != '0' && *p != '1') || json_is_digit(p[1]) || p[1] == '.' || (p[1] | 0x20) == 'e')
        return JSON_FAULT_KIND;
    *out = *p == 't' || *p == '1';
    *at = p + len;
    return JSON_FAULT_NONE;
}

static inline JsonFault read_text(unsigned char **at, JsonReader *s, Str *out) {
    s->at = *at;
    if (**at != '"') return JSON_FAULT_KIND;
    if (json_reader_string(s, out) != ERR_OK) return JSON_FAULT_BROKEN;
    *at = s->at;
    return JSON_FAULT_NONE;
}

static inline unsigned char *white(unsigned char *p) {
    if (*p > ' ') return p;
    for (; *p == ' ' || *p == '\n' || *p == '\r' || *p == '\t'; p++) coroutine_point(1);
    return p;
}

// Moves from the end of an element to the next one. False: no comma.
static inline bool pass(unsigned char **p) {
    *p = white(*p);
    if (**p != ',') return false;
    *p = white(*p + 1);
    return true;
}

enum { NUMBER_NS = 10 };  // estimated time of an element

// Reads n elements of one type; s->at is before a value or the end of the array.
#define ROW(name, S, T, read)                                                                      \
    static JsonFault name(JsonReader *s, void *to, int64_t n, int64_t *done) {                     \
        unsigned char *p = white(s->at);                                                           \
        S             *out = to;                                                                   \
        JsonFault      f = JSON_FAULT_NONE;                                                        \
        int64_t        i = 0;                                                                      \
        while (i < n) {                                                                            \
            T v;                                                                                   \
            f = read;                                                                              \
            if (f != JSON_FAULT_NONE) break;                                                       \
            out[i++] = STORE(S, v);                                                                \
            coroutine_point(NUMBER_NS);                                                            \
            if (i < n && !pass(&p)) {                                                              \
                f = *p == ']' ? JSON_FAULT_SHORT : JSON_FAULT_COMMA;                               \
                break;                                                                             \
            }                                                                                      \
        }                                                                                          \
        if (f == JSON_FAULT_KIND && i == 0 && *p == ']') f = JSON_FAULT_SHORT;                     \
        s->at = p;                                                                                 \
        *done = i;                                                                                 \
        return f;                                                                                  \
    }

#define STORE(S, v)       (S) v
#define X(id, S, T, read) ROW(row_##id, S, T, read)
#include "serve/rest/json_row.def"
#undef X
#undef STORE
#define STORE(S, v) v
ROW(row_STR, Str, Str, read_text(&p, s, &v))

JsonFault json_reader_row(JsonReader *s, DType t, void *out, int64_t n, int64_t *done) {
    *done = 0;
    if (json_reader_peek(s) == 0) return JSON_FAULT_SHORT;
    switch (t) {
#define X(id, S, T, read)                                                                          \
    case DT_##id:                                                                                  \
        return row_##id(s, out, n, done);
#include "serve/rest/json_row.def"
#undef X
    case DT_STR: return row_STR(s, out, n, done);
    default: return JSON_FAULT_KIND;
    }
}
