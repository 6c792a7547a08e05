// Resize: hands the model's resizing to the kernels.
#pragma once

#include "kernel/ref_resize.h"
#include "model/op.h"

MUST_USE Err run_resize_params(const OpCall *c, int32_t rank, RefResize *p);
