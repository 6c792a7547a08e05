// RelmasPrice: what a nanosecond of each kind of unit and a byte of memory traffic are worth, so
// that the work of unlike layers on unlike units is one number.
//
// The prices are those of a perfectly packed package: whoever answers requests of the tenants as
// fast as units and memory allow pays nothing for what is not scarce. They are scaled so that all
// units and the memory together cost 1 a nanosecond: a request's work is then the time for which
// it takes up the whole package.
#pragma once

#include "base/carve.h"
#include "contract/chip.h"

typedef struct RelmasPrice {
    float kind[CHIP_KINDS];  // a nanosecond on one unit
    float byte;
} RelmasPrice;

RelmasPrice relmas_price_find(const ChipSetup *s);

static inline float relmas_price_work(const RelmasPrice *p, const ChipCost *c, uint32_t kind) {
    return c->ns * (p->kind[kind] + p->byte * c->bytes_ns);
}

// RelmasTable: a package and its tenants as the learned policy reckons with them.

typedef struct RelmasModel {  // a tenant's network
    const ChipModel *costs;
    float           *ns;        // [layer][kind] with all that the memory has; INFINITY: it cannot
    float           *least_ns;  // [layer] on the fastest kind
    float           *rest_ns;   // [n_layers + 1] all layers from l on, each on its fastest kind
    float           *work;      // [layer][kind] at the package's prices
    float           *least;     // [layer] on the cheapest kind
    float           *rest;      // [n_layers + 1] all layers from l on, each on its cheapest kind
    float           *bytes;     // [n_layers + 1] of traffic, likewise
} RelmasModel;

typedef struct RelmasTable {
    RelmasPrice  price;
    float        share[CHIP_KINDS + 1];  // of all that is paid for: kinds, then the memory
    float        usual;                  // work of a request, mean over the tenants
    RelmasModel *models;                 // [tenant]
} RelmasTable;

void relmas_table_carve(RelmasTable *t, const ChipSetup *s, Carve *from);
void relmas_table_fill(RelmasTable *t, const ChipSetup *s);

static inline float relmas_table_work(const RelmasModel *m, uint32_t layer, uint32_t kind) {
    return m->work[(size_t)layer * m->costs->n_kinds + kind];
}

static inline float relmas_table_ns(const RelmasModel *m, uint32_t layer, uint32_t kind) {
    return m->ns[(size_t)layer * m->costs->n_kinds + kind];
}

// The same bits on every machine, true to 1e-5; x is positive and no denormal.
float relmas_log2(float x);

static inline float relmas_clip(float x, float lo, float hi) {
    return x < lo ? lo : x > hi ? hi : x;
}

// Maps all numbers to -1 .. 1.
static inline float relmas_squash(float x) {
    x = relmas_clip(x, -1e6f, 1e6f);
    return x / (1.0f + (x < 0 ? -x : x));
}
