// Package: units of several kinds, the memory they share and the controller that schedules them.
#pragma once

#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"
#include "chip/unit.h"
#include "contract/chip.h"

typedef struct PackageKind {
    const Unit *unit;
    uint32_t    count;
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
