// What the kinds of records have in a file, beside the time.
#pragma once

#include "sim/record.h"

enum {
    RECORD_HAS_REQUEST = 1,  // and its tenant
    RECORD_HAS_DEADLINE = 2,
    RECORD_HAS_BLOCK = 4,   // first and n_layers
    RECORD_HAS_WANTED = 8,  // and versions
    RECORD_HAS_CORES = 16,
    RECORD_HAS_LEVEL = 32,
    RECORD_HAS_OUTCOME = 64,
};

uint32_t record_fields(RecordKind k);
