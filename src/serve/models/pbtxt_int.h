// PbtxtReader: a config.pbtxt being read, field by field.
#pragma once

#include "serve/models/pbtxt.h"
#include "serve/models/pbtxt_text.h"

enum { PBTXT_WARNINGS = 16, PBTXT_SETS = 64, PBTXT_TENSORS = 256, PBTXT_VERSIONS = 256 };

typedef enum PbtxtTakes {
    TAKES_MESSAGE,
    TAKES_STRING,
    TAKES_NUMBER,
    TAKES_BOOL,
    TAKES_WORD
} PbtxtTakes;

typedef enum PbtxtId {
#define X(id, path, takes) FIELD_##id,
#include "serve/models/pbtxt.def"
#undef X
} PbtxtId;

typedef struct PbtxtReader {
    PbtxtText text;
    Pbtxt    *out;
    bool      strict;
    char      path[256];           // of the field, with dots
    size_t    marks[PBTXT_DEPTH];  // where each message's part of it ends
    uint32_t  depth, skip;         // skip: messages open of what is not understood

    const char *key, *value;  // of the parameter that is open
    uint32_t    key_line;
    PbtxtSet    own[PBTXT_SETS];  // of qos.* parameters: stronger than what other fields mean
    uint32_t    n_own;
    int64_t     samples, warmup;  // of model_warmup
    int64_t     timeout_us;       // of the queue
    uint32_t    warmup_line, timeout_line, action_line;
    bool        delay;  // its timeout_action
} PbtxtReader;

// What each known field means. number: of those that take one.
MUST_USE Err pbtxt_open(PbtxtReader *r, uint32_t id, const PbtxtField *f);
MUST_USE Err pbtxt_value(PbtxtReader *r, uint32_t id, const PbtxtField *f, int64_t number);
MUST_USE Err pbtxt_close(PbtxtReader *r, uint32_t id, const PbtxtField *f);
MUST_USE Err pbtxt_end(PbtxtReader *r);

// A warning. pbtxt_doubt: the error when everything is to be understood.
MUST_USE Err pbtxt_warn(PbtxtReader *r, uint32_t line, const char *what);
MUST_USE Err pbtxt_doubt(PbtxtReader *r, uint32_t line, const char *what);
