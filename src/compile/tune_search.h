// TuneSearch: the search for the versions of one layer, until a deadline.
#pragma once

#include "compile/stopwatch.h"
#include "compile/tune.h"

// Every candidate is tried briefly, best guess first, in at most half of the time; those that are
// fast or small are then measured again and again in turns. known: what an earlier search found,
// or empty. On success *out is in the arena; it has no candidates when time was over at once.
MUST_USE Err tune_search(const TuneLayer *l, const TuneOptions *o, Stopwatch *watch,
                         TimeNs deadline, const Profile *known, Arena *a, Profile *out);
