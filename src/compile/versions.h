// Versions: the kernel versions that each heavy step of a program carries, and their profiles.
#pragma once

#include "compile/bind/bind.h"
#include "compile/program.h"

// Takes versions from a program of other shapes, from tuning now or from the profile store;
// default: the kernel's first choice, already set.
MUST_USE Err versions_choose(Program *p, Binder *b, const ProgramOptions *o);

// Whether the program has the layers of another, and as many versions of each.
bool versions_are_like(const Program *p, const Program *other);

// Limits the memory of packed weights beyond that of the plain weights.
//
// Winograd weights are up to four times as large as plain ones. Layers with the highest gain per
// byte get them; the others use versions that share a smaller packed form.

MUST_USE Err versions_fit_pack_budget(Program *p, const Binder *b);
