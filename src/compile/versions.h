// Versions: which ways of computing each heavy step a program carries, and what is known of them.
#pragma once

#include "compile/bind/bind.h"
#include "compile/program.h"

// Measured ones, now or in the past; otherwise the kernel's own best guess, which is there already.
MUST_USE Err versions_choose(Program *p, Binder *b, const ProgramOptions *o);

// Budget: how much memory packed weights may take beyond the weights themselves.
//
// Winograd's weights are up to four times as large. They go to the layers that gain most by them;
// the others make do with versions that share a smaller packing.

MUST_USE Err versions_fit_pack_budget(Program *p, const Binder *b);
