// One run of a network: inputs in, outputs as a table, files or JSON.
#include <ctype.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/cpu.h"
#include "base/file.h"
#include "base/npy.h"
#include "base/table.h"
#include "cli/commands.h"
#include "cli/run_inputs.h"
#include "cli/repeat.h"

typedef struct Options {
    ModelArgs   load;
    ArgList     inputs;
    const char *output;
    int64_t     max_mb;
    Repeat      repeat;
    bool        json;
} Options;

typedef struct Result {
    const Graph *graph;
    Tensor      *outputs;
    json_t      *files;  // a list per output once they are written
} Result;

static char *file_name(Arena *a, const char *dir, const char *name, uint32_t turn) {
    char *path = turn == 0 ? arena_printf(a, "%s/%s.npy", dir, name)
                           : arena_printf(a, "%s/%s_%u.npy", dir, name, turn);
    for (char *c = path + strlen(dir) + 1; *c != '\0'; c++)
        if (!isalnum((unsigned char)*c) && strchr("_.-", *c) == NULL) *c = '_';
    return path;
}

static bool taken(const Result *r, const char *path) {
    for (size_t i = 0; i < json_array_size(r->files); i++) {
        size_t  k;
        json_t *file;
        json_array_foreach(json_array_get(r->files, i), k, file) {
            if (strcmp(json_string_value(file), path) == 0) return true;
        }
    }
    return false;
}

// A tensor is one file; a sequence is one file per element, name.0, name.1 and so on.
static Err write_value(Result *r, const Tensor *t, const char *dir, const char *name, Arena *a) {
    if (t->dtype == DT_SEQ || t->dtype == DT_OPT) {
        for (int64_t i = 0; i < tensor_count(t); i++)
            TRY(write_value(r, &((const Tensor *)t->data)[i], dir,
                            arena_printf(a, "%s.%" PRId64, name, i), a));
        return ERR_OK;
    }
    char *path = file_name(a, dir, name, 0);
    for (uint32_t turn = 2; taken(r, path); turn++) path = file_name(a, dir, name, turn);
    json_t *of_output = json_array_get(r->files, json_array_size(r->files) - 1);
    json_array_append_new(of_output, json_string(path));
    return npy_write(path, t);
}

static Err write_outputs(Result *r, const char *dir, Arena *a) {
    TRY(file_make_dirs(dir));
    for (uint32_t i = 0; i < r->graph->n_outputs; i++) {
        json_array_append_new(r->files, json_array());
        TRY(write_value(r, &r->outputs[i], dir, r->graph->values[r->graph->outputs[i]].name, a));
    }
    return ERR_OK;
}

static int print_json(const Result *r, const Repeat *repeat, const char *model) {
    json_t *list = json_array();
    for (uint32_t i = 0; i < r->graph->n_outputs; i++) {
        const Tensor *t = &r->outputs[i];
        json_t       *row =
            json_pack("{s:s,s:s,s:o}", "name", r->graph->values[r->graph->outputs[i]].name, "type",
                      dtype_name(t->dtype), "shape", command_shape(t));
        json_t *files = json_array_get(r->files, i);
        if (json_array_size(files) == 1) json_object_set(row, "file", json_array_get(files, 0));
        if (files != NULL) json_object_set(row, "files", files);
        json_array_append_new(list, row);
    }
    return command_json(json_pack("{s:s,s:o,s:o*}", "model", model, "outputs", list, "latency",
                                  repeat_json(repeat)));
}

static void add_numbers(Table *table, const Tensor *t) {
    int64_t n = t->dtype == DT_F32 ? tensor_count(t) : 0;
    if (n == 0) return;
    const float *x = t->data;
    double       least = x[0], most = x[0], sum = 0;
    for (int64_t i = 0; i < n; i++) {
        least = fmin(least, x[i]);
        most = fmax(most, x[i]);
        sum += x[i];
    }
    table_real(table, least);
    table_real(table, sum / (double)n);
    table_real(table, most);
}

static Err print_table(const Result *r, Arena *a) {
    static const Column cols[] = {
        {.key = "output", .head = "output"},
        {.key = "type", .head = "type"},
        {.key = "shape", .head = "shape"},
        {.key = "min", .head = "min", .decimals = 4},
        {.key = "mean", .head = "mean", .decimals = 4},
        {.key = "max", .head = "max", .decimals = 4},
    };
    Table table;
    table_init(&table, a, cols, 6);
    for (uint32_t i = 0; i < r->graph->n_outputs; i++) {
        char shape[128];
        tensor_shape_text(&r->outputs[i], shape, sizeof shape);
        table_row(&table);
        table_text(&table, r->graph->values[r->graph->outputs[i]].name);
        table_text(&table, dtype_name(r->outputs[i].dtype));
        table_text(&table, shape);
        add_numbers(&table, &r->outputs[i]);
    }
    return table_print(&table, stdout);
}

// A failure somewhere inside may come from inputs that do not go together: then both are told.
static Err explain(const Graph *g, const Tensor *in, Err e, Arena *a) {
    const char *why = arena_str(a, err_why());
    if (shaped_graph_check_symbols(g, in) == ERR_OK) return err_set(e, "%s", why);
    return err_add(e, "%s", why);
}

static Err compute(Options *o, const Model *m, Arena *a, Result *r) {
    const Graph *g = m->graph;
    r->graph = g;
    r->outputs = arena_new(a, Tensor, g->n_outputs);
    Tensor            *in = arena_new(a, Tensor, g->n_inputs);
    const ShapedGraph *s = NULL;
    ShapeCache         shape_cache;
    ProgramOptions     options = {
            .limits = {.max_bytes = (size_t)o->max_mb << 20, .max_iterations = 10000000}};
    TRY(model_args_input_types(m, &o->load, 1, in));
    TRY(run_inputs_read(m, &o->load, &o->inputs, a, in));
    TRY(shaped_graph_check_inputs(g, in));
    shape_cache_init(&shape_cache, m, interp_eval);
    Err e = shape_cache_get(&shape_cache, in, &s);
    if (e == ERR_OK) e = repeat_run(&o->repeat, s, in, &options, a, r->outputs);
    shape_cache_finish(&shape_cache);
    return e == ERR_OK ? e : explain(g, in, e, a);
}

static int64_t default_mb(void) { return (int64_t)(cpu_mem_budget(&cgroup_roots) / 4 * 3 >> 20); }

int cmd_run(const Command *c, int argc, char **argv) {
    Options      o = {.load = MODEL_ARGS_DEFAULT, .max_mb = default_mb(), .repeat = {.threads = 1}};
    const ArgRow rows[] = {
        {"input", ARG_LIST, &o.inputs, "NAME=FILE", "an input from .npy or .pb, or 'random'", 0, 0},
        {"output", ARG_TEXT, &o.output, "DIR", "write every output as DIR/<name>.npy", 0, 0},
        {"dim", ARG_LIST, &o.load.dims, "NAME=N", "size of an open dimension (default 1)", 0, 0},
        {"max-mb", ARG_INT, &o.max_mb, "N",
         "memory for intermediate values (default: 3/4 of what we may use)", 1, INT64_C(1) << 24},
        {"repeat", ARG_INT, &o.repeat.times, "N", "run N more times and print latency percentiles",
         1, 1 << 30},
        {"threads", ARG_INT, &o.repeat.threads, "K", "compute on K cores (default 1)", 1, TEAM_MAX},
        {"reference", ARG_FLAG, &o.repeat.reference, NULL,
         "on the slow, obvious kernels instead of the compiled program", 0, 0},
        {"json", ARG_FLAG, &o.json, NULL, "one JSON document on stdout", 0, 0},
        MODEL_ARG_ROWS(o.load),
    };
    const char *what = NULL;
    int         code = args_parse(c, rows, 11, argc, argv, &what, 1, 1, NULL);
    if (code >= 0) return code;
    Model  m = {0};
    Arena  a = {0};
    Result r = {.files = json_array()};
    o.load.numbers = true;
    Err e = arena_init(&a, cpu_mem_budget(&cgroup_roots));
    if (e == ERR_OK) e = model_args_load(what, &o.load, &m);
    if (e == ERR_OK) e = compute(&o, &m, &a, &r);
    if (e == ERR_OK && o.output != NULL) e = write_outputs(&r, o.output, &a);
    if (e == ERR_OK && !o.json) e = print_table(&r, &a);
    if (e == ERR_OK && !o.json) repeat_print(&o.repeat);
    code = e != ERR_OK ? command_failed(e) : o.json ? print_json(&r, &o.repeat, m.name) : 0;
    json_decref(r.files);
    model_finish(&m);
    arena_finish(&a);
    return code;
}
