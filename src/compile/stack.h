// Stack: cutting a value into slices along an axis and putting slices together again.
#pragma once

#include "compile/frame.h"

typedef struct Stack {
    Slot    *slots;
    uint32_t n, cap;
} Stack;

MUST_USE Err stack_push(Stack *s, Slot one);  // takes ownership, also when it fails
void         stack_finish(Machine *m, Stack *s);

// Joins the slices along a new axis, last slice first when reversed. Their shapes must be equal;
// length may exceed their number (the rest is zero). like gives type and shape when there are none.
MUST_USE Err stack_join(Machine *m, const Stack *s, int32_t axis, bool reverse, int64_t length,
                        const Tensor *like, Slot *out);

MUST_USE Err slot_slice(Machine *m, const Tensor *whole, int32_t axis, int64_t at, Slot *out);
