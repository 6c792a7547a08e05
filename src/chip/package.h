// Package: units of several kinds, the memory they share and the controller that schedules them.
#pragma once

#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"
#include "chip/unit.h"

typedef struct PackageKind {
    const Unit *unit;
    uint32_t    count;
} PackageKind;

typedef struct Package {
    const char *name, *about;
    PackageKind kinds[8];
    uint32_t    n_kinds, n_units;
    double      clock_mhz;
    double      bytes_cycle;  // of the shared memory
    double      period_us;    // T_s
    double      idle_mw;
    // the controller, see ChipController
    double macs_cycle, ops_cycle, mac_pj, op_pj, byte_pj, dispatch_cycles;
} Package;

// A shipped one by name, or a YAML file by its path. Kinds name shipped units or files beside it.
MUST_USE Err package_load(const char *what, Arena *a, Package *out);
MUST_USE Err package_parse(const char *name, const char *text, size_t len, Arena *a, Package *out);
const char  *package_name(uint32_t i);  // of the shipped ones; NULL after the last
