// Fuse: passes over layers that leave fewer of them. Each keeps the order runnable.
#pragma once

#include "compile/ir.h"

void fuse_chains(
    Ir *ir);              // element-wise layers into one another and into what produces their input
void fuse_norms(Ir *ir);  // norms spelled out in elementary operators
void fuse_attends(Ir *ir);  // attention spelled out; before fuse_chains
void fuse_concats(Ir *ir);  // lists that grow share their beginnings
void fuse_columns(Ir *ir);  // what is linear per column into weights and bias
