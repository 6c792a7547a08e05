#include "chip/share.h"

#include <stdbool.h>
#include <string.h>

// Four sums side by side, so that one need not wait for the other.
double share_total(const double *x, uint32_t n) {
    double   sum[4] = {0};
    uint32_t i = 0;
    for (; i + 4 <= n; i += 4)
        for (uint32_t j = 0; j < 4; j++) sum[j] += x[i + j];
    for (; i < n; i++) sum[i % 4] += x[i];
    return (sum[0] + sum[1]) + (sum[2] + sum[3]);
}

double share_equal(const double *asks, uint32_t n, double bytes_ns) {
    double sum = share_total(asks, n);
    return sum > bytes_ns ? bytes_ns / sum : 1;
}

void share_max_min(const double *asks, uint32_t n, double bytes_ns, double *out) {
    if (share_total(asks, n) <= bytes_ns) {
        memcpy(out, asks, n * sizeof *out);
        return;
    }
    double   left = bytes_ns, level = bytes_ns;
    uint32_t open = 0;
    for (uint32_t i = 0; i < n; i++) {
        out[i] = asks[i] > 0 ? -1 : 0;  // below 0: not settled
        open += asks[i] > 0;
    }
    for (bool settled = true; settled && open > 0;) {
        settled = false;
        level = left / open;
        for (uint32_t i = 0; i < n; i++) {
            if (out[i] >= 0 || asks[i] > level) continue;
            out[i] = asks[i];
            left -= asks[i];
            open--;
            settled = true;
        }
    }
    for (uint32_t i = 0; i < n; i++)
        if (out[i] < 0) out[i] = level;
}
