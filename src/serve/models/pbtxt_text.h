// PbtxtText: tokenizes protobuf's text format into a stream of fields, whatever the message.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"

enum { PBTXT_DEPTH = 32 };

typedef enum PbtxtEvent { PBTXT_END, PBTXT_OPEN, PBTXT_CLOSE, PBTXT_VALUE } PbtxtEvent;

typedef enum PbtxtKind { PBTXT_STRING, PBTXT_NUMBER, PBTXT_WORD } PbtxtKind;

typedef struct PbtxtField {
    PbtxtEvent  event;
    const char *name;   // of OPEN and VALUE
    PbtxtKind   kind;   // of VALUE
    const char *value;  // as text, without quotes
    uint32_t    line, column;
} PbtxtField;

typedef struct PbtxtLevel {
    char        close;  // '}' or '>'
    uint32_t    line;   // of its opening bracket
    const char *list;   // repeated field being read; NULL: none
    bool        comma;  // in a list: a comma must follow
} PbtxtLevel;

typedef struct PbtxtText {
    const char *name;  // for errors
    const char *text;
    size_t      len, at;
    uint32_t    line, column;
    Arena      *arena;  // keeps names and values
    PbtxtLevel  levels[PBTXT_DEPTH];
    uint32_t    depth;
} PbtxtText;

void pbtxt_text_init(PbtxtText *t, const char *name, const char *text, size_t len, Arena *a);
MUST_USE Err pbtxt_text_next(PbtxtText *t, PbtxtField *out);  // ERR_CONFIG with line and column
