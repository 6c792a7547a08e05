// Random operators: the same seed gives the same numbers.
#include <string.h>

#include "compile/run.h"
#include "kernel/ref_random.h"

// Without a seed the node's name stands in, so that two nodes differ and every run is the same.
static Rng rng_of(const Node *n) {
    float    seed = attr_float(n, "seed", 0);
    uint32_t bits = 0;
    memcpy(&bits, &seed, sizeof bits);
    Rng r = {bits};
    if (attr_has(n, "seed")) return r;
    for (const char *s = n->name; *s != '\0'; s++) r = rng_fork(r, (uint64_t)(unsigned char)*s);
    return r;
}

static Err uniform(const OpCall *c, Tensor *out) {
    ref_uniform(rng_of(c->node), (double)attr_float(c->node, "low", 0),
                (double)attr_float(c->node, "high", 1), out);
    return ERR_OK;
}

static Err normal(const OpCall *c, Tensor *out) {
    ref_normal(rng_of(c->node), (double)attr_float(c->node, "mean", 0),
               (double)attr_float(c->node, "scale", 1), out);
    return ERR_OK;
}

Err run_random(const OpCall *c, Tensor *out) {
    return c->node->op == OP_RandomUniform ? uniform(c, out) : normal(c, out);
}

Err run_random_like(const OpCall *c, Tensor *out) {
    return c->node->op == OP_RandomUniformLike ? uniform(c, out) : normal(c, out);
}

Err run_bernoulli(const OpCall *c, Tensor *out) {
    ref_bernoulli(rng_of(c->node), c->in[0], out);
    return ERR_OK;
}

Err run_multinomial(const OpCall *c, Tensor *out) {
    ref_multinomial(rng_of(c->node), c->in[0], out);
    return ERR_OK;
}
