// Repeat: runs a network again and again and says how long that took.
#pragma once

#include <jansson.h>

#include "compile/program.h"

typedef struct Repeat {
    int64_t times, threads;  // times 0: once, without a word about time
    bool    reference;       // on the interpreter
    double *ms;              // [times] sorted, once it ran
} Repeat;

// The outputs of the last run live in a.
MUST_USE Err repeat_run(Repeat *r, const ShapedGraph *s, const Tensor *inputs,
                        const ProgramOptions *o, Arena *a, Tensor *outputs);
void         repeat_print(const Repeat *r);  // percentiles to stdout; nothing when times is 0
json_t      *repeat_json(const Repeat *r);   // NULL when times is 0
