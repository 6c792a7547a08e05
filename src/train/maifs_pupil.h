// MaifsPupil: maifs as a pupil. Its network imitates the rules that it takes the place of, then
// learns what joint actions are worth (train/maifs_q.h).
#pragma once

#include "policy/cluster/maifs/maifs.h"
#include "train/pupil.h"

// servers: of a cluster that it learns on, at most.
MUST_USE Err maifs_pupil_open(const MaifsSettings *settings, uint32_t servers, uint64_t seed,
                              Arena *a, Pupil **out);
