// MergeSort: a stable sort of indexes that ends early if the work was told to stop (work_stop.h).
#pragma once

#include <stdint.h>

// Below 0: a before b; 0: they stay in order.
typedef int MergeOrder(int64_t a, int64_t b, const void *ctx);

// Sorts index[n]; spare has room for n. After an early end, index holds some of its values.
void merge_sort(int64_t *index, int64_t *spare, int64_t n, MergeOrder *order, const void *ctx);
