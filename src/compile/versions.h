// Versions: which ways of computing each heavy step a program carries, and what is known of them.
#pragma once

#include "compile/bind.h"
#include "compile/program.h"

// Measured ones, now or in the past; otherwise the kernel's own best guess, which is there already.
MUST_USE Err versions_choose(Program *p, Binder *b, const ProgramOptions *o);
