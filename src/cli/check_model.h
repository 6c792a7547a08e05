// CheckModel: a model of a configuration, read and judged without being served.
#pragma once

#include "cli/findings.h"
#include "serve/config/config.h"

// Adds what it found. *bytes: what the model needs in memory, about; 0 when that is not known.
void check_model(Findings *f, const Config *c, const ConfigModel *m, uint64_t *bytes);
