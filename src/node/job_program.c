#include "node/job_program.h"

#include "base/err.h"

enum { ARENA_BYTES = 1 << 20 };

static void run_slice(const StepCall *c) {
    EngineJob *j = c->mem->inputs[0].data;
    if (!j->done) j->done = coroutine_resume(j->coroutine, JOB_SLICE_NS);
    c->mem->complete = j->done;
}

static uint32_t one_task(const Step *s, const Version *v) {
    (void)s, (void)v;
    return 1;
}

static Err make_steps(JobProgram *p) {
    static const StepKind kind = {.name = "job", .run = run_slice, .tasks = one_task};
    Program              *g = &p->program;
    g->steps = arena_try_new(&p->arena, Step, JOB_LAYERS);
    if (g->steps == NULL) return err_set(ERR_LIMIT, "no memory for the slices of jobs");
    for (g->n_steps = 0; g->n_steps < JOB_LAYERS; g->n_steps++)
        g->steps[g->n_steps] =
            (Step){.kind = &kind, .name = "slice", .n_versions = 1, .serial = true};
    g->shaped = &p->shaped;
    p->shaped.graph = &p->graph;
    return ERR_OK;
}

// The same time at every level of interference, for the only version on one core.
static void fill_tables(float *times, float *rest) {
    for (uint32_t l = 0; l < JOB_LAYERS; l++)
        for (uint32_t i = 0; i < NODE_VERSIONS * NODE_LEVELS; i++)
            times[l * NODE_VERSIONS * NODE_LEVELS + i] = JOB_SLICE_NS;
    for (uint32_t l = 0; l <= JOB_LAYERS; l++)
        for (uint32_t i = 0; i < NODE_LEVELS; i++)
            rest[l * NODE_LEVELS + i] = (float)(JOB_LAYERS - l) * JOB_SLICE_NS;
}

static Err make_model(JobProgram *p) {
    Arena     *a = &p->arena;
    NodeLayer *layers = arena_try_new(a, NodeLayer, JOB_LAYERS);
    float     *times = arena_try_new(a, float, JOB_LAYERS *NODE_VERSIONS *NODE_LEVELS);
    float     *rest = arena_try_new(a, float, (JOB_LAYERS + 1) * NODE_LEVELS);
    uint8_t   *picks = arena_try_new(a, uint8_t, JOB_LAYERS * NODE_LEVELS);
    if (layers == NULL || times == NULL || rest == NULL || picks == NULL)
        return err_set(ERR_LIMIT, "no memory for the times of jobs");
    for (uint32_t l = 0; l < JOB_LAYERS; l++)
        layers[l] = (NodeLayer){.name = "slice", .n_versions = 1, .versions = {{.tasks = 1}}};
    fill_tables(times, rest);
    p->model = (NodeModel){.name = "job",
                           .n_layers = JOB_LAYERS,
                           .n_counts = 1,
                           .counts = {1},
                           .layers = layers,
                           .times = times,
                           .rest_best = rest,
                           .rest_solo = rest,
                           .picks = picks};
    return ERR_OK;
}

Err job_program_make(JobProgram *p) {
    *p = (JobProgram){0};
    TRY(arena_init(&p->arena, ARENA_BYTES));
    Err e = make_steps(p);
    if (e == ERR_OK) e = make_model(p);
    if (e != ERR_OK) job_program_finish(p);
    return e;
}

void job_program_finish(JobProgram *p) {
    arena_finish(&p->arena);
    *p = (JobProgram){0};
}

Tensor job_input(EngineJob *j) {
    return (Tensor){.dtype = DT_U8, .rank = 1, .dims = {1}, .data = j};
}

uint32_t job_first_layer(TimeNs ns) {
    TimeNs n = ns / JOB_SLICE_NS + 1;
    return n < JOB_LAYERS ? JOB_LAYERS - (uint32_t)n : 0;
}
