// Lower: turns a graph's nodes into layers. One function per family; what it leaves is a reference
// layer.
#pragma once

#include "compile/ir.h"
#include "model/attr.h"

// Adds layers that compute all of the node's outputs, or adds nothing and returns false.
typedef bool LowerFn(Ir *ir, const Node *n);

#define X(op, family) LowerFn lower_##family;
#include "compile/lower/lower.def"
#undef X

uint32_t      lower_in(const Ir *ir, const Node *n, uint32_t i);    // IR_NONE where left out
const Tensor *lower_type(const Ir *ir, const Node *n, uint32_t i);  // of an input; or NULL
uint32_t      lower_out(Ir *ir, const Node *n, uint32_t i);         // adds the value; or IR_NONE
bool          lower_is_float(const Ir *ir, const Node *n, uint32_t i);  // input i is float32
bool          lower_single_output(const Node *n);  // nobody asks for more outputs
const float  *lower_scalar(const Ir *ir, const Node *n, uint32_t i);  // a constant float; or NULL

uint32_t lower_reshaped(Ir *ir, const Node *n, uint32_t value, Tensor type);  // another shape of it

// Fuse: passes over layers that leave fewer of them. Each keeps the order runnable.

void fuse_elementwise(
    Ir *ir);              // element-wise layers into one another and into what produces their input
void fuse_norms(Ir *ir);  // norms spelled out in elementary operators
void fuse_attention(Ir *ir);      // attention spelled out; before fuse_elementwise
void fuse_concats(Ir *ir);        // lists that grow share their beginnings
void fuse_channel_scale(Ir *ir);  // what is linear per column into weights and bias
