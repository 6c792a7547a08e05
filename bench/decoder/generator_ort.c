// ONNX Runtime: each cache is one buffer, bound as input and as output, so that the operator
// appends in place.
#include "bench/decoder/generator.h"
#include "bench/ort/lib.h"

typedef struct Theirs {
    const DecoderFile *file;
    Lib                lib;
    void              *env, *session, *memory;
    const char        *in_names[GENERATOR_MAX_IO], *out_names[GENERATOR_MAX_IO];
    Tensor             in[GENERATOR_MAX_IO], logits;
    void              *in_values[GENERATOR_MAX_IO], *out_values[GENERATOR_MAX_IO];
    int64_t            id;
} Theirs;

enum { LOG_ERRORS = 3, OPTIMISE_ALL = 99, SEQUENTIAL = 0, ALLOCATOR_ARENA = 1, MEMORY_DEFAULT = 0 };

static Err set_options(const Lib *lib, int threads, void *o) {
    TRY(lib_check(lib, lib->set_optimisation(o, OPTIMISE_ALL), "optimisation level"));
    TRY(lib_check(lib, lib->set_execution_mode(o, SEQUENTIAL), "execution mode"));
    TRY(lib_check(lib, lib->set_intra_threads(o, threads), "threads"));
    TRY(lib_check(lib, lib->set_inter_threads(o, 1), "threads"));
    return lib_check(lib, lib->add_config(o, "session.intra_op.allow_spinning", "1"), "spinning");
}

static Err open_session(Theirs *t, int threads) {
    const Lib *lib = &t->lib;
    void      *options = NULL;
    TRY(lib_check(lib, lib->create_env(LOG_ERRORS, "bench", &t->env), "environment"));
    TRY(lib_check(lib, lib->create_options(&options), "options"));
    Err e = set_options(lib, threads, options);
    if (e == ERR_OK)
        e = lib_check(lib, lib->create_session(t->env, t->file->path, options, &t->session),
                      "loading");
    lib->release_options(options);
    return e;
}

static Err wrap(Theirs *t, Tensor *x, Arena *a, void **value) {
    size_t bytes = 0;
    TRY(tensor_measure(x, &bytes));
    if (x->data == NULL) TRY(tensor_alloc(x, a));
    void *status = t->lib.tensor_with_data(t->memory, x->data, bytes, x->dims, (size_t)x->rank,
                                           (int)x->dtype, value);
    return lib_check(&t->lib, status, "tensor");
}

static Err bind_values(Theirs *t, Arena *a) {
    const DecoderFile *f = t->file;
    const Graph       *g = f->model.graph;
    TRY(lib_check(&t->lib, t->lib.cpu_memory(ALLOCATOR_ARENA, MEMORY_DEFAULT, &t->memory),
                  "memory"));
    for (uint32_t i = 0; i < g->n_inputs; i++) {
        t->in_names[i] = g->values[g->inputs[i]].name;
        t->in[i] = g->values[g->inputs[i]].type;
        if (i == f->ids) t->in[i].data = &t->id;
        TRY(wrap(t, &t->in[i], a, &t->in_values[i]));
    }
    for (uint32_t i = 0; i < g->n_outputs; i++) t->out_names[i] = g->values[g->outputs[i]].name;
    for (uint32_t i = 0; i < f->n_caches; i++)
        t->out_values[f->present[i]] = t->in_values[f->past[i]];
    t->logits = g->values[g->outputs[f->logits]].type;
    return wrap(t, &t->logits, a, &t->out_values[f->logits]);
}

static Err ort_open(const DecoderFile *f, const char *lib, int threads, Arena *a, void **state) {
    Theirs *t = arena_new(a, Theirs, 1);
    t->file = f;
    TRY(lib_open(lib, &t->lib));
    *state = t;
    TRY(open_session(t, threads));
    return bind_values(t, a);
}

static Err ort_step(void *state, int64_t token, int64_t position, const float **logits) {
    Theirs            *t = state;
    const DecoderFile *f = t->file;
    int64_t           *mask = t->in[f->mask].data;
    t->id = token;
    for (int64_t i = 0; i < f->capacity; i++) mask[i] = i <= position;
    void *status = t->lib.run(t->session, NULL, t->in_names, (const void *const *)t->in_values,
                              f->model.graph->n_inputs, t->out_names, f->model.graph->n_outputs,
                              t->out_values);
    *logits = t->logits.data;
    return lib_check(&t->lib, status, "run");
}

static void ort_close(void *state) {
    Theirs *t = state;
    for (uint32_t i = 0; i < t->file->model.graph->n_inputs; i++)
        t->lib.release_value(t->in_values[i]);
    t->lib.release_value(t->out_values[t->file->logits]);
    t->lib.release_memory(t->memory);
    t->lib.release_session(t->session);
    t->lib.release_env(t->env);
}

const Generator generator_ort = {"ONNX Runtime", ort_open, ort_step, ort_close};
