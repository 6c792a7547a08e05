// Seeded weights on demand. The numbers depend on the fill alone, so a file written twice is equal.
#include "base/check.h"
#include "model/graph.h"

static float sample(const Fill *f, Rng *r) {
    switch (f->kind) {
    case FILL_NORMAL: return f->shift + f->scale * (float)rng_normal(r);
    case FILL_UNIFORM: return f->shift + f->scale * (2 * rng_unit(r) - 1);
    case FILL_CONST: break;
    }
    return f->shift;
}

void fill_make(const Fill *f, const Tensor *type, void *out) {
    CHECK(type->dtype == DT_F32);
    int64_t n = tensor_count(type);
    Rng     r = f->rng;
    float  *at = out;
    for (int64_t i = 0; i < n; i++) at[i] = sample(f, &r);
}
