// MemoryPlan: the offset of each value in a run's arena; values with disjoint lifetimes share
// memory.
#pragma once

#include "compile/ir.h"

typedef struct PlannedValue {
    uint32_t owner;   // value that owns the buffer; itself if it has its own
    size_t   offset;  // bytes into that buffer
} PlannedValue;

typedef struct MemoryPlan {
    PlannedValue *values;  // [n_values]
    size_t       *offset;  // [n_values] of buffer owners: bytes into the arena
    size_t        bytes;   // size of the arena
} MemoryPlan;

// Views, no-op layout conversions and inputs of concatenations alias another value's buffer.
void memory_plan_make(const Ir *ir, MemoryPlan *out);

// The value that owns the buffer of `value`; *offset is in bytes.
uint32_t memory_plan_root(const MemoryPlan *p, uint32_t value, size_t *offset);
// True if the producer of input i writes straight into the concatenation's output.
bool memory_plan_in_place(const Ir *ir, const MemoryPlan *p, const IrLayer *concat, uint32_t i);
