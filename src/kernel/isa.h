// Isa: table of vector kernels for one instruction set. The same sources (kernel/vec) are compiled
// once per instruction set; isa_choose picks a table at run time.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "kernel/version.h"

// One worker's share of a kernel's tasks. Kernels never create threads: the caller runs the
// kernel once per worker, each with its own Part.
typedef struct Part {
    uint32_t index, count;  // share `index` of `count`
    void    *scratch;       // private to the worker; size from KERNEL_scratch, TENSOR_ALIGN aligned
} Part;

// Tasks [begin, end) of a part: contiguous; the sizes of two parts differ by at most one task.
static inline void part_range(Part p, uint32_t tasks, uint32_t *begin, uint32_t *end) {
    *begin = (uint32_t)((uint64_t)tasks * p.index / p.count);
    *end = (uint32_t)((uint64_t)tasks * (p.index + 1) / p.count);
}

// Argument structs of the kernels in vec.def.
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
struct RotateHeads;
struct CacheAppend;
struct HalfConvert;
struct GatedRnn;
struct Winograd;
struct Int8Conv;
struct Int8Traits;
struct Int8Depthwise;
struct Int8Pool;
struct Quantize;
struct Dequantize;
struct ByteScale;
struct ByteElementwise;

#define X(name, ...) typedef void name##_fn(__VA_ARGS__);
#include "kernel/vec/vec.def"
#undef X

typedef struct Isa {
    const char *name;
    uint32_t    lanes;      // floats per vector, and channels per block of the blocked layout
    uint32_t    registers;  // vector registers available to register tiles
#define X(name, ...) name##_fn *name;
#include "kernel/vec/vec.def"
#undef X
} Isa;

extern const Isa isa_baseline;
#ifdef __x86_64__
extern const Isa isa_avx2, isa_avx512;
extern const Isa isa_avxvnni;  // avx2 with byte kernels of its own
#endif

// The widest instruction set of this CPU, or the one named by COTENANT_ISA. Fails if that name is
// unknown or the CPU lacks the instructions.
MUST_USE Err isa_choose(const Isa **out);

// Identifies this build of the kernels: a hash of their source, the compiler and its flags.
// Profiles measured with another build are ignored.
const char *kernel_build_id(void);
