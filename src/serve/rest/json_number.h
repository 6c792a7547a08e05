// JsonNumber: a number of JSON as decimal digits and a power of ten, read many bytes at a time.
//
// The text goes on behind the number, so that runs of digits end before it does.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#ifdef __SSE2__
#include <emmintrin.h>
#endif

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "digits are read as little-endian words");

typedef struct JsonNumber {  // digits * 10^power
    uint64_t digits;         // the first 19 that count
    int64_t  power;
    bool     minus, cut;  // cut: there were more than 19
} JsonNumber;

static inline bool json_is_digit(unsigned char c) { return (unsigned char)(c - '0') <= 9; }

// Eight digits, the first one in the lowest byte, without their '0'.
static inline uint64_t json_eight_digits(uint64_t v) {
    const uint64_t mask = UINT64_C(0x000000FF000000FF);
    v = v * 10 + (v >> 8);
    return ((v & mask) * UINT64_C(0x000F424000000064) +
            ((v >> 16) & mask) * UINT64_C(0x0000271000000001)) >>
           32;
}

static const uint64_t json_powers_of_ten[] = {1, 10, 100, 1000, 10000, 100000, 1000000, 10000000};

// Runs over digits and adds them to *sum, which overflows when they are many.
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

enum { JSON_NUMBER_WIDE = 16 };  // bytes that are looked at together

// A bit for each of 16 bytes that is no digit, and one behind them.
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

// The first n of 16 digits, the first one in low's lowest byte.
static inline uint64_t json_join_digits(uint64_t low, uint64_t high, uint32_t n) {
    const uint64_t nibbles = UINT64_C(0x0F0F0F0F0F0F0F0F);
    low &= nibbles;
    high &= nibbles;
    if (n <= 8) return (uint32_t)json_eight_digits(low << (64 - 8 * n));
    const uint32_t up = 8 * (JSON_NUMBER_WIDE - n);
    return (uint32_t)json_eight_digits(low << up) * UINT64_C(100000000) +
           (uint32_t)json_eight_digits(high << up | low >> 1 >> (63 - up));
}

// Most numbers: digits that end within 16 bytes, or up to 7, a point and digits up to the 18th.
// Their end; NULL when it is anything else, wrong or right. Signs are hard to foresee, so that
// they cost no branch.
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

// Any number; NULL when it is none. p is behind its sign.
unsigned char *json_number_slow(unsigned char *p, const unsigned char *end, JsonNumber *d);

// One number; NULL when it is none.
static inline unsigned char *json_number_read(unsigned char *p, const unsigned char *end,
                                              JsonNumber *out) {
    out->cut = false;
    if (end - p > JSON_NUMBER_WIDE) {
        unsigned char *behind = json_number_fast(p, end, out);
        if (behind != NULL) return behind;
    }
    JsonNumber d = {.minus = *p == '-'};  // its address is taken, which keeps *out in registers
    p = json_number_slow(p + d.minus, end, &d);
    *out = d;
    return p;
}
