#include "node/stage.h"

#include <string.h>
#include <unistd.h>

#include "compile/laps.h"
#include "model/fold.h"
#include "model/onnx_read.h"
#include "model/zoo.h"
#include "node/model.h"

enum { ARENA_SHIFT = 34, RUNS = 16 };

static bool is_file(const char *what) {
    size_t n = strlen(what);
    return (n > 5 && strcmp(what + n - 5, ".onnx") == 0) || strchr(what, '/') != NULL ||
           access(what, F_OK) == 0;
}

static Err load(Stage *s, const char *what) {
    TRY(is_file(what) ? onnx_read(what, &s->model) : zoo_build(what, NULL, &s->model));
    TRY(model_materialise(&s->model));
    return fold_constants(&s->model, interp_eval);
}

// Floats in [-1, 1), everything else 0 or 1: small enough to be an index into any table.
static void randomise(Tensor *t, Rng *r) {
    size_t size = dtype_size(t->dtype);
    for (int64_t i = 0; i < tensor_count(t); i++) {
        if (t->dtype == DT_F32)
            ((float *)t->data)[i] = 2 * rng_unit(r) - 1;
        else if (t->dtype == DT_F64)
            ((double *)t->data)[i] = 2 * rng_unit64(r) - 1;
        else if (!dtype_is_float(t->dtype))
            ((unsigned char *)t->data)[(size_t)i * size] = (unsigned char)rng_below(r, 2);
    }
}

static Err make_inputs(Stage *s, uint64_t seed) {
    const Graph *g = s->model.graph;
    s->inputs = arena_try_new(&s->arena, Tensor, g->n_inputs);
    if (s->inputs == NULL) return err_set(ERR_LIMIT, "too many inputs");
    for (uint32_t i = 0; i < g->n_inputs; i++) {
        Tensor *t = &s->inputs[i];
        Rng     r = rng_fork((Rng){seed}, i);
        *t = g->values[g->inputs[i]].type;
        for (int32_t d = 0; d < t->rank; d++)
            if (t->dims[d] < 0) t->dims[d] = 1;
        if (t->rank < 0 || t->dtype == DT_NONE || t->dtype == DT_STR || t->dtype == DT_SEQ ||
            t->dtype == DT_OPT)
            return err_set(ERR_UNSUPPORTED, "input '%s' (%s) cannot be made at random",
                           g->values[g->inputs[i]].name, dtype_name(t->dtype));
        TRY(tensor_room(t, &s->arena));
        randomise(t, &r);
    }
    return ERR_OK;
}

static Err compile(Stage *s, Host *h, const StageOptions *o) {
    TuneOptions tune = {.team = h->team,
                        .n_counts = h->n_counts,
                        .seconds = o->tune_seconds,
                        .l2_bytes = h->cpu.l2_bytes,
                        .pressure = &h->pressure,
                        .store = &h->store};
    bool        search = o->tune_seconds > 0 && !o->background;
    memcpy(tune.counts, h->counts, sizeof tune.counts);
    ProgramOptions p = {.isa = h->isa, .store = &h->store, .tune = search ? &tune : NULL};
    p.consume = true;
    TRY(special_make(s->model.graph, s->inputs, interp_eval, &s->model.arena, &s->special));
    TRY(program_make(&s->program, s->special, &p));
    if (s->program.n_steps == 0) return err_set(ERR_UNSUPPORTED, "nothing of it can be compiled");
    return ERR_OK;
}

static Err measure(Stage *s, Host *h, const StageOptions *o, TimeNs **light) {
    LapsOptions laps = {.n_counts = h->n_counts,
                        .runs = o->runs > 0 ? o->runs : RUNS,
                        .inputs = s->inputs,
                        .reckon = o->background};
    Team       *one = NULL;
    memcpy(laps.counts, h->counts, sizeof laps.counts);
    if (!o->background) return laps_measure(&s->program, h->team, &laps, &s->arena, light);
    TRY(team_create(&one, 1, NULL));
    Err e = laps_measure(&s->program, one, &laps, &s->arena, light);
    team_destroy(one);
    return e;
}

static Err tabulate(Stage *s, const char *name, const Host *h, const TimeNs *light) {
    ModelMeasured m = {.pressure = &h->pressure, .n_counts = h->n_counts, .light_ns = light};
    memcpy(m.counts, h->counts, sizeof m.counts);
    TRY(model_of_profiles(&s->program, name, &m, &s->arena, &s->table));
    for (uint32_t k = 0; k < h->n_counts; k++)
        s->solo_ns[k] = (double)node_rest(&s->table, s->table.rest_best, 0,
                                          node_count(&s->table, h->counts[k]), 0);
    return ERR_OK;
}

static Err make(Stage *s, const char *what, Host *h, const StageOptions *o) {
    TimeNs *light = NULL;
    TRY(load(s, what));
    TRY(make_inputs(s, o->seed > 0 ? o->seed : 1));
    TRY(compile(s, h, o));
    TRY(measure(s, h, o, &light));
    return tabulate(s, arena_str(&s->arena, what), h, light);
}

Err stage_load(Stage *s, const char *what, Host *h, const StageOptions *o) {
    *s = (Stage){0};
    TRY(arena_init(&s->arena, (size_t)1 << ARENA_SHIFT));
    Err e = make(s, what, h, o);
    if (e == ERR_OK) return e;
    e = err_add(e, "%s", what);
    stage_finish(s);
    return e;
}

void stage_finish(Stage *s) {
    program_finish(&s->program);
    model_finish(&s->model);
    arena_finish(&s->arena);
    *s = (Stage){0};
}

LiveTenant stage_tenant(const Stage *s, const char *name, TimeNs qos_ns, double priority) {
    return (LiveTenant){
        .tenant = {.model = &s->table, .name = name, .qos_ns = qos_ns, .priority = priority},
        .program = &s->program,
        .inputs = s->inputs};
}
