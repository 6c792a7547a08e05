// Share: how layers that run at once divide the memory's bandwidth.
#pragma once

#include <stdint.h>

// Of x[n], always summed in the same order.
double share_total(const double *x, uint32_t n);

// All slow down alike: the speed of each, 1 when the memory has enough for all of asks[n].
double share_equal(const double *asks, uint32_t n, double bytes_ns);

// Max-min fair: out[i] is what i gets of bytes_ns, never more than it asks for. Whoever asks for
// less than an equal share leaves the rest to the others.
void share_max_min(const double *asks, uint32_t n, double bytes_ns, double *out);
