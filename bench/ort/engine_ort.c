#include "bench/ort/engine.h"
#include "bench/ort/lib.h"

typedef struct Theirs {
    Lib          lib;
    const Graph *graph;
    void        *env, *session, *memory;
    const char **in_names, **out_names;
    void       **in, **out;  // values; out is allocated by the first run and reused
} Theirs;

enum { LOG_ERRORS = 3, OPTIMISE_ALL = 99, SEQUENTIAL = 0, ALLOCATOR_ARENA = 1, MEMORY_DEFAULT = 0 };

static Err set_options(const Lib *lib, const EngineOptions *cfg, void *o) {
    TRY(lib_check(lib, lib->set_optimisation(o, OPTIMISE_ALL), "optimisation level"));
    TRY(lib_check(lib, lib->set_execution_mode(o, SEQUENTIAL), "execution mode"));
    TRY(lib_check(lib, lib->set_intra_threads(o, cfg->threads), "threads"));
    TRY(lib_check(lib, lib->set_inter_threads(o, 1), "threads"));
    TRY(lib_check(lib, lib->add_config(o, "session.intra_op.allow_spinning", "1"), "spinning"));
    TRY(lib_check(lib, lib->add_config(o, "session.set_denormal_as_zero", "1"), "denormals"));
    if (cfg->profile == NULL) return ERR_OK;
    return lib_check(lib, lib->enable_profiling(o, cfg->profile), "profile");
}

static Err open_session(Theirs *t, const Network *n, const EngineOptions *cfg) {
    const Lib *lib = &t->lib;
    void      *options = NULL;
    TRY(lib_check(lib, lib->create_env(LOG_ERRORS, "bench", &t->env), "environment"));
    TRY(lib_check(lib, lib->create_options(&options), "options"));
    Err e = set_options(lib, cfg, options);
    if (e == ERR_OK)
        e = lib_check(lib, lib->create_session(t->env, n->path, options, &t->session), "loading");
    lib->release_options(options);
    return e;
}

static Err wrap_inputs(Theirs *t, const Network *n) {
    const Lib *lib = &t->lib;
    TRY(lib_check(lib, lib->cpu_memory(ALLOCATOR_ARENA, MEMORY_DEFAULT, &t->memory), "memory"));
    for (uint32_t i = 0; i < t->graph->n_inputs; i++) {
        const Tensor *x = &n->inputs[i];
        size_t        bytes = 0;
        TRY(tensor_measure(x, &bytes));
        TRY(lib_check(lib,
                      lib->tensor_with_data(t->memory, x->data, bytes, x->dims, (size_t)x->rank,
                                            (int)x->dtype, &t->in[i]),
                      "input"));
    }
    return ERR_OK;
}

static Err ort_open(Network *n, const EngineOptions *cfg, Arena *a, void **state) {
    Theirs      *t = arena_new(a, Theirs, 1);
    const Graph *g = t->graph = n->model.graph;
    TRY(lib_open(cfg->lib, &t->lib));
    t->in_names = arena_new(a, const char *, g->n_inputs);
    t->out_names = arena_new(a, const char *, g->n_outputs);
    t->in = arena_new(a, void *, g->n_inputs);
    t->out = arena_new(a, void *, g->n_outputs);
    for (uint32_t i = 0; i < g->n_inputs; i++) t->in_names[i] = g->values[g->inputs[i]].name;
    for (uint32_t i = 0; i < g->n_outputs; i++) t->out_names[i] = g->values[g->outputs[i]].name;
    *state = t;
    TRY(open_session(t, n, cfg));
    return wrap_inputs(t, n);
}

static Err ort_run(void *state) {
    Theirs *t = state;
    void   *status = t->lib.run(t->session, NULL, t->in_names, (const void *const *)t->in,
                                t->graph->n_inputs, t->out_names, t->graph->n_outputs, t->out);
    return lib_check(&t->lib, status, "run");
}

static Err read_shape(const Lib *lib, const void *info, Tensor *out) {
    size_t rank = 0;
    int    type = 0;
    TRY(lib_check(lib, lib->element_type(info, &type), "type of an output"));
    TRY(lib_check(lib, lib->rank(info, &rank), "rank of an output"));
    if (rank > TENSOR_MAX_RANK) return err_set(ERR_LIMIT, "the rank of an output is too high");
    *out = (Tensor){.dtype = (DType)type, .rank = (int32_t)rank};
    return lib_check(lib, lib->dims(info, out->dims, rank), "shape of an output");
}

static Err read_output(const Lib *lib, void *value, Tensor *out) {
    void *info = NULL;
    int   tensor = 0;
    TRY(lib_check(lib, lib->is_tensor(value, &tensor), "kind of an output"));
    if (!tensor) return err_set(ERR_UNSUPPORTED, "an output is not a tensor");
    TRY(lib_check(lib, lib->type_and_shape(value, &info), "type of an output"));
    Err e = read_shape(lib, info, out);
    lib->release_info(info);
    TRY(e);
    return lib_check(lib, lib->tensor_data(value, &out->data), "an output");
}

static Err ort_outputs(void *state, Tensor *out) {
    Theirs *t = state;
    for (uint32_t i = 0; i < t->graph->n_outputs; i++)
        TRY(read_output(&t->lib, t->out[i], &out[i]));
    return ERR_OK;
}

static void ort_close(void *state) {  // the profile is written when its session ends
    Theirs *t = state;
    for (uint32_t i = 0; i < t->graph->n_outputs; i++) t->lib.release_value(t->out[i]);
    for (uint32_t i = 0; i < t->graph->n_inputs; i++) t->lib.release_value(t->in[i]);
    t->lib.release_memory(t->memory);
    t->lib.release_session(t->session);
    t->lib.release_env(t->env);
}

const Engine engine_ort = {"ONNX Runtime", ort_open, ort_run, ort_outputs, ort_close};
