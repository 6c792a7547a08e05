// VecChain: chains for other vector files, without the way through Isa.
#pragma once

#include "kernel/chain.h"
#include "kernel/vec.h"

chain_span_fn VEC(chain_span);
