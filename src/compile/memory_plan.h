// PlannedValue: where each value lies in a run's arena. Buffers are shared by values that never
// live at once.
#pragma once

#include "compile/ir.h"

typedef struct PlannedValue {
    uint32_t home;    // value whose buffer it lies in; itself when it has one of its own
    size_t   offset;  // bytes into the home's buffer
} PlannedValue;

typedef struct MemoryPlan {
    PlannedValue *of;     // [n_values]
    size_t       *at;     // [n_values] of homes: bytes into the arena
    size_t        bytes;  // of the arena
} MemoryPlan;

// Views, free changes of layout and parts of concatenations share a buffer with their source.
void memory_plan_make(const Ir *ir, MemoryPlan *out);

// Follows a value to the buffer it lies in; *offset is in bytes.
uint32_t memory_plan_root(const MemoryPlan *p, uint32_t value, size_t *offset);
// True when input i of a concatenation is written straight into its place.
bool memory_plan_in_place(const Ir *ir, const MemoryPlan *p, const IrLayer *concat, uint32_t i);
