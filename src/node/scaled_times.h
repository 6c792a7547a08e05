// Scaled times: estimated times of a program's steps for new input shapes, from those measured for
// other shapes of the same model.
#pragma once

#include "node/prepared_model.h"

// Sets the profiles of heavy steps and *light_ns [steps][counts] of the others. The programs have
// the same layers; the times of `from` are those of its table.
MUST_USE Err scaled_times(Program *p, const PreparedModel *from, Arena *a, TimeNs **light_ns);
