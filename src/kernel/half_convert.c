#include "kernel/half_convert.h"

#include "kernel/blocking.h"

uint32_t half_convert_tasks(const HalfConvert *h) {
    return checked_tasks(ceil_div_size(h->n, HALF_CONVERT_TASK));
}
