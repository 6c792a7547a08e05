#include "kube/quantity.h"

#include <string.h>

// A number is (whole digits).(fraction digits) * 10^ten * 2^two.
typedef struct Parts {
    bool        negative;
    const char *whole, *fraction;
    int         n_whole, n_fraction;
    int         ten, two;
} Parts;

static bool digit(char c) { return c >= '0' && c <= '9'; }

static int digits(const char *s) {
    int n = 0;
    while (digit(s[n])) n++;
    return n;
}

static bool decimal_suffix(const char *s, int *ten) {
    static const struct {
        char text[2];
        int  ten;
    } known[] = {{"", 0},  {"n", -9}, {"u", -6}, {"m", -3}, {"k", 3},
                 {"M", 6}, {"G", 9},  {"T", 12}, {"P", 15}, {"E", 18}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strcmp(s, known[i].text) == 0) {
            *ten = known[i].ten;
            return true;
        }
    return false;
}

static bool binary_suffix(const char *s, int *two) {
    static const char letters[] = "KMGTPE";
    if (s[0] == '\0' || s[1] != 'i' || s[2] != '\0') return false;
    const char *at = strchr(letters, s[0]);
    if (at == NULL) return false;
    *two = 10 * (int)(at - letters + 1);
    return true;
}

// What an exponent beyond this does to a number of at most QUANTITY_TEXT digits is the same.
enum { TEN_MOST = 4 * QUANTITY_TEXT };

static bool exponent_suffix(const char *s, int *ten) {
    if (*s != 'e' && *s != 'E') return false;
    s++;
    bool negative = *s == '-';
    if (*s == '-' || *s == '+') s++;
    if (!digit(*s)) return false;
    int n = 0;
    for (; digit(*s); s++) n = n > TEN_MOST ? n : 10 * n + (*s - '0');
    n = n > TEN_MOST ? TEN_MOST : n;
    *ten = negative ? -n : n;
    return *s == '\0';
}

static bool split(const char *text, Parts *p) {
    const char *s = text;
    *p = (Parts){.negative = *s == '-'};
    if (*s == '-' || *s == '+') s++;
    p->whole = s;
    p->n_whole = digits(s);
    s += p->n_whole;
    if (*s == '.') s++;
    p->fraction = s;
    p->n_fraction = s > text && s[-1] == '.' ? digits(s) : 0;
    s += p->n_fraction;
    if (p->n_whole + p->n_fraction == 0) return false;
    return decimal_suffix(s, &p->ten) || binary_suffix(s, &p->two) || exponent_suffix(s, &p->ten);
}

// The digit `i` places after the first one, 0 beyond the ends.
static int digit_at(const Parts *p, int i) {
    if (i < 0 || i >= p->n_whole + p->n_fraction) return 0;
    return (i < p->n_whole ? p->whole[i] : p->fraction[i - p->n_whole]) - '0';
}

static bool append(int64_t *value, int factor, int more) {
    return !__builtin_mul_overflow(*value, factor, value) &&
           !__builtin_add_overflow(*value, more, value);
}

// Doubles value.fraction, where the fraction has n decimal digits.
static bool twice(int64_t *value, unsigned char *fraction, int n) {
    int carry = 0;
    for (int i = n - 1; i >= 0; i--) {
        int d = 2 * fraction[i] + carry;
        fraction[i] = (unsigned char)(d % 10);
        carry = d / 10;
    }
    return append(value, 2, carry);
}

// The magnitude times 10^scale, rounded up; false if it is too large.
static bool magnitude(const Parts *p, int scale, int64_t *out) {
    unsigned char fraction[QUANTITY_TEXT];
    int           n = p->n_whole + p->n_fraction, point = p->n_whole + p->ten + scale, left = 0;
    int64_t       value = 0;
    bool          more = false;
    for (int i = 0; i < point; i++)
        if ((value != 0 || digit_at(p, i) != 0) && !append(&value, 10, digit_at(p, i)))
            return false;
    // Before point 0 there are only zeros, and nothing to double: binary suffixes have no exponent.
    for (int i = point < 0 ? 0 : point; i < n; i++)
        fraction[left++] = (unsigned char)digit_at(p, i);
    for (int i = 0; i < p->two; i++)
        if (!twice(&value, fraction, left)) return false;
    for (int i = 0; i < left; i++) more = more || fraction[i] != 0;
    return !__builtin_add_overflow(value, more ? 1 : 0, out);
}

static Err read(const char *text, int scale, int64_t *out) {
    Parts   p;
    int64_t value = 0;
    if (strnlen(text, QUANTITY_TEXT) == QUANTITY_TEXT)
        return err_set(ERR_LIMIT, "a quantity has more than %d characters", QUANTITY_TEXT - 1);
    if (!split(text, &p))
        return err_set(ERR_PARSE,
                       "'%.40s' is not a quantity: write a number with a suffix such as m, k, M, "
                       "Mi or e3",
                       text);
    if (!magnitude(&p, scale, &value)) value = INT64_MAX;
    *out = p.negative ? -value : value;
    return ERR_OK;
}

Err quantity_units(const char *text, int64_t *out) { return read(text, 0, out); }
Err quantity_milli(const char *text, int64_t *out) { return read(text, 3, out); }
