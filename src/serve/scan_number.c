#include <locale.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#ifdef __SSE2__
#include <emmintrin.h>
#endif

#include "serve/scan.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "digits are read as little-endian words");

typedef struct Decimal {  // digits * 10^power
    uint64_t digits;      // the first 19 that count
    int64_t  power;
    bool     minus, cut;  // cut: there were more than 19
} Decimal;

static bool digit(unsigned char c) { return (unsigned char)(c - '0') <= 9; }

// Eight digits, the first one in the lowest byte, without their '0'.
static uint64_t eight(uint64_t v) {
    const uint64_t mask = UINT64_C(0x000000FF000000FF);
    v = v * 10 + (v >> 8);
    return ((v & mask) * UINT64_C(0x000F424000000064) +
            ((v >> 16) & mask) * UINT64_C(0x0000271000000001)) >>
           32;
}

static const uint64_t tens[] = {1, 10, 100, 1000, 10000, 100000, 1000000, 10000000};

// Runs over digits and adds them to *sum, which overflows when they are many.
static inline unsigned char *run(unsigned char *p, const unsigned char *end, uint64_t *sum) {
    const uint64_t ones = UINT64_C(0x0101010101010101);
    while (end - p >= 8) {
        uint64_t v;
        memcpy(&v, p, sizeof v);
        v ^= ones * '0';
        uint64_t other = ((v + ones * 0x76) | v) & ones << 7;
        if (other == 0) {
            *sum = *sum * 100000000 + (uint32_t)eight(v);
            p += 8;
            continue;
        }
        uint32_t n = (uint32_t)__builtin_ctzll(other) / 8;
        if (n == 0) return p;
        *sum = *sum * tens[n] + (uint32_t)eight(v << (64 - 8 * n));
        return p + n;
    }
    for (; digit(*p); p++) *sum = *sum * 10 + (uint64_t)(*p - '0');
    return p;
}

enum { WIDE = 16 };  // bytes that are looked at together

// A bit for each of 16 bytes that is no digit, and one behind them.
static inline uint32_t others(const unsigned char *p) {
    uint32_t mask = 1u << WIDE;
#ifdef __SSE2__
    const __m128i v = _mm_xor_si128(_mm_loadu_si128((const __m128i *)p), _mm_set1_epi8('0'));
    const __m128i is = _mm_cmpeq_epi8(_mm_min_epu8(v, _mm_set1_epi8(9)), v);
    return mask | (~(uint32_t)_mm_movemask_epi8(is) & 0xFFFF);
#else
    for (uint32_t i = 0; i < WIDE; i++) mask |= (uint32_t)!digit(p[i]) << i;
    return mask;
#endif
}

// The first n of 16 digits, the first one in low's lowest byte.
static inline uint64_t joined(uint64_t low, uint64_t high, uint32_t n) {
    const uint64_t nibbles = UINT64_C(0x0F0F0F0F0F0F0F0F);
    low &= nibbles;
    high &= nibbles;
    if (n <= 8) return (uint32_t)eight(low << (64 - 8 * n));
    const uint32_t up = 8 * (WIDE - n);
    return (uint32_t)eight(low << up) * UINT64_C(100000000) +
           (uint32_t)eight(high << up | low >> 1 >> (63 - up));
}

// Most numbers: digits that end within 16 bytes, or up to 7, a point and digits up to the 18th.
// Their end; NULL when it is anything else, wrong or right. Signs are hard to foresee, so that
// they cost no branch.
static inline unsigned char *quick(unsigned char *p, const unsigned char *end, Decimal *d) {
    uint64_t       low, high;
    const uint32_t all = others(p), minus = all & 1, mask = all >> minus, most = WIDE - minus;
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
    d->digits = joined(low, high, last);
    unsigned char *behind = p + last;
    if (last == most) behind = run(behind, end, &d->digits);
    if (behind - p > 19 || (*behind | 0x20) == 'e') return NULL;
    if (d->power != 0) d->power -= behind - p;
    return behind;
}

// The first 19 digits that count, of more.
static void __attribute__((noinline))
recount(const unsigned char *p, const unsigned char *end, int64_t fraction, Decimal *d) {
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
    if (!digit(*p)) return NULL;
    for (; digit(*p); p++)
        if (v < most) v = v * 10 + (*p - '0');
    *power += minus ? -v : v;
    return p;
}

// Any number; NULL when it is none.
static unsigned char *__attribute__((noinline))
thorough(unsigned char *p, const unsigned char *end, Decimal *d) {
    unsigned char *begin = p, *point;
    int64_t        fraction = 0, n;
    if (!digit(*p)) return NULL;
    if (*p == '0')
        p++;
    else
        for (; digit(*p); p++) d->digits = d->digits * 10 + (uint64_t)(*p - '0');
    n = p - begin;
    if (*p == '.') {
        point = ++p;
        p = run(p, end, &d->digits);
        fraction = p - point;
        if (fraction == 0) return NULL;
    } else if (digit(*p)) {
        return NULL;
    }
    d->power = -fraction;
    if (n + fraction > 19) recount(begin, p, fraction, d);
    return (*p | 0x20) == 'e' ? exponent(p + 1, &d->power) : p;
}

// One number; NULL when it is none.
static inline unsigned char *decimal(unsigned char *p, const unsigned char *end, Decimal *out) {
    out->cut = false;
    if (end - p > WIDE) {
        unsigned char *behind = quick(p, end, out);
        if (behind != NULL) return behind;
    }
    Decimal d = {.minus = *p == '-'};  // its address is taken, which keeps *out in registers
    p = thorough(p + d.minus, end, &d);
    *out = d;
    return p;
}

bool scan_number_skip(Scan *s) {
    Decimal        d;
    unsigned char *p = s->at < s->end ? decimal(s->at, s->end, &d) : NULL;
    if (p != NULL) s->at = p;
    return p != NULL;
}

// The C library's own reader, which is exact; by the rules of C, whatever the locale is. The text
// has a terminator meanwhile, and something behind it, as numbers never end a request.
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

enum { LEAST_POWER = -64, MOST_POWER = 38 };  // beyond them a float of 19 digits is 0 or infinite

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

// Without a branch, as signs are hard to foresee.
static inline float signed_f32(float f, bool minus) {
    uint32_t bits;
    memcpy(&bits, &f, sizeof bits);
    return from_bits(bits | (uint32_t)minus << 31);
}

// Below the smallest normal float, as the number of its last place. False: too close to call.
static bool denormal(double v, float *out) {
    double   places = v * 0x1p149;
    uint32_t whole = (uint32_t)places;
    double   part = places - whole;
    if (fabs(part - 0.5) < 1e-6) return false;
    *out = from_bits(whole + (part > 0.5));
    return true;
}

// A product of digits and a power of ten is off by less than 4 units of its last place, so that
// only what comes as close to the middle of two floats is in doubt.
static inline bool doubtful(double v) {
    enum { DOUBT = 8 };
    const uint64_t middle = UINT64_C(1) << 28, below = (UINT64_C(1) << 29) - 1;
    uint64_t       bits;
    memcpy(&bits, &v, sizeof bits);
    return (bits & below) - (middle - DOUBT) <= 2 * DOUBT;
}

// False: it is in doubt.
static bool single(const Decimal *d, float *out) {
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

// Any number; what quick and near leave.
static ScanFault __attribute__((noinline))
slow_f32(unsigned char **at, const unsigned char *end, float *out) {
    Decimal        d;
    float          f;
    unsigned char *p = decimal(*at, end, &d);
    if (p == NULL) return SCAN_KIND;
    if (!single(&d, &f)) f = (float)fabs(library(*at, p, true));
    if (!(f <= 0x1.fffffep127F)) return SCAN_RANGE;
    *at = p;
    *out = signed_f32(f, d.minus);
    return SCAN_OK;
}

static inline ScanFault read_f32(unsigned char **at, const unsigned char *end, float *out) {
    Decimal        d;
    unsigned char *p = end - *at > WIDE ? quick(*at, end, &d) : NULL;
    if (p == NULL) return slow_f32(at, end, out);
    const double v = (double)(int64_t)d.digits * powers[d.power - LEAST_POWER];
    if (v < 0x1p-126 ? d.digits != 0 : doubtful(v)) return slow_f32(at, end, out);
    *at = p;
    *out = signed_f32((float)v, d.minus);
    return SCAN_OK;
}

static inline ScanFault read_f64(unsigned char **at, const unsigned char *end, double *out) {
    enum { EXACT = 22 };  // powers of ten that a double holds
    Decimal        d;
    unsigned char *p = decimal(*at, end, &d);
    if (p == NULL) return SCAN_KIND;
    double v;
    if (d.cut || d.digits >= UINT64_C(1) << 53 || d.power < -EXACT || d.power > EXACT)
        v = fabs(library(*at, p, false));
    else if (d.power < 0)
        v = (double)d.digits / powers[-d.power - LEAST_POWER];
    else
        v = (double)d.digits * powers[d.power - LEAST_POWER];
    if (!(v <= 0x1.fffffffffffffp1023)) return SCAN_RANGE;
    *at = p;
    *out = d.minus ? -v : v;
    return SCAN_OK;
}

static inline ScanFault read_whole(unsigned char **at, int64_t least, uint64_t most, int64_t *out) {
    unsigned char *p = *at;
    bool           minus = *p == '-', over = false;
    uint64_t       v = 0;
    p += minus;
    if (!digit(*p) || (*p == '0' && digit(p[1]))) return SCAN_KIND;
    for (; digit(*p); p++)
        over = __builtin_mul_overflow(v, UINT64_C(10), &v) ||
               __builtin_add_overflow(v, (uint64_t)(*p - '0'), &v) || over;
    if (*p == '.' || (*p | 0x20) == 'e') return SCAN_FRACTION;
    if (over || (minus ? v > (uint64_t)0 - (uint64_t)least : v > most)) return SCAN_RANGE;
    *at = p;
    *out = (int64_t)(minus ? (uint64_t)0 - v : v);
    return SCAN_OK;
}

ScanFault scan_whole(Scan *s, int64_t least, uint64_t most, int64_t *out) {
    return scan_peek(s) == 0 ? SCAN_KIND : read_whole(&s->at, least, most, out);
}

static inline ScanFault read_bool(unsigned char **at, const unsigned char *end, uint8_t *out) {
    unsigned char *p = *at;
    size_t         left = (size_t)(end - p), len = 1;
    if (left > 4 && memcmp(p, "true", 4) == 0)
        len = 4;
    else if (left > 5 && memcmp(p, "false", 5) == 0)
        len = 5;
    else if (*p != '0' && *p != '1')
        return SCAN_KIND;
    else if (digit(p[1]) || p[1] == '.' || (p[1] | 0x20) == 'e')
        return SCAN_KIND;
    *out = *p == 't' || *p == '1';
    *at = p + len;
    return SCAN_OK;
}

static inline ScanFault read_text(unsigned char **at, Scan *s, Str *out) {
    s->at = *at;
    if (**at != '"') return SCAN_KIND;
    if (scan_text(s, out) != ERR_OK) return SCAN_BROKEN;
    *at = s->at;
    return SCAN_OK;
}

static inline unsigned char *white(unsigned char *p) {
    if (*p > ' ') return p;
    while (*p == ' ' || *p == '\n' || *p == '\r' || *p == '\t') p++;
    return p;
}

// Behind an element: to where the next one begins. False: there is no comma.
static inline bool pass(unsigned char **p) {
    *p = white(*p);
    if (**p != ',') return false;
    *p = white(*p + 1);
    return true;
}

// n elements of one type; s->at is before a value or the end of the array.
#define ROW(name, S, T, read)                                                                      \
    static ScanFault name(Scan *s, void *to, int64_t n, int64_t *done) {                           \
        unsigned char *p = white(s->at);                                                           \
        S             *out = to;                                                                   \
        ScanFault      f = SCAN_OK;                                                                \
        int64_t        i = 0;                                                                      \
        while (i < n) {                                                                            \
            T v;                                                                                   \
            f = read;                                                                              \
            if (f != SCAN_OK) break;                                                               \
            out[i++] = STORE(S, v);                                                                \
            if (i < n && !pass(&p)) {                                                              \
                f = *p == ']' ? SCAN_SHORT : SCAN_COMMA;                                           \
                break;                                                                             \
            }                                                                                      \
        }                                                                                          \
        if (f == SCAN_KIND && i == 0 && *p == ']') f = SCAN_SHORT;                                 \
        s->at = p;                                                                                 \
        *done = i;                                                                                 \
        return f;                                                                                  \
    }

#define STORE(S, v)       (S) v
#define X(id, S, T, read) ROW(row_##id, S, T, read)
#include "serve/scan_row.def"
#undef X
#undef STORE
#define STORE(S, v) v
ROW(row_STR, Str, Str, read_text(&p, s, &v))

ScanFault scan_row(Scan *s, DType t, void *out, int64_t n, int64_t *done) {
    *done = 0;
    if (scan_peek(s) == 0) return SCAN_SHORT;
    switch (t) {
#define X(id, S, T, read)                                                                          \
    case DT_##id:                                                                                  \
        return row_##id(s, out, n, done);
#include "serve/scan_row.def"
#undef X
    case DT_STR: return row_STR(s, out, n, done);
    default: return SCAN_KIND;
    }
}
