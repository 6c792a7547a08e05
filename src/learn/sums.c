#include "learn/sums.h"

#include "base/check.h"

void sums_init(Sums *s, Arena *a, uint32_t n) {
    CHECK(n > 0 && n <= (uint32_t)1 << 30);
    s->leaves = 1;
    while (s->leaves < n) s->leaves *= 2;
    s->node = arena_new(a, double, 2 * (size_t)s->leaves);
}

// Sums are made anew on the way up, so that no error builds up.
void sums_set(Sums *s, uint32_t i, double value) {
    size_t at = (size_t)s->leaves + i;
    CHECK(i < s->leaves && value >= 0);
    s->node[at] = value;
    while (at > 1) {
        at /= 2;
        s->node[at] = s->node[2 * at] + s->node[2 * at + 1];
    }
}

uint32_t sums_find(const Sums *s, double at) {
    size_t i = 1;
    CHECK(s->node[1] > 0);
    while (i < s->leaves) {
        double left = s->node[2 * i];
        bool   right = at >= left && s->node[2 * i + 1] > 0;
        i = 2 * i + (right ? 1 : 0);
        if (right) at -= left;
    }
    return (uint32_t)(i - s->leaves);
}
