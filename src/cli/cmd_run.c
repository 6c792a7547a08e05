// cotenant run: compiles a network, runs it once or many times, writes its outputs.
#include <ctype.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/cpu.h"
#include "base/file.h"
#include "base/npy.h"
#include "base/stats.h"
#include "base/table.h"
#include "base/term.h"
#include "cli/commands.h"
#include "compile/program.h"
#include "cli/model_args.h"

typedef struct Repeat {
    int64_t times, threads;  // times 0: a single run, not timed
    bool    reference;       // on the reference interpreter
    double *ms;              // [times] sorted, after repeat_run
} Repeat;

typedef struct Runner {
    const ShapedGraph    *shaped;
    const ProgramOptions *options;
    const Tensor         *inputs;
    Program               program;
    RunMemory             mem;
    Team                 *team;
    bool                  reference;
} Runner;

static Err runner_open(Runner *e, uint32_t threads) {
    if (e->reference) return ERR_OK;
    TRY(program_make(&e->program, e->shaped, e->options));
    if (threads > 1) {
        TRY(team_create(&e->team, threads, NULL));
        team_pin(e->team);  // else the system may put it beside another member, on one CPU
    }
    return run_memory_init(&e->mem, &e->program, threads);
}

static void runner_close(Runner *e) {
    team_destroy(e->team);
    run_memory_finish(&e->mem);
    program_finish(&e->program);
}

static Err runner_run(Runner *e, Arena *a, Tensor *outputs) {
    if (e->reference) return interp_run(e->shaped, e->inputs, &e->options->limits, a, outputs);
    return program_run(&e->program, &e->mem, e->team, e->inputs, a, outputs);
}

static Err time_runs(Repeat *r, Runner *e, Arena *a, Tensor *outputs) {
    Clock    clock = clock_monotonic();
    Progress bar;
    double  *ms = arena_try_new(a, double, (size_t)r->times);
    if (ms == NULL) return err_set(ERR_LIMIT, "no memory for %lld timings", (long long)r->times);
    size_t mark = a->used;
    progress_begin(&bar, stderr, clock, "running", r->times);
    Err err = ERR_OK;
    for (int64_t i = 0; err == ERR_OK && i < r->times; i++) {
        arena_rewind(a, mark);
        TimeNs start = clock_now(clock);
        err = runner_run(e, a, outputs);
        ms[i] = (double)(clock_now(clock) - start) / 1e6;
        progress_step(&bar, 1);
    }
    progress_end(&bar);
    return err != ERR_OK ? err : stats_sort(a, ms, (size_t)r->times, &r->ms);
}

static Err repeat_run(Repeat *r, const ShapedGraph *s, const Tensor *inputs,
                      const ProgramOptions *o, Arena *a, Tensor *outputs) {
    Runner e = {.shaped = s, .options = o, .inputs = inputs, .reference = r->reference};
    Err    err = runner_open(&e, (uint32_t)r->threads);
    if (err == ERR_OK) err = runner_run(&e, a, outputs);
    if (err == ERR_OK && r->times > 0) err = time_runs(r, &e, a, outputs);
    runner_close(&e);
    return err;
}

static void repeat_print(const Repeat *r) {
    if (r->times == 0) return;
    size_t n = (size_t)r->times;
    printf("%zu runs, %lld thread%s, %s: min %.3f ms, p50 %.3f, p90 %.3f, p99 %.3f, max %.3f\n", n,
           (long long)r->threads, r->threads == 1 ? "" : "s",
           r->reference ? "reference" : "compiled", r->ms[0], stats_percentile(r->ms, n, 50),
           stats_percentile(r->ms, n, 90), stats_percentile(r->ms, n, 99), r->ms[n - 1]);
}

static json_t *repeat_json(const Repeat *r) {
    if (r->times == 0) return NULL;
    size_t n = (size_t)r->times;
    return json_pack("{s:I,s:I,s:b,s:f,s:f,s:f,s:f,s:f}", "runs", (json_int_t)r->times, "threads",
                     (json_int_t)r->threads, "reference", r->reference, "min_ms", r->ms[0],
                     "p50_ms", stats_percentile(r->ms, n, 50), "p90_ms",
                     stats_percentile(r->ms, n, 90), "p99_ms", stats_percentile(r->ms, n, 99),
                     "max_ms", r->ms[n - 1]);
}

typedef struct Options {
    ModelArgs   load;
    ArgList     inputs;
    const char *output, *weights;
    int64_t     max_mb;
    Repeat      repeat;
    bool        json;
} Options;

typedef struct Result {
    const Graph *graph;
    Tensor      *outputs;
    json_t      *files;  // a list per output, after write_outputs
} Result;

static char *file_name(Arena *a, const char *dir, const char *name, uint32_t suffix) {
    char *path = suffix == 0 ? arena_printf(a, "%s/%s.npy", dir, name)
                             : arena_printf(a, "%s/%s_%u.npy", dir, name, suffix);
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
    for (uint32_t suffix = 2; taken(r, path); suffix++) path = file_name(a, dir, name, suffix);
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

// Inputs with inconsistent dimensions may be the cause of a failure: then the message has both.
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
    if (o->weights != NULL) TRY(weight_width_parse(o->weights, &options.weights));
    if (options.weights != WEIGHTS_FP32 && o->repeat.reference)
        return err_set(ERR_ARG,
                       "--reference computes with the file's weights; leave out --weights");
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
         "memory for intermediate values (default: 3/4 of the memory budget)", 1, INT64_C(1) << 24},
        {"repeat", ARG_INT, &o.repeat.times, "N", "run N more times and print latency percentiles",
         1, 1 << 30},
        {"threads", ARG_INT, &o.repeat.threads, "K", "compute on K cores (default 1)", 1, TEAM_MAX},
        {"weights", ARG_TEXT, &o.weights, "WIDTH",
         "weights of matrix products: fp32 (as in the file, default), fp16 or int8", 0, 0},
        {"reference", ARG_FLAG, &o.repeat.reference, NULL,
         "use the reference kernels instead of the compiled program", 0, 0},
        {"json", ARG_FLAG, &o.json, NULL, "one JSON document on stdout", 0, 0},
        MODEL_ARG_ROWS(o.load),
    };
    const char *what = NULL;
    int         code = args_parse(c, rows, 12, argc, argv, &what, 1, 1, NULL);
    if (code >= 0) return code;
    Model  m = {0};
    Arena  a = {0};
    Result r = {.files = json_array()};
    o.load.numbers = true;
    Err e = arena_init_growing(&a, 1 << 20, cpu_mem_budget(&cgroup_roots));
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
