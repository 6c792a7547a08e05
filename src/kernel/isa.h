// Isa: the vector kernels, built from the same source for each instruction set, chosen at run time.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "kernel/part.h"
#include "kernel/version.h"

// The structs that vec.def names, one a line.
struct Tile;
struct Conv;
struct Deconv;
struct Finish;
struct Relay;
struct Depth;
struct Pool;
struct Resample;
struct Shuffle;
struct Chain;
struct ChainInput;
struct Rowwise;
struct RowwiseData;
struct FoldAxis;
struct Gemm;
struct Attend;
struct Recur;
struct Wino;

#define X(name, ...) typedef void name##_fn(__VA_ARGS__);
#include "kernel/vec.def"
#undef X

typedef struct Isa {
    const char *name;
    uint32_t    lanes;      // floats of a vector, and channels of a block in the blocked layout
    uint32_t    registers;  // vector registers the register tiles may fill
#define X(name, ...) name##_fn *name;
#include "kernel/vec.def"
#undef X
} Isa;

extern const Isa isa_baseline;
#ifdef __x86_64__
extern const Isa isa_avx2, isa_avx512;
#endif

// The best this machine can run, or the one that COTENANT_ISA names. Fails on a name that is
// unknown or that this machine cannot run.
MUST_USE Err isa_choose(const Isa **out);
