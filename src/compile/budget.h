// Budget: how much memory packed weights may take beyond the weights themselves.
//
// Winograd's weights are up to four times as large. They go to the layers that gain most by them;
// the others make do with versions that share a smaller packing.
#pragma once

#include "compile/bind.h"
#include "compile/program.h"

MUST_USE Err budget_packs(Program *p, const Binder *b);
