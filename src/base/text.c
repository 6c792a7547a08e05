#include "base/text.h"

#include <stdio.h>
#include <string.h>

#include "base/utf8.h"
#include "base/work_stop.h"

Str text_of(const char *terminated) { return (Str){terminated, strlen(terminated)}; }

bool text_equal(Str a, Str b) {
    return a.len == b.len && (a.len == 0 || memcmp(a.at, b.at, a.len) == 0);
}

// Upper case letters first..last in steps of `step`; the lower case letter is at +apart.
typedef struct CaseRow {
    uint32_t first, last, step, apart;
} CaseRow;

static const CaseRow cases[] = {
    {'A', 'Z', 1, 32},     {0xC0, 0xD6, 1, 32},   {0xD8, 0xDE, 1, 32},   {0x100, 0x12E, 2, 1},
    {0x132, 0x136, 2, 1},  {0x139, 0x147, 2, 1},  {0x14A, 0x176, 2, 1},  {0x179, 0x17D, 2, 1},
    {0x386, 0x386, 1, 38}, {0x388, 0x38A, 1, 37}, {0x38C, 0x38C, 1, 64}, {0x38E, 0x38F, 1, 63},
    {0x391, 0x3A1, 1, 32}, {0x3A3, 0x3AB, 1, 32}, {0x400, 0x40F, 1, 80}, {0x410, 0x42F, 1, 32},
    {0x460, 0x480, 2, 1},  {0x48A, 0x4BE, 2, 1},
};

static uint32_t other_case(uint32_t point, bool upper) {
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const CaseRow *r = &cases[i];
        uint32_t       shift = upper ? r->apart : 0;
        if (point < r->first + shift || point > r->last + shift) continue;
        if ((point - r->first - shift) % r->step != 0) continue;
        return upper ? point - r->apart : point + r->apart;
    }
    return point;
}

static void change(Str s, bool upper, char *out) {
    const char *at = s.at, *end = at + s.len;
    for (uint64_t i = 1; s.len > 0 && at < end; i++) {
        if (i % WORK_BLOCK == 0 && work_stopped()) return;
        const char *from = at;
        uint32_t    point = utf8_next(&at, end);
        size_t      n = (size_t)(at - from);
        char        changed[4];
        bool        fits = point != UTF8_BAD && utf8_put(other_case(point, upper), changed) == n;
        memcpy(out, fits ? changed : from, n);
        out += n;
    }
}

void text_upper(Str s, char *out) { change(s, true, out); }
void text_lower(Str s, char *out) { change(s, false, out); }

static bool is_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

static void put(Str *out, int64_t i, const char *at, size_t len) {
    if (out != NULL) out[i] = (Str){at, len};
}

static int64_t split_space(Str s, int64_t cuts, Str *out) {
    int64_t n = 0;
    size_t  end = s.len;
    while (end > 0 && is_space(s.at[end - 1])) end--;
    for (size_t i = 0; i < end;) {
        while (i < end && is_space(s.at[i])) i++;
        size_t from = i;
        while (i < end && (n == cuts || !is_space(s.at[i]))) i++;
        if (i > from) put(out, n++, s.at + from, i - from);
    }
    return n;
}

int64_t text_split(Str s, Str separator, int64_t cuts, Str *out) {
    if (separator.len == 0) return split_space(s, cuts, out);
    if (s.len == 0) {
        put(out, 0, "", 0);
        return 1;
    }
    int64_t n = 0;
    size_t  from = 0;
    for (size_t i = 0; n != cuts && i + separator.len <= s.len;) {
        if (memcmp(s.at + i, separator.at, separator.len) == 0) {
            put(out, n++, s.at + from, i - from);
            i += separator.len;
            from = i;
        } else {
            i++;
        }
    }
    put(out, n++, s.at + from, s.len - from);
    return n;
}

enum { WORD_MAX = 64 };  // only so much of a word is compared

static uint32_t least(uint32_t a, uint32_t b, uint32_t c) {
    uint32_t ab = a < b ? a : b;
    return ab < c ? ab : c;
}

uint32_t text_distance(const char *a, const char *b) {
    uint32_t rows[3][WORD_MAX + 1];  // rows i - 2, i - 1 and i of the edit table
    size_t   n = strnlen(a, WORD_MAX), m = strnlen(b, WORD_MAX);
    for (size_t k = 0; k <= m; k++) rows[0][k] = (uint32_t)k;
    for (size_t i = 1; i <= n; i++) {
        uint32_t *now = rows[i % 3], *before = rows[(i + 2) % 3], *earlier = rows[(i + 1) % 3];
        now[0] = (uint32_t)i;
        for (size_t k = 1; k <= m; k++) {
            uint32_t change = before[k - 1] + (a[i - 1] != b[k - 1]);
            now[k] = least(before[k] + 1, now[k - 1] + 1, change);
            if (i > 1 && k > 1 && a[i - 1] == b[k - 2] && a[i - 2] == b[k - 1])
                now[k] = least(now[k], earlier[k - 2] + 1, now[k]);
        }
    }
    return rows[n % 3][m];
}

const char *text_nearest(const char *word, const char *const *known, size_t n) {
    size_t      len = strnlen(word, WORD_MAX);
    uint32_t    best = (uint32_t)(len < 3 ? 1 : len / 3 + 1);  // more is a different word
    const char *found = NULL;
    for (size_t i = 0; i < n; i++) {
        uint32_t d = text_distance(word, known[i]);
        if (d > best || (d == best && found != NULL)) continue;
        best = d;
        found = known[i];
    }
    return found;
}

const char *text_meant(const char *word, const char *const *known, size_t n, const char *otherwise,
                       char out[TEXT_MEANT]) {
    const char *meant = text_nearest(word, known, n);
    if (meant == NULL) return otherwise;
    (void)snprintf(out, TEXT_MEANT, "did you mean %.100s?", meant);
    return out;
}
