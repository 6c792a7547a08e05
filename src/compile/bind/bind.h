// Bind: turns IR layers into steps: chooses the kernel, packs weights, locates operands.
#pragma once

#include "compile/ir.h"
#include "compile/memory_plan.h"
#include "compile/packed_weights.h"
#include "compile/step.h"
#include "compile/weight_width.h"
#include "kernel/conv.h"
#include "kernel/fused_attention.h"
#include "kernel/gemm.h"

typedef struct Binder {
    const Ir         *ir;
    const MemoryPlan *plan;
    const Isa        *isa;
    CacheSizes        caches;
    Arena            *keep;       // of the program
    Operand          *constants;  // [n_values] constants copied so far
    PackedWeights    *packed;     // of the model; NULL: the program has its own
    WeightWidth       width;      // of weights of products
    WeightReport     *report;     // of narrowed and other weights; NULL: none
    bool              filling;    // between bind_packed and bind_packed_made, a new form
} Binder;

// Sets kind, spec, versions and macs; operands, name and epilogue are set already. Leaves kind NULL
// if there is nothing to run. bind_conv.c has conv, depthwise, deconv, pool and resize; bind_gemm.c
// gemm, matmul, attention and rnn; bind_cache.c rotary and cache; bind_copy.c layout, concat, copy,
// gather and reduce; bind_elementwise.c elementwise and normalize; bind_int8.c all over bytes;
// bind_ref.c ref.
typedef Err BindFn(Binder *b, const IrLayer *l, Step *s);

#define X(id, name, bind) BindFn bind_##bind;
#include "compile/ir_kind.def"
#undef X

MUST_USE Err bind_layer(Binder *b, const IrLayer *l, Step *s);
MUST_USE Err bind_operand(Binder *b, uint32_t value, Operand *out);

// Allocates zeroed, aligned memory of the program; ERR_LIMIT if there is none.
MUST_USE Err bind_alloc(Binder *b, size_t bytes, void *out);

// Finds a packed form among those of the model, or adds it; of constants that depend on the shapes,
// the program has its own. *made false: the caller packs into *out. bind_packed_made() must follow.
MUST_USE Err bind_packed(Binder *b, const PackKey *key, size_t bytes, float **out, bool *made);
void         bind_packed_made(Binder *b);
// Key of the weights of output channels, in a form.
struct OutputChannels;
PackKey bind_pack_key(const Binder *b, const char *form, const struct OutputChannels *c);

// Sets the kind, and as spec a copy of the layer's, which has that size.
MUST_USE Err bind_spec(Binder *b, const IrLayer *l, const StepKind *kind, size_t bytes, Step *s);

// bias * scale + shift per output channel, padded to whole vectors; NULL in *out if both are
// absent.
MUST_USE Err bind_bias(Binder *b, const struct OutputChannels *c, const float **out);
// The weights [outer][n][inner] with each output channel scaled, in scratch memory of the IR; the
// weights themselves if there is no scale.
const float *bind_scaled(Binder *b, const struct OutputChannels *c, size_t inner, size_t outer);

// bind_narrow.c: weights of products in fewer bits than the file has.

// Sets the form of the weights in `shape`, or *kept to the reason why they stay as they are.
struct GemmSpec;
MUST_USE Err bind_narrow_choose(Binder *b, const struct GemmSpec *spec, GemmShape *shape,
                                const char **kept);
// Rounds and packs them; errors of the rounding go to the row, if there is one.
MUST_USE Err  bind_narrow_pack(Binder *b, const struct GemmSpec *spec, const GemmShape *shape,
                               LayerWeights *row, const void **out);
LayerWeights *bind_narrow_row(const Binder *b, const Step *s, size_t file_bytes, const char *kept);
void bind_narrow_list(const Binder *b, const IrLayer *l, const Step *s);  // rows of other layers

char *bind_conv_key(Binder *b, const char *what, const ConvShape *s);  // key of the profile store

uint32_t step_one_task(const Step *s, const Version *v);  // for serial kinds

// cycles.c: estimated compute cycles of a version with all operands in registers or L1, from its
// register tiles. For simulated machines, which cannot be measured.

// Of the busiest of `parts` parts.
double cycles_conv(const ConvShape *s, const Isa *isa, const Version *v, uint32_t parts);
double cycles_winograd(const ConvShape *s, const Isa *isa, const Version *v, uint32_t parts);
double cycles_depthwise(const ConvShape *s, const Isa *isa, const Version *v, uint32_t parts);
double cycles_gemm(const GemmShape *s, const Isa *isa, const Version *v, uint32_t parts);
double cycles_attention(const FusedAttentionShape *s, const Isa *isa, const Version *v,
                        uint32_t parts);
