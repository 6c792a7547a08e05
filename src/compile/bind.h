// Bind: turns layers into steps: picks the kernel, packs weights, says where the numbers lie.
#pragma once

#include "compile/ir.h"
#include "compile/place.h"
#include "compile/step.h"
#include "kernel/conv_shape.h"

typedef struct Binder {
    const Ir     *ir;
    const Places *places;
    const Isa    *isa;
    CacheSizes    caches;
    Arena        *keep;       // what the program owns
    Operand      *constants;  // [n_values] copies made so far
} Binder;

// Fills kind, spec, versions and macs; values, names and the finish are set already. A layer that
// needs no work leaves kind NULL.
typedef Err BindFn(Binder *b, const IrLayer *l, Step *s);

#define X(id, name, bind) BindFn bind_##bind;
#include "compile/ir_kind.def"
#undef X

MUST_USE Err bind_layer(Binder *b, const IrLayer *l, Step *s);
MUST_USE Err bind_operand(Binder *b, uint32_t value, Operand *out);

// Room in the program; aligned, zeroed. NULL never: ERR_LIMIT instead.
MUST_USE Err bind_room(Binder *b, size_t bytes, void *out);

// Per column: bias and shift together, padded to lanes. NULL in *out when there is none.
struct Columns;
MUST_USE Err bind_bias(Binder *b, const struct Columns *c, const float **out);
// The weights with every column scaled, in scratch memory of the IR; the weights themselves when
// there is no scale. `inner` numbers belong to a column at a time, `period` columns then repeat.
const float *bind_scaled(Binder *b, const struct Columns *c, size_t inner, size_t outer);

char *bind_conv_key(Binder *b, const char *what, const ConvShape *s);  // names the shape

uint32_t step_one_task(const Step *s, const Version *v);  // for kinds that are not parallel
