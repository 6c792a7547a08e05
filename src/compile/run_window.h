// Window: hands the model's windows to the kernels.
#pragma once

#include "kernel/ref_window.h"
#include "model/window.h"

RefWindow run_window(const Window *w);
