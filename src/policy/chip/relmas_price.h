// RelmasPrice: what a nanosecond of each kind of unit and a byte of memory traffic are worth, so
// that the work of unlike layers on unlike units is one number.
//
// The prices are those of a perfectly packed package: whoever answers requests of the tenants as
// fast as units and memory allow pays nothing for what is not scarce. They are scaled so that all
// units and the memory together cost 1 a nanosecond: a request's work is then the time for which
// it takes up the whole package.
#pragma once

#include "contract/chip.h"

typedef struct RelmasPrice {
    float kind[CHIP_KINDS];  // a nanosecond on one unit
    float byte;
} RelmasPrice;

RelmasPrice relmas_price_find(const ChipSetup *s);

static inline float relmas_price_work(const RelmasPrice *p, const ChipCost *c, uint32_t kind) {
    return c->ns * (p->kind[kind] + p->byte * c->bytes_ns);
}
