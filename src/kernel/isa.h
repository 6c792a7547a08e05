// Part: one worker's share of a layer. Kernels never create threads; whoever runs them does.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "kernel/version.h"

typedef struct Part {
    uint32_t index, count;  // this is share `index` of `count`
    void    *scratch;       // the worker's own; as many bytes as the kernel asked for, TENSOR_ALIGN
} Part;

// The tasks [begin, end) of a part: contiguous, and no part has two more than another.
static inline void part_range(Part p, uint32_t tasks, uint32_t *begin, uint32_t *end) {
    *begin = (uint32_t)((uint64_t)tasks * p.index / p.count);
    *end = (uint32_t)((uint64_t)tasks * (p.index + 1) / p.count);
}

// Isa: the vector kernels, built from the same source for each instruction set, chosen at run time.

// The structs that vec.def names, one a line.
struct Tile;
struct Conv;
struct Deconv;
struct Epilogue;
struct LayoutConvert;
struct Depthwise;
struct Pool;
struct Resample;
struct StridedCopy;
struct ElementwiseProgram;
struct ElementwiseInput;
struct Normalize;
struct NormalizeArgs;
struct Reduce;
struct Gemm;
struct FusedAttention;
struct GatedRnn;
struct Winograd;

#define X(name, ...) typedef void name##_fn(__VA_ARGS__);
#include "kernel/vec/vec.def"
#undef X

typedef struct Isa {
    const char *name;
    uint32_t    lanes;      // floats of a vector, and channels of a block in the blocked layout
    uint32_t    registers;  // vector registers the register tiles may fill
#define X(name, ...) name##_fn *name;
#include "kernel/vec/vec.def"
#undef X
} Isa;

extern const Isa isa_baseline;
#ifdef __x86_64__
extern const Isa isa_avx2, isa_avx512;
#endif

// The best this machine can run, or the one that COTENANT_ISA names. Fails on a name that is
// unknown or that this machine cannot run.
MUST_USE Err isa_choose(const Isa **out);

// Stamp: names this build of the fast kernels. What was measured with another does not count.

const char *kernel_build_id(void);  // changes with their source, the compiler and its flags
