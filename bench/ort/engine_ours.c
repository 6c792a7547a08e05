#include "bench/ort/engine.h"

#include "base/cpu.h"
#include "compile/program.h"
#include "kernel/probe.h"
#include "model/fold.h"

typedef struct Ours {
    const Network *network;
    Program        program;
    RunMemory      mem;
    Team          *team;
    Tensor        *outputs;
} Ours;

// Tunes as `cotenant compile --tune` does, for the team's number of threads and without a store.
static Err make_tuned(Ours *o, const ShapedGraph *shaped, const EngineOptions *cfg, Arena *a) {
    Cpu        cpu;
    Probe      probe;
    const Isa *isa = NULL;
    TRY(isa_choose(&isa));
    TRY(cpu_read(a, &cgroup_roots, &cpu));
    TRY(probe_machine(&cpu, isa, o->team, true, (ProgressSink){0}, &probe));
    const Pressure    pressure = pressure_of(&cpu, &probe);
    const TuneOptions tune = {.team = o->team,
                              .n_counts = 1,
                              .counts = {(uint32_t)cfg->threads},
                              .seconds = cfg->tune_seconds,
                              .l2_bytes = cpu.l2_bytes,
                              .pressure = &pressure};
    return program_make(&o->program, shaped, &(ProgramOptions){.isa = isa, .tune = &tune});
}

static Err ours_open(Network *n, const EngineOptions *cfg, Arena *a, void **state) {
    Ours        *o = arena_new(a, Ours, 1);
    ShapedGraph *shaped = NULL;
    o->network = n;
    o->outputs = arena_new(a, Tensor, n->model.graph->n_outputs);
    TRY(fold_constants(&n->model, interp_eval));
    TRY(shaped_graph_make(n->model.graph, n->inputs, interp_eval, a, &shaped));
    TRY(team_create(&o->team, (uint32_t)cfg->threads, NULL));
    if (cfg->threads > 1) team_pin(o->team);  // as workers of the server are
    if (cfg->tune_seconds > 0)
        TRY(make_tuned(o, shaped, cfg, a));
    else
        TRY(program_make(&o->program, shaped, &(ProgramOptions){0}));
    TRY(run_memory_init(&o->mem, &o->program, (uint32_t)cfg->threads));
    *state = o;
    return ERR_OK;
}

static Err ours_run(void *state) {
    Ours *o = state;
    return program_run(&o->program, &o->mem, o->team, o->network->inputs, NULL, o->outputs);
}

static Err ours_outputs(void *state, Tensor *out) {
    const Ours *o = state;
    for (uint32_t i = 0; i < o->network->model.graph->n_outputs; i++) out[i] = o->outputs[i];
    return ERR_OK;
}

static void ours_close(void *state) {
    Ours *o = state;
    team_destroy(o->team);
    run_memory_finish(&o->mem);
    program_finish(&o->program);
}

const Engine engine_ours = {"cotenant", ours_open, ours_run, ours_outputs, ours_close};
