// WeightCheck: what narrowed weights change: bytes, errors of each layer's weights, and the outputs
// of a run against those of a run with the file's weights.
#pragma once

#include <jansson.h>

#include "cli/model_args.h"
#include "compile/program.h"

typedef struct OutputChange {
    double max_abs;   // largest difference
    double max_rel;   // that by the largest output
    double cosine;    // of the angle between both outputs; 1: the same direction
    bool   compared;  // false: no numbers, or of different shapes
} OutputChange;

typedef struct WeightCheck {
    WeightWidth   width;
    WeightReport  report;  // of the narrowed program
    const Graph  *graph;
    uint64_t      bytes_before, bytes_after;  // weights and other constants of the programs
    Tensor       *inputs, *outputs;           // outputs: of the run with the file's weights
    OutputChange *changes;                    // [graph outputs]
} WeightCheck;

// Compiles and runs the graph with the file's weights, on random inputs of these types and the
// seed of the arguments.
MUST_USE Err weight_check_begin(WeightCheck *c, const Model *m, const ModelArgs *args,
                                const ShapedGraph *s, const ProgramOptions *o, const Tensor *types,
                                Arena *a);
// Runs the narrowed program on the same inputs. Its options had &c->report.
MUST_USE Err weight_check_end(WeightCheck *c, const Program *narrowed, Arena *a);

MUST_USE Err weight_check_print(const WeightCheck *c, Arena *a);
json_t      *weight_check_json(const WeightCheck *c);
