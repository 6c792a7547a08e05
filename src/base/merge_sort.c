#include "base/merge_sort.h"

#include "base/work_stop.h"

typedef struct Runs {
    const int64_t *from;
    int64_t       *to;
    MergeOrder    *order;
    const void    *ctx;
} Runs;

// Merges the runs [low, mid) and [mid, high).
static void merge(const Runs *r, int64_t low, int64_t mid, int64_t high) {
    int64_t left = low, right = mid;
    for (int64_t at = low; at < high; at++) {
        if ((at & (WORK_BLOCK - 1)) == 0 && work_stopped()) return;
        bool first =
            left < mid && (right >= high || r->order(r->from[left], r->from[right], r->ctx) <= 0);
        r->to[at] = r->from[first ? left++ : right++];
    }
}

void merge_sort(int64_t *index, int64_t *spare, int64_t n, MergeOrder *order, const void *ctx) {
    Runs r = {index, spare, order, ctx};
    for (int64_t width = 1; width < n && !work_stopped(); width *= 2) {
        for (int64_t low = 0; low < n; low += 2 * width) {
            int64_t mid = low + width < n ? low + width : n;
            merge(&r, low, mid, mid + width < n ? mid + width : n);
        }
        int64_t *done = r.to;
        r.to = done == spare ? index : spare;
        r.from = done;
    }
    if (r.from == spare) work_copy(index, spare, (size_t)n * sizeof *index);
}
