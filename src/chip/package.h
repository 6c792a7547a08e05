// UnitSpec: one accelerator: its array, its buffers, how fast they are and what an access costs.
#pragma once

#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/settings.h"
#include "contract/chip.h"

typedef enum Dataflow { ROW_STATIONARY, WEIGHT_STATIONARY, OUTPUT_STATIONARY } Dataflow;

// One table a dataflow would hide what they share: buffers of a kind that a unit lacks are 0.
#define UNIT_SPEC_ROWS(X)                                                                          \
    X(name, string, "unit", 1, 63, "what tables call it")                                          \
    X(about, string, "an accelerator", 1, 500, "what it is")                                       \
    X(flow, string, "weight_stationary", 1, 31,                                                    \
      "what stays: row_stationary, weight_stationary or output_stationary")                        \
    X(clock_mhz, double, 1000, 1, 1e5, "clock")                                                    \
    X(rows, int, 4, 1, 1024, "rows of processing elements")                                        \
    X(cols, int, 4, 1, 1024, "columns of them")                                                    \
    X(vectors, int, 1, 1, 256, "output channels that an element computes at once")                 \
    X(lanes, int, 1, 1, 256, "input channels that it multiplies and sums at once")                 \
    X(word_bits, int, 8, 1, 64, "an input, a weight, an output")                                   \
    X(sum_bits, int, 24, 1, 128, "a partial sum")                                                  \
    X(depthwise, bool, true, 0, 0, "whether it can compute depthwise convolutions")                \
    X(input_bytes, int, 8192, 1, 1 << 30, "of inputs in an element")                               \
    X(weight_bytes, int, 32768, 1, 1 << 30, "of weights in an element")                            \
    X(sum_bytes, int, 3072, 1, 1 << 30, "of partial sums in an element")                           \
    X(buffer_bytes, int, 65536, 1, 1 << 30, "of the buffer that all elements share")               \
    X(bank_bytes, int, 1, 1, 1 << 30, "of it that hold inputs, or else sums")                      \
    X(buffer_port, double, 64, 0.001, 1e6, "bytes a cycle that it gives and takes")                \
    X(buffer_weights, bool, false, 0, 0, "whether weights pass through it")                        \
    X(port, double, 16, 0.001, 1e6, "bytes a cycle from and to memory")                            \
    X(overlap, double, 1, 0, 1, "of the memory's time that computing hides")                       \
    X(efficiency, double, 1, 0.01, 1, "of the array's cycles that are not lost to control")        \
    X(buffer_efficiency, double, 1, 0.01, 1, "of the shared buffer's cycles, likewise")            \
    X(lean, bool, false, 0, 0, "mapped for the least traffic, as the Eyeriss chip was")            \
    X(energy, string, "own", 1, 15, "own: the values below; relative: 1, 1, 2, 6, 200 x mac_pj")   \
    X(mac_pj, double, 0.3, 0, 1e6, "a multiply-accumulate")                                        \
    X(input_pj, double, 0.2, 0, 1e6, "an element's input, read or written")                        \
    X(weight_pj, double, 0.2, 0, 1e6, "an element's weight")                                       \
    X(sum_pj, double, 0.2, 0, 1e6, "an element's partial sum")                                     \
    X(hop_pj, double, 0, 0, 1e6, "a word from the shared buffer to the elements")                  \
    X(buffer_pj, double, 2, 0, 1e6, "a byte of the shared buffer")                                 \
    X(memory_pj, double, 64, 0, 1e6, "a byte of memory")

typedef struct UnitSpec {
#define X(...) SETTING_FIELD(__VA_ARGS__)
    UNIT_SPEC_ROWS(X)
#undef X
    Dataflow dataflow;
} UnitSpec;

// A shipped one by name, or a YAML file by its path.
MUST_USE Err unit_spec_load(const char *what, Arena *a, UnitSpec *out);
MUST_USE Err unit_spec_parse(const char *name, const char *text, size_t len, Arena *a,
                             UnitSpec *out);
const char  *unit_spec_name(uint32_t i);  // of the shipped ones; NULL after the last

static inline double unit_spec_macs(const UnitSpec *u) {  // a cycle
    return (double)u->rows * u->cols * u->vectors * u->lanes;
}

// Package: units of several kinds, the memory they share and the controller that schedules them.

typedef struct PackageKind {
    const UnitSpec *unit;
    uint32_t        count;
} PackageKind;

#define PACKAGE_ROWS(X)                                                                            \
    X(name, string, "package", 1, 63, "what tables call it")                                       \
    X(about, string, "a package", 1, 500, "what it is")                                            \
    X(units, string, "1 simba", 1, 500, "how many of which: 4 simba, 4 eyeriss")                   \
    X(clock_mhz, double, 1000, 1, 1e5, "clock of memory and controller")                           \
    X(bytes_cycle, double, 16, 0.001, 1e6, "bytes a cycle of the shared memory")                   \
    X(period_us, double, 500, 1, 1e6, "T_s: how often a policy may think")                         \
    X(idle_mw, double, 100, 0, 1e6, "drawn whether anything runs or not")                          \
    X(macs_cycle, double, 16, 0.001, 1e6, "multiply-accumulates of the controller")                \
    X(ops_cycle, double, 1, 0.001, 1e6, "other operations of the controller")                      \
    X(mac_pj, double, 5, 0, 1e6, "a multiply-accumulate of the controller")                        \
    X(op_pj, double, 20, 0, 1e6, "another operation")                                              \
    X(byte_pj, double, 64, 0, 1e6, "a byte of weights read for it")                                \
    X(dispatch_cycles, double, 200, 0, 1e9, "from a decision to a layer's start")

typedef struct Package {
#define X(...) SETTING_FIELD(__VA_ARGS__)
    PACKAGE_ROWS(X)
#undef X
    PackageKind kinds[CHIP_KINDS];
    uint32_t    n_kinds, n_units;
} Package;

// A shipped one by name, or a YAML file by its path. Kinds name shipped units or files beside it.
MUST_USE Err package_load(const char *what, Arena *a, Package *out);
MUST_USE Err package_parse(const char *name, const char *text, size_t len, Arena *a, Package *out);
const char  *package_name(uint32_t i);  // of the shipped ones; NULL after the last
