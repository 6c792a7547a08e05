// UnitSpec: one accelerator: its array, its buffers, their speeds and the energy of an access.
// Package: units of several kinds, the memory they share and the controller that schedules them.
#pragma once

#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/settings.h"
#include "contract/chip.h"

typedef enum Dataflow { ROW_STATIONARY, WEIGHT_STATIONARY, OUTPUT_STATIONARY } Dataflow;

// One table for all dataflows; fields that a dataflow does not use have a neutral value.
#define UNIT_SPEC_ROWS(X)                                                                          \
    X(name, string, "unit", 1, 63, "name in tables")                                               \
    X(about, string, "an accelerator", 1, 500, "what it is")                                       \
    X(flow, string, "weight_stationary", 1, 31,                                                    \
      "dataflow: row_stationary, weight_stationary or output_stationary")                          \
    X(clock_mhz, double, 1000, 1, 1e5, "clock")                                                    \
    X(rows, int, 4, 1, 1024, "rows of processing elements")                                        \
    X(cols, int, 4, 1, 1024, "columns of processing elements")                                     \
    X(vectors, int, 1, 1, 256, "output channels that an element computes at once")                 \
    X(lanes, int, 1, 1, 256, "input channels that an element multiplies and sums at once")         \
    X(word_bits, int, 8, 1, 64, "bits of an input, a weight, an output")                           \
    X(sum_bits, int, 24, 1, 128, "bits of a partial sum")                                          \
    X(depthwise, bool, true, 0, 0, "whether it can compute depthwise convolutions")                \
    X(spread, bool, false, 0, 0, "whether elements left idle by a depthwise layer share its rows") \
    X(input_bytes, int, 8192, 1, 1 << 30, "bytes of inputs in an element")                         \
    X(weight_bytes, int, 32768, 1, 1 << 30, "bytes of weights in an element")                      \
    X(sum_bytes, int, 3072, 1, 1 << 30, "bytes of partial sums in an element")                     \
    X(buffer_bytes, int, 65536, 1, 1 << 30, "bytes of the buffer shared by all elements")          \
    X(bank_bytes, int, 1, 1, 1 << 30, "bytes of a bank of it, which holds either inputs or sums")  \
    X(buffer_port, double, 64, 0.001, 1e6, "bytes per cycle of the shared buffer")                 \
    X(buffer_weights, bool, false, 0, 0, "whether weights pass through the shared buffer")         \
    X(port, double, 16, 0.001, 1e6, "bytes per cycle from and to memory")                          \
    X(overlap, double, 1, 0, 1, "share of the memory time that computation hides")                 \
    X(efficiency, double, 1, 0.01, 1, "share of the array's cycles not lost to control")           \
    X(buffer_efficiency, double, 1, 0.01, 1, "share of the shared buffer's cycles, likewise")      \
    X(lean, bool, false, 0, 0, "map for least memory traffic, as on the Eyeriss chip")             \
    X(energy, string, "own", 1, 15, "own: the values below; relative: 1, 1, 2, 6, 200 x mac_pj")   \
    X(mac_pj, double, 0.3, 0, 1e6, "of a multiply-accumulate")                                     \
    X(input_pj, double, 0.2, 0, 1e6, "of an access to an element's input buffer")                  \
    X(weight_pj, double, 0.2, 0, 1e6, "of an access to an element's weight buffer")                \
    X(sum_pj, double, 0.2, 0, 1e6, "of an access to an element's sum buffer")                      \
    X(hop_pj, double, 0, 0, 1e6, "of a word from the shared buffer to the elements")               \
    X(buffer_pj, double, 2, 0, 1e6, "of a byte of the shared buffer")                              \
    X(memory_pj, double, 64, 0, 1e6, "of a byte of memory")

typedef struct UnitSpec {
    UNIT_SPEC_ROWS(SETTING_FIELD)
    Dataflow dataflow;
} UnitSpec;

// what: the name of an embedded unit, or the path of a YAML file.
MUST_USE Err unit_spec_load(const char *what, Arena *a, UnitSpec *out);
MUST_USE Err unit_spec_parse(const char *name, const char *text, size_t len, Arena *a,
                             UnitSpec *out);
const char  *unit_spec_name(uint32_t i);  // of the embedded units; NULL after the last

static inline double unit_spec_macs(const UnitSpec *u) {  // per cycle
    return (double)u->rows * u->cols * u->vectors * u->lanes;
}

typedef struct PackageKind {
    const UnitSpec *unit;
    uint32_t        count;
} PackageKind;

#define PACKAGE_ROWS(X)                                                                            \
    X(name, string, "package", 1, 63, "name in tables")                                            \
    X(about, string, "a package", 1, 500, "what it is")                                            \
    X(units, string, "1 simba", 1, 500, "units and their numbers, as in 4 simba, 4 eyeriss")       \
    X(clock_mhz, double, 1000, 1, 1e5, "clock of memory and controller")                           \
    X(bytes_cycle, double, 16, 0.001, 1e6, "bytes per cycle of the shared memory")                 \
    X(period_us, double, 500, 1, 1e6, "T_s: period of planning")                                   \
    X(idle_mw, double, 100, 0, 1e6, "static power")                                                \
    X(macs_cycle, double, 16, 0.001, 1e6, "multiply-accumulates per cycle of the controller")      \
    X(ops_cycle, double, 1, 0.001, 1e6, "other operations per cycle of the controller")            \
    X(mac_pj, double, 5, 0, 1e6, "of a multiply-accumulate of the controller")                     \
    X(op_pj, double, 20, 0, 1e6, "of another operation")                                           \
    X(byte_pj, double, 64, 0, 1e6, "of a byte of weights read by it")                              \
    X(dispatch_cycles, double, 200, 0, 1e9, "from a decision to the start of a layer")             \
    X(throttle_floor, double, 0, 0, 1, "share of its demand that a throttled layer keeps")

typedef struct Package {
    PACKAGE_ROWS(SETTING_FIELD)
    PackageKind kinds[CHIP_KINDS];
    uint32_t    n_kinds, n_units;
} Package;

// what: as for units. Kinds name embedded units, or files relative to the package's.
MUST_USE Err package_load(const char *what, Arena *a, Package *out);
MUST_USE Err package_parse(const char *name, const char *text, size_t len, Arena *a, Package *out);
const char  *package_name(uint32_t i);  // of the embedded packages; NULL after the last
