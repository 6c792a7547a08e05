// RelmasPrice: prices of a nanosecond on each kind of unit and of a byte of memory traffic, which
// make the work of any layer on any unit one number.
// RelmasTable: the costs of all tenants' networks at these prices.
//
// The prices are the dual prices of the best packing: resources that are not scarce cost nothing.
// They are scaled so that all units and the memory together cost 1 a nanosecond: the work of a
// request is then the time for which it occupies the whole package.
#pragma once

#include "base/carve.h"
#include "contract/chip.h"

typedef struct RelmasPrice {
    float kind[CHIP_KINDS];  // per nanosecond on one unit
    float byte;
} RelmasPrice;

RelmasPrice relmas_price_find(const ChipSetup *s);

static inline float relmas_price_work(const RelmasPrice *p, const ChipCost *c, uint32_t kind) {
    return c->ns * (p->kind[kind] + p->byte * c->bytes_ns);
}

typedef struct RelmasModel {  // a tenant's network
    const ChipModel *costs;
    float           *ns;        // [layer][kind] alone, limited by the memory; INFINITY: impossible
    float           *least_ns;  // [layer] on the fastest kind
    float           *rest_ns;   // [n_layers + 1] all layers from l on, each on its fastest kind
    float           *work;      // [layer][kind] at the prices
    float           *least;     // [layer] on the cheapest kind
    float           *rest;      // [n_layers + 1] all layers from l on, each on its cheapest kind
    float           *bytes;     // [n_layers + 1] memory traffic, likewise
} RelmasModel;

typedef struct RelmasTable {
    RelmasPrice  price;
    float        share[CHIP_KINDS + 1];  // of the total price: kinds, then the memory
    float        usual;                  // mean work of a request over the tenants
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

// Logarithm with the same bits on every machine, error below 1e-5; x is positive and normal.
float relmas_log2(float x);

static inline float relmas_clip(float x, float lo, float hi) {
    return x < lo ? lo : x > hi ? hi : x;
}

// Maps any number to -1 .. 1.
static inline float relmas_squash(float x) {
    x = relmas_clip(x, -1e6f, 1e6f);
    return x / (1.0f + (x < 0 ? -x : x));
}
