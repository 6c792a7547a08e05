#include "base/spell.h"

#include <string.h>

enum { WORD_MAX = 64 };  // of longer words only the front is compared

static uint32_t least(uint32_t a, uint32_t b, uint32_t c) {
    uint32_t ab = a < b ? a : b;
    return ab < c ? ab : c;
}

uint32_t spell_distance(const char *a, const char *b) {
    uint32_t rows[3][WORD_MAX + 1];  // of the edit table: two before, one before, this one
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

const char *spell_nearest(const char *word, const char *const *known, size_t n) {
    size_t      len = strnlen(word, WORD_MAX);
    uint32_t    best = (uint32_t)(len < 3 ? 1 : len / 3 + 1);  // more is a different word
    const char *found = NULL;
    for (size_t i = 0; i < n; i++) {
        uint32_t d = spell_distance(word, known[i]);
        if (d > best || (d == best && found != NULL)) continue;
        best = d;
        found = known[i];
    }
    return found;
}
