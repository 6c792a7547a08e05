#include "cli/weight_check.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/table.h"

static Err run_once(const Program *p, const Tensor *inputs, Arena *a, Tensor *outputs) {
    RunMemory mem = {0};
    Err       e = run_memory_init(&mem, p, 1);
    if (e == ERR_OK) e = program_run(p, &mem, NULL, inputs, a, outputs);
    run_memory_finish(&mem);
    return e == ERR_OK ? e : err_add(e, "run to compare outputs");
}

static Err run_as_in_file(WeightCheck *c, const ShapedGraph *s, ProgramOptions o, Arena *a) {
    Program p;
    o.weights = WEIGHTS_FP32;
    o.report = NULL;
    o.tune = NULL;
    o.release_weights = false;
    TRY(program_make(&p, s, &o));
    c->bytes_before = p.weight_bytes;
    Err e = run_once(&p, c->inputs, a, c->outputs);
    program_finish(&p);
    return e;
}

Err weight_check_begin(WeightCheck *c, const Model *m, const ModelArgs *args, const ShapedGraph *s,
                       const ProgramOptions *o, const Tensor *types, Arena *a) {
    const Graph  *g = m->graph;
    const ArgList none = {0};
    c->graph = g;
    c->report.arena = a;
    c->inputs = arena_new(a, Tensor, g->n_inputs);
    c->outputs = arena_new(a, Tensor, g->n_outputs);
    c->changes = arena_new(a, OutputChange, g->n_outputs);
    memcpy(c->inputs, types, g->n_inputs * sizeof *types);
    TRY(run_inputs_read(m, args, &none, a, c->inputs));
    return run_as_in_file(c, s, *o, a);
}

static bool has_numbers(const Tensor *t) {
    return t->rank >= 0 && t->dtype != DT_NONE && t->dtype != DT_STR && t->dtype != DT_SEQ &&
           t->dtype != DT_OPT && t->dtype != DT_C64 && t->dtype != DT_C128;
}

static OutputChange compare(const Tensor *want, const Tensor *got) {
    OutputChange r = {0};
    double       most = 0, both = 0, square = 0, square_got = 0;
    if (!has_numbers(want) || got->dtype != want->dtype || !tensor_same_shape(want, got)) return r;
    for (int64_t i = 0; i < tensor_count(want); i++) {
        double x = tensor_get_f64(want, i), y = tensor_get_f64(got, i);
        if (x == y || (isnan(x) && isnan(y))) y = x;
        if (!isfinite(x) && !isfinite(y)) continue;
        most = fmax(most, fabs(x));
        r.max_abs = fmax(r.max_abs, fabs(x - y));
        both += x * y;
        square += x * x;
        square_got += y * y;
    }
    r.compared = true;
    r.max_rel = most > 0 ? r.max_abs / most : r.max_abs > 0 ? INFINITY : 0;
    r.cosine = square > 0 && square_got > 0 ? both / sqrt(square) / sqrt(square_got)
                                            : (double)(square == square_got);
    return r;
}

Err weight_check_end(WeightCheck *c, const Program *narrowed, Arena *a) {
    Tensor *got = arena_new(a, Tensor, c->graph->n_outputs);
    c->bytes_after = narrowed->weight_bytes;
    TRY(run_once(narrowed, c->inputs, a, got));
    for (uint32_t i = 0; i < c->graph->n_outputs; i++)
        c->changes[i] = compare(&c->outputs[i], &got[i]);
    return ERR_OK;
}

static uint64_t sum_bytes(const WeightCheck *c, bool kept, bool packed) {
    uint64_t sum = 0;
    for (const LayerWeights *l = c->report.first; l != NULL; l = l->next)
        if ((l->kept != NULL) == kept) sum += packed ? l->packed_bytes : l->file_bytes;
    return sum;
}

static Err print_layers(const WeightCheck *c, Arena *a) {
    static const Column cols[] = {
        {.key = "layer", .head = "layer"},
        {.key = "op", .head = "op"},
        {.key = "weights", .head = "weights"},
        {.key = "file_bytes", .head = "in the file", .unit = "KB", .scale = 1024},
        {.key = "packed_bytes", .head = "packed", .unit = "KB", .scale = 1024},
        {.key = "max_error", .head = "largest error", .unit = "%", .scale = 0.01, .decimals = 3},
        {.key = "rms_error", .head = "RMS error", .unit = "%", .scale = 0.01, .decimals = 3},
        {.key = "kept", .head = "why not narrowed"},
    };
    Table t;
    table_init(&t, a, cols, sizeof cols / sizeof *cols);
    for (const LayerWeights *l = c->report.first; l != NULL; l = l->next) {
        table_row(&t);
        table_text(&t, l->name);
        table_text(&t, l->op);
        table_text(&t, l->kept == NULL ? weight_width_name(c->width) : "as in the file");
        table_real(&t, (double)l->file_bytes);
        if (l->kept == NULL) {
            table_real(&t, (double)l->packed_bytes);
            table_real(&t, l->max_error);
            table_real(&t, l->rms_error);
        } else {
            for (int i = 0; i < 3; i++) table_missing(&t);
            table_text(&t, l->kept);
        }
    }
    return table_print(&t, stdout);
}

Err weight_check_print(const WeightCheck *c, Arena *a) {
    TRY(print_layers(c, a));
    printf("%s weights: %u layers narrowed from %.1f to %.1f MB, %u as in the file with %.1f MB; "
           "program %.1f to %.1f MB\n",
           weight_width_name(c->width), c->report.narrowed,
           (double)sum_bytes(c, false, false) / 1e6, (double)sum_bytes(c, false, true) / 1e6,
           c->report.kept, (double)sum_bytes(c, true, false) / 1e6, (double)c->bytes_before / 1e6,
           (double)c->bytes_after / 1e6);
    for (uint32_t i = 0; i < c->graph->n_outputs; i++) {
        const OutputChange *x = &c->changes[i];
        const char         *name = c->graph->values[c->graph->outputs[i]].name;
        if (x->compared)
            printf("output '%s' on random inputs: differs by at most %.3g, %.3g %% of its largest "
                   "element, from that of the file's weights; cosine %.7f\n",
                   name, x->max_abs, 100 * x->max_rel, x->cosine);
        else
            printf("output '%s' on random inputs: not compared\n", name);
    }
    return ERR_OK;
}

static json_t *layer_json(const LayerWeights *l, WeightWidth width) {
    if (l->kept != NULL)
        return json_pack("{s:s,s:s,s:b,s:s,s:I}", "name", l->name, "op", l->op, "narrowed", 0,
                         "reason", l->kept, "file_bytes", (json_int_t)l->file_bytes);
    return json_pack("{s:s,s:s,s:b,s:s,s:I,s:I,s:f,s:f}", "name", l->name, "op", l->op, "narrowed",
                     1, "weights", weight_width_name(width), "file_bytes",
                     (json_int_t)l->file_bytes, "packed_bytes", (json_int_t)l->packed_bytes,
                     "max_error", l->max_error, "rms_error", l->rms_error);
}

json_t *weight_check_json(const WeightCheck *c) {
    json_t *layers = json_array(), *outputs = json_array();
    for (const LayerWeights *l = c->report.first; l != NULL; l = l->next)
        json_array_append_new(layers, layer_json(l, c->width));
    for (uint32_t i = 0; i < c->graph->n_outputs; i++) {
        const OutputChange *x = &c->changes[i];
        json_t *row = json_pack("{s:s}", "name", c->graph->values[c->graph->outputs[i]].name);
        if (x->compared)
            json_object_update_new(row, json_pack("{s:f,s:f,s:f}", "max_abs", x->max_abs, "max_rel",
                                                  isfinite(x->max_rel) ? x->max_rel : -1.0,
                                                  "cosine", x->cosine));
        json_array_append_new(outputs, row);
    }
    return json_pack("{s:s,s:i,s:i,s:I,s:I,s:I,s:I,s:o,s:o}", "weights",
                     weight_width_name(c->width), "narrowed", (int)c->report.narrowed, "kept",
                     (int)c->report.kept, "file_bytes", (json_int_t)sum_bytes(c, false, false),
                     "packed_bytes", (json_int_t)sum_bytes(c, false, true), "program_bytes_before",
                     (json_int_t)c->bytes_before, "program_bytes_after", (json_int_t)c->bytes_after,
                     "layers", layers, "outputs", outputs);
}
