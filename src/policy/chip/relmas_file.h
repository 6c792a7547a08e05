// RelmasFile: the network's weights, from a file or from those that are part of the program.
#pragma once

#include "learn/block.h"
#include "policy/chip/relmas.h"

// what: a path, "" for those that came along, or "none" for the rule alone.
MUST_USE Err relmas_file_load(const char *what, Arena *a, RelmasLoaded *out);
// `facts`: more lines "key=value\n" about how the weights came about.
MUST_USE Err relmas_file_save(const char *path, uint32_t hidden, Block w, const char *facts,
                              Arena *scratch);
