#include "kernel/chain.h"

static const char *const names[CHAIN_OPS] = {
#define X(id, operands, name) [CHAIN_##id] = name,
#include "kernel/chain_op.def"
#undef X
};

static const uint8_t operands_of[CHAIN_OPS] = {
#define X(id, operands, name) [CHAIN_##id] = operands,
#include "kernel/chain_op.def"
#undef X
};

const char *chain_op_name(ChainOp op) { return op < CHAIN_OPS ? names[op] : "unknown"; }

uint32_t chain_op_operands(ChainOp op) { return op < CHAIN_OPS ? operands_of[op] : 0; }
