// cotenant compile: compiles a network and lists the versions of its heavy layers with their costs.
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/term.h"
#include "base/table.h"
#include "cli/commands.h"
#include "cli/model_args.h"
#include "cli/weight_check.h"
#include "compile/tune/step_times.h"
#include "compile/program.h"
#include "kernel/probe.h"

typedef struct Options {
    ModelArgs   load;
    int64_t     tune;  // seconds
    const char *cores, *store, *weights;
    bool        json, no_store;
} Options;

typedef struct Compiled {
    Cpu          cpu;
    ProfileStore store;
    Team        *team;
    ShapeCache   shape_cache;
    Program      program;
    double       fma_peak, load_ms, ready_ms;
    uint32_t     n_counts, counts[PROFILE_COUNTS];
    bool         stored;
    WeightCheck  check;  // of narrowed weights
} Compiled;

// "1,2,4"; NULL: powers of two up to the CPU budget.
static Err read_cores(const char *list, uint32_t most, Compiled *c) {
    if (list == NULL) {
        for (uint32_t n = 1; n <= most && c->n_counts < PROFILE_COUNTS; n *= 2)
            c->counts[c->n_counts++] = n;
        return ERR_OK;
    }
    for (const char *at = list;; at++) {
        char         *end = NULL;
        unsigned long n = strtoul(at, &end, 10);
        uint32_t      last = c->n_counts > 0 ? c->counts[c->n_counts - 1] : 0;
        if (end == at || n <= last || n > TEAM_MAX || c->n_counts == PROFILE_COUNTS)
            return err_set(ERR_ARG, "--cores %s: give up to %d ascending numbers such as 1,2,4",
                           list, PROFILE_COUNTS);
        c->counts[c->n_counts++] = (uint32_t)n;
        at = end;
        if (*at == '\0') return ERR_OK;
        if (*at != ',') return err_set(ERR_ARG, "--cores %s: separate numbers by commas", list);
    }
}

static double ms_since(TimeNs start) {
    return (double)(clock_now(clock_monotonic()) - start) / 1e6;
}

static Err open_machine(const Options *o, Compiled *c, Arena *a, const Isa **isa) {
    uint32_t cpus[TEAM_MAX];
    if (!o->no_store && o->store != NULL) TRY(profile_store_check(o->store));
    TRY(isa_choose(isa));
    TRY(cpu_read(a, &cgroup_roots, &c->cpu));
    TRY(read_cores(o->cores, cpu_budget(&c->cpu, &cgroup_roots).cores, c));
    uint32_t n = c->counts[c->n_counts - 1], got = cpu_pick(&c->cpu, n, cpus);
    TRY(team_create(&c->team, n, got == n ? cpus : NULL));
    c->stored = !o->no_store;
    if (c->stored) profile_store_open(&c->store, o->store, &c->cpu, *isa);
    if (c->stored && c->store.why[0] != '\0')
        (void)fprintf(stderr, "cotenant: warning: %s\n", c->store.why);
    return ERR_OK;
}

static Err tuned(const Options *o, Compiled *c, const ShapedGraph *s, ProgramOptions p) {
    Probe    probe;
    Progress bar;
    bool     show = term_is_tty(stderr);
    TRY(probe_machine(&c->cpu, p.isa, c->team, true, (ProgressSink){0}, &probe));
    Pressure    pressure = pressure_of(&c->cpu, &probe);
    TuneOptions t = {.team = c->team,
                     .n_counts = c->n_counts,
                     .seconds = (double)o->tune,
                     .l2_bytes = c->cpu.l2_bytes,
                     .pressure = &pressure,
                     .store = p.store};
    memcpy(t.counts, c->counts, sizeof t.counts);
    if (show) progress_begin(&bar, stderr, clock_monotonic(), "tuning", 1);
    if (show) t.sink = progress_sink(&bar);
    p.tune = &t;
    Err e = program_make(&c->program, s, &p);
    if (show) progress_end(&bar);
    return e;
}

static Err compile(const Options *o, const Model *m, Compiled *c, Arena *a) {
    const Graph       *g = m->graph;
    Tensor            *in = arena_new(a, Tensor, g->n_inputs);
    const ShapedGraph *s = NULL;
    ProgramOptions     p = {.release_weights = true};
    TRY(open_machine(o, c, a, &p.isa));
    TimeNs start = clock_now(clock_monotonic());
    TRY(model_args_input_types(m, &o->load, 1, in));
    shape_cache_init(&c->shape_cache, m, interp_eval);
    TRY(shape_cache_get(&c->shape_cache, in, &s));
    p.store = c->stored ? &c->store : NULL;
    p.weights = c->check.width;
    if (p.weights != WEIGHTS_FP32) {
        TRY(weight_check_begin(&c->check, m, &o->load, s, &p, in, a));
        p.report = &c->check.report;
    }
    TRY(o->tune > 0 ? tuned(o, c, s, p) : program_make(&c->program, s, &p));
    c->ready_ms = ms_since(start);
    if (p.weights != WEIGHTS_FP32) TRY(weight_check_end(&c->check, &c->program, a));
    c->fma_peak = probe_fma_peak(p.isa);
    return step_times_measure_missing(&c->program, c->team, c->counts, c->n_counts, a);
}

static void add_row(Table *t, const Compiled *c, const Step *s, uint32_t i, uint32_t version) {
    const Candidate *k = &s->profile->candidates[s->profile->kept[version]];
    char             params[160];
    double           gflops = k->time_ns[0] > 0 ? 2 * s->macs / (double)k->time_ns[0] : 0;
    version_text(&k->version, params, sizeof params);
    table_row(t);
    if (version == 0)
        table_int(t, i);
    else
        table_missing(t);
    table_text(t, version == 0 ? s->name : NULL);
    table_text(t, version == 0 && s->node != NULL ? op_info(s->node->op)->name : NULL);
    table_text(t, params);
    table_real(t, (double)k->time_ns[0]);
    table_real(t, (double)k->time_ns[c->n_counts - 1]);
    table_real(t, gflops);
    table_real(t, c->fma_peak > 0 ? 100 * gflops / c->fma_peak : 0);
    table_int(t, k->tasks);
    table_int(t, (int64_t)k->traffic.l3_bytes);
    table_int(t, (int64_t)k->traffic.beyond_l2_bytes);
}

static Err print_table(const Compiled *c, Arena *a) {
    char         most[32];
    const Column cols[] = {
        {.key = "step", .head = "step"},
        {.key = "layer", .head = "layer"},
        {.key = "op", .head = "op"},
        {.key = "params", .head = "version"},
        {.key = "time_1_ns", .head = "1 core", .unit = "us", .scale = 1e3, .decimals = 1},
        {.key = "time_all_ns", .head = most, .unit = "us", .scale = 1e3, .decimals = 1},
        {.key = "gflops", .head = "GFLOP/s", .decimals = 1},
        {.key = "share", .head = "of peak", .unit = "%", .decimals = 0},
        {.key = "tasks", .head = "tasks"},
        {.key = "l3_bytes", .head = "L3", .unit = "KB", .scale = 1024, .decimals = 0},
        {.key = "beyond_l2_bytes", .head = "beyond L2", .unit = "KB", .scale = 1024, .decimals = 0},
    };
    Table t;
    (void)snprintf(most, sizeof most, "%u cores", c->counts[c->n_counts - 1]);
    table_init(&t, a, cols, sizeof cols / sizeof *cols);
    for (uint32_t i = 0; i < c->program.n_steps; i++) {
        const Step *s = &c->program.steps[i];
        for (uint32_t v = 0; s->profile != NULL && v < s->n_versions; v++) add_row(&t, c, s, i, v);
    }
    return table_print(&t, stdout);
}

static void print_summary(const Compiled *c) {
    const Program *p = &c->program;
    uint32_t       heavy = 0, versions = 0, parts = c->counts[c->n_counts - 1];
    for (uint32_t i = 0; i < p->n_steps; i++)
        if (p->steps[i].key != NULL) heavy++, versions += p->steps[i].n_versions;
    printf("%u steps, %u heavy with %u versions; ready in %.0f ms after loading in %.0f ms\n",
           p->n_steps, heavy, versions, c->ready_ms, c->load_ms);
    printf(
        "weights %.1f MB, buffers %.1f MB, scratch %.2f MB per core; peak %.1f MB on %u cores; FMA "
        "peak %.1f GFLOP/s per core (%s)\n",
        (double)p->weight_bytes / 1e6, (double)p->arena_bytes / 1e6,
        (double)program_scratch(p) / 1e6, (double)program_peak_bytes(p, parts) / 1e6, parts,
        c->fma_peak, p->isa->name);
}

static json_t *version_json(const Compiled *c, const Step *s, uint32_t v) {
    const Candidate *k = &s->profile->candidates[s->profile->kept[v]];
    json_t          *times = json_object();
    char             params[160], cores[16];
    version_text(&k->version, params, sizeof params);
    for (uint32_t i = 0; i < s->profile->n_counts; i++) {
        (void)snprintf(cores, sizeof cores, "%u", s->profile->counts[i]);
        if (k->time_ns[i] > 0) json_object_set_new(times, cores, json_integer(k->time_ns[i]));
    }
    double gflops = k->time_ns[0] > 0 ? 2 * s->macs / (double)k->time_ns[0] : 0;
    return json_pack("{s:s,s:o,s:I,s:I,s:I,s:f,s:f}", "params", params, "time_ns", times, "tasks",
                     (json_int_t)k->tasks, "l3_bytes", (json_int_t)k->traffic.l3_bytes,
                     "beyond_l2_bytes", (json_int_t)k->traffic.beyond_l2_bytes, "gflops", gflops,
                     "of_peak", c->fma_peak > 0 ? gflops / c->fma_peak : 0.0);
}

static int print_json(const Compiled *c, const char *model) {
    const Program *p = &c->program;
    json_t        *layers = json_array();
    for (uint32_t i = 0; i < p->n_steps; i++) {
        const Step *s = &p->steps[i];
        if (s->profile == NULL) continue;
        json_t *versions = json_array();
        for (uint32_t v = 0; v < s->n_versions; v++)
            json_array_append_new(versions, version_json(c, s, v));
        const char *op = s->node != NULL ? op_info(s->node->op)->name : s->kind->name;
        json_array_append_new(layers, json_pack("{s:i,s:s,s:s,s:s,s:f,s:o}", "step", (int)i, "name",
                                                s->name, "op", op, "shape", s->key, "macs", s->macs,
                                                "versions", versions));
    }
    uint32_t parts = c->counts[c->n_counts - 1];
    json_t  *check = p->weights != WEIGHTS_FP32 ? weight_check_json(&c->check) : NULL;
    return command_json(json_pack(
        "{s:s,s:o,s:i,s:f,s:f,s:I,s:I,s:I,s:I,s:f,s:s,s:o*}", "model", model, "layers", layers,
        "steps", (int)p->n_steps, "load_ms", c->load_ms, "ready_ms", c->ready_ms, "weight_bytes",
        (json_int_t)p->weight_bytes, "arena_bytes", (json_int_t)p->arena_bytes, "scratch_bytes",
        (json_int_t)program_scratch(p), "peak_bytes", (json_int_t)program_peak_bytes(p, parts),
        "fma_peak_gflops", c->fma_peak, "isa", p->isa->name, "weights", check));
}

static void close_all(Compiled *c) {
    program_finish(&c->program);
    if (c->shape_cache.model != NULL) shape_cache_finish(&c->shape_cache);
    team_destroy(c->team);
    if (c->stored) profile_store_close(&c->store);
}

int cmd_compile(const Command *c, int argc, char **argv) {
    Options      o = {.load = MODEL_ARGS_DEFAULT};
    const ArgRow rows[] = {
        {"tune", ARG_INT, &o.tune, "SECONDS",
         "tune versions for at most this time (default: no tuning)", 0, 86400},
        {"cores", ARG_TEXT, &o.cores, "LIST", "core counts to measure, such as 1,2,4", 0, 0},
        {"store", ARG_TEXT, &o.store, "FILE", "profile store (default: in the cache directory)", 0,
         0},
        {"weights", ARG_TEXT, &o.weights, "WIDTH",
         "weights of matrix products: fp32 (as in the file, default), fp16 or int8; reports errors",
         0, 0},
        {"no-store", ARG_FLAG, &o.no_store, NULL, "do not use the profile store", 0, 0},
        {"dim", ARG_LIST, &o.load.dims, "NAME=N", "size of an open dimension (default 1)", 0, 0},
        {"json", ARG_FLAG, &o.json, NULL, "one JSON document on stdout", 0, 0},
        MODEL_ARG_ROWS(o.load),
    };
    const char *what = NULL;
    int         code = args_parse(c, rows, 10, argc, argv, &what, 1, 1, NULL);
    if (code >= 0) return code;
    Model    m = {0};
    Arena    a = {0};
    Compiled r = {0};
    TimeNs   start = clock_now(clock_monotonic());
    o.load.numbers = true;
    Err e = arena_init_growing(&a, 1 << 20, cpu_mem_budget(&cgroup_roots));
    if (e == ERR_OK && o.weights != NULL) e = weight_width_parse(o.weights, &r.check.width);
    if (e == ERR_OK) e = model_args_load(what, &o.load, &m);
    r.load_ms = ms_since(start);
    if (e == ERR_OK) e = compile(&o, &m, &r, &a);
    if (e == ERR_OK && !o.json) e = print_table(&r, &a);
    if (e == ERR_OK && !o.json) print_summary(&r);
    if (e == ERR_OK && !o.json && r.check.width != WEIGHTS_FP32)
        e = weight_check_print(&r.check, &a);
    code = e != ERR_OK ? command_failed(e) : o.json ? print_json(&r, m.name) : 0;
    close_all(&r);
    model_finish(&m);
    arena_finish(&a);
    return code;
}
