// Fused: applies the activation of a fused operator to its result.
#pragma once

#include "model/fused.h"

MUST_USE Err run_activation(const Node *n, Tensor *y);
