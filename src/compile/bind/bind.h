// Bind: turns layers into steps: picks the kernel, packs weights, says where the numbers lie.
#pragma once

#include "compile/ir.h"
#include "compile/memory_plan.h"
#include "compile/step.h"
#include "kernel/conv.h"
#include "kernel/fused_attention.h"
#include "kernel/gemm.h"

typedef struct Binder {
    const Ir         *ir;
    const MemoryPlan *plan;
    const Isa        *isa;
    CacheSizes        caches;
    Arena            *keep;       // what the program owns
    Operand          *constants;  // [n_values] copies made so far
} Binder;

// Fills kind, spec, versions and macs; values, names and the epilogue are set already. A layer that
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
struct OutputChannels;
MUST_USE Err bind_bias(Binder *b, const struct OutputChannels *c, const float **out);
// The weights with every column scaled, in scratch memory of the IR; the weights themselves when
// there is no scale. `inner` numbers belong to a column at a time, `period` columns then repeat.
const float *bind_scaled(Binder *b, const struct OutputChannels *c, size_t inner, size_t outer);

char *bind_conv_key(Binder *b, const char *what, const ConvShape *s);  // names the shape

uint32_t step_one_task(const Step *s, const Version *v);  // for kinds that are not parallel

// Cycles: how long the arithmetic of a version takes when every number is at hand, from the tiles
// it is made of. For machines that are not here to be measured.

// All of the part that has most to do, of so many.
double cycles_conv(const ConvShape *s, const Isa *isa, const Version *v, uint32_t parts);
double cycles_winograd(const ConvShape *s, const Isa *isa, const Version *v, uint32_t parts);
double cycles_depthwise(const ConvShape *s, const Isa *isa, const Version *v, uint32_t parts);
double cycles_gemm(const GemmShape *s, const Isa *isa, const Version *v, uint32_t parts);
double cycles_attention(const FusedAttentionShape *s, const Isa *isa, const Version *v,
                        uint32_t parts);
