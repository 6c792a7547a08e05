// Card: what a server says of itself and of its models, the same in every protocol.
#pragma once

#include "serve/fleet.h"

enum { CARD_ROWS = 6, CARD_VALUE = 64 };

typedef struct CardRow {
    const char *key;
    char        value[CARD_VALUE];
} CardRow;

extern const char *const card_extensions[];  // NULL-terminated
extern const char *const card_platform;      // of metadata
extern const char *const card_config_platform, *const card_backend;

const char *card_state(FleetState s);  // the protocol's word
// Largest batch that Triton's configuration tells; 0: the first dimension is no batch, and shapes
// are told whole.
int32_t card_batch(const Served *s);
// The word of Triton's configuration for a type: "TYPE_FP32", and its number.
const char *card_type(DType t, uint32_t *number);
void        card_qos(const Served *s, CardRow rows[CARD_ROWS]);
