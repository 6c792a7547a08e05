#include "node/prepared_model.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/work_stop.h"
#include "compile/tune/step_times.h"
#include "node/step_times_store.h"
#include "node/node_model.h"
#include "node/scaled_times.h"

enum { ARENA_FIRST = 1 << 20, RUNS = 16 };

static const size_t ARENA_MOST = (size_t)1 << 34;
enum { QUICK_MACS_NS = 200, SLOW_MACS_NS = 10 };  // on one core: bounds of any kernel's speed
enum { ROUNDS_MOST = 100000 };  // loop iterations of the interpreter while measured

static const double LEAST_GAIN = 0.05;  // of more cores, as a share of the time on one

#define MEASURE_NS       INT64_C(2000000000)  // time for all runs, at least one of each
#define MEASURE_BRIEF_NS INT64_C(500000000)   // the same for shapes that requests wait for
#define MEASURE_MACS     INT64_C(20000000000)

// Floats in [-1, 1), other types 0 or 1: valid as an index into any table.
static void randomise(Tensor *t, Rng *r) {
    size_t size = dtype_size(t->dtype);
    for (int64_t i = 0; i < tensor_count(t); i++) {
        if (t->dtype == DT_F32)
            ((float *)t->data)[i] = 2 * rng_unit(r) - 1;
        else if (t->dtype == DT_F64)
            ((double *)t->data)[i] = 2 * rng_unit64(r) - 1;
        else if (t->dtype == DT_STR)
            ((Str *)t->data)[i] = (Str){.at = ""};
        else if (!dtype_is_float(t->dtype))
            ((unsigned char *)t->data)[(size_t)i * size] = (unsigned char)rng_below(r, 2);
    }
}

static Err choose_type(const Value *v, const Tensor *given, Tensor *out) {
    *out = v->type;
    if (given != NULL) *out = *given;
    out->data = NULL;
    for (int32_t d = 0; d < out->rank; d++)
        if (out->dims[d] < 0) out->dims[d] = 1;
    if (out->rank < 0 || out->dtype == DT_NONE || out->dtype == DT_SEQ || out->dtype == DT_OPT)
        return err_set(ERR_UNSUPPORTED, "cannot make random values for input '%s' (%s)", v->name,
                       dtype_name(out->dtype));
    return ERR_OK;
}

static Err make_inputs(PreparedModel *s, const PrepareOptions *o) {
    const Graph *g = s->source->model.graph;
    s->inputs = arena_try_new(&s->arena, Tensor, g->n_inputs);
    if (s->inputs == NULL) return err_set(ERR_LIMIT, "too many inputs");
    for (uint32_t i = 0; i < g->n_inputs; i++) {
        Tensor *t = &s->inputs[i];
        size_t  bytes = 0;
        Rng     r = rng_fork((Rng){o->seed > 0 ? o->seed : 1}, i);
        TRY(choose_type(&g->values[g->inputs[i]], o->shapes != NULL ? &o->shapes[i] : NULL, t));
        TRY(tensor_measure(t, &bytes));
        if (o->needed != NULL && bytes > *o->needed) *o->needed = bytes;
        if (o->max_bytes > 0 && bytes > o->max_bytes)
            return err_set(ERR_LIMIT, "input '%s' needs %zu bytes; the limit is %" PRIu64 " (%s)",
                           g->values[g->inputs[i]].name, bytes, o->max_bytes,
                           o->setting != NULL ? o->setting : "memory");
        if (o->like != NULL) continue;
        TRY(tensor_alloc(t, &s->arena));
        randomise(t, &r);
    }
    s->has_values = o->like == NULL;
    return shaped_graph_check_inputs(g, s->inputs);
}

// A response has at least one output: the smallest one bounds it from below.
static Err check_outputs(const ShapedGraph *s, uint64_t most) {
    const Graph *g = s->graph;
    size_t       least = SIZE_MAX;
    for (uint32_t i = 0; i < g->n_outputs; i++) {
        size_t bytes = 0;
        if (tensor_measure(&s->values[g->outputs[i]], &bytes) != ERR_OK) bytes = 0;
        if (bytes < least) least = bytes;
    }
    if (most == 0 || g->n_outputs == 0 || least <= most) return ERR_OK;
    return err_set(ERR_LIMIT,
                   "its output would have %zu bytes; the limit is %" PRIu64 " (`response_mb`)",
                   least, most);
}

// Without tuned versions of the other shapes, the store is not asked for those of these.
static bool has_tuned(const Program *p) {
    for (uint32_t i = 0; i < p->n_steps; i++)
        if (p->steps[i].n_versions > 1) return true;
    return false;
}

static Err compile(PreparedModel *s, Host *h, const PrepareOptions *o) {
    TuneOptions tune = {.team = o->tune_seconds > 0 ? h->team : NULL,
                        .n_counts = h->n_counts,
                        .seconds = o->tune_seconds,
                        .l2_bytes = h->cpu.l2_bytes,
                        .pressure = &h->pressure,
                        .store = &h->store,
                        .stop = o->stop};
    bool        search = o->tune_seconds > 0 && !o->background;
    memcpy(tune.counts, h->counts, sizeof tune.counts);
    ProgramOptions p = {.isa = h->isa,
                        .store = o->like == NULL || has_tuned(&o->like->program) ? &h->store : NULL,
                        .tune = search ? &tune : NULL,
                        .caches = o->like != NULL ? o->like->program.caches : (CacheSizes){0},
                        .weights = o->weights,
                        .scratch = o->scratch,
                        .release_weights = !s->source->open || s->source == &s->own,
                        .packed = s->source == &s->own ? NULL : s->source->packed,
                        .at_least_one_step = o->interpret,
                        .limits = {.max_bytes = o->max_bytes, .setting = o->setting},
                        .needed = o->needed};
    TRY(shaped_graph_make(s->source->model.graph, s->inputs, interp_eval, &s->arena, &s->shaped));
    TRY(check_outputs(s->shaped, o->max_output));
    TRY(program_make(&s->program, s->shaped, &p));
    if (s->program.n_steps == 0) return err_set(ERR_UNSUPPORTED, "no layer of it can be compiled");
    return ERR_OK;
}

// Blocks end only between steps, so a step above the limit cannot be served.
static Err check_steps(const PreparedModel *s, const Host *h, TimeNs most_ns) {
    double all = QUICK_MACS_NS * (double)h->counts[h->n_counts - 1];
    for (uint32_t i = 0; most_ns > 0 && i < s->program.n_steps; i++) {
        const Step *t = &s->program.steps[i];
        double      ns = t->macs / all;
        if (ns > (double)most_ns)
            return err_set(ERR_LIMIT, "layer '%s' would take %.0f s; the limit is %.3f s",
                           t->name != NULL ? t->name : "", ns / 1e9, (double)most_ns / 1e9);
    }
    return ERR_OK;
}

static double all_macs(const PreparedModel *s) {
    double sum = 0;
    for (uint32_t i = 0; i < s->program.n_steps; i++) sum += s->program.steps[i].macs;
    return sum;
}

static Err run_laps(PreparedModel *s, Host *h, const PrepareOptions *o, TimeNs **light) {
    InterpLimits    *limits = &s->program.limits, served = *limits;
    StepTimesOptions laps = {.n_counts = h->n_counts,
                             .runs = o->runs > 0 ? o->runs : RUNS,
                             .inputs = s->inputs,
                             .extrapolate = o->background,
                             .most_ns = !o->background      ? 0
                                        : o->budget != NULL ? MEASURE_BRIEF_NS
                                                            : MEASURE_NS,
                             .stop = o->stop};
    Team            *one = NULL;
    memcpy(laps.counts, h->counts, sizeof laps.counts);
    if (o->background) TRY(team_create(&one, 1, NULL));
    if (o->background) limits->max_iterations = ROUNDS_MOST;
    if (o->background) limits->max_macs = MEASURE_MACS;
    if (o->run_bytes > 0 && (limits->max_bytes == 0 || limits->max_bytes > o->run_bytes))
        limits->max_bytes = o->run_bytes;
    Err e = step_times_measure(&s->program, one != NULL ? one : h->team, &laps, &s->arena, light);
    *limits = served;
    if (one != NULL) team_destroy(one);
    return e;
}

// Estimates for runs that fail or would take too long, from MACs, or from bytes without MACs.
static Err guess(PreparedModel *s, const Host *h, TimeNs **light) {
    TimeNs *times = arena_try_new(&s->arena, TimeNs, (size_t)s->program.n_steps * h->n_counts);
    if (times == NULL) return err_set(ERR_LIMIT, "no memory for times");
    for (uint32_t i = 0; i < s->program.n_steps; i++) {
        Step *t = &s->program.steps[i];
        t->profile = NULL;
        for (uint32_t k = 0; k < h->n_counts; k++)
            times[i * h->n_counts + k] =
                (TimeNs)(t->macs / SLOW_MACS_NS / (t->serial ? 1 : h->counts[k]));
    }
    *light = times;
    return ERR_OK;
}

// Stored times of the same steps are reused, for a quick start.
static Err measure(PreparedModel *s, Host *h, const PrepareOptions *o, TimeNs **light) {
    StepTimesStore kept = {.store = &h->store, .n_counts = h->n_counts, .reckoned = o->background};
    memcpy(kept.counts, h->counts, sizeof kept.counts);
    if (o->like != NULL) {
        bool scaled = program_same_layers(&s->program, &o->like->program);
        return scaled ? scaled_times(&s->program, o->like, &s->arena, light) : guess(s, h, light);
    }
    s->measured = o->interpret && step_times_store_get(&kept, &s->program, &s->arena, light);
    if (s->measured) return ERR_OK;
    bool slow = o->interpret && all_macs(s) / SLOW_MACS_NS > (double)MEASURE_NS * 5;
    Err  e = slow ? guess(s, h, light) : run_laps(s, h, o, light);
    s->measured = e == ERR_OK && !slow;
    if (s->measured && o->remember) step_times_store_put(&kept, &s->program, *light, &s->arena);
    return o->interpret && e != ERR_OK ? guess(s, h, light) : e;
}

static void sum_up(PreparedModel *s) {
    for (uint32_t k = 0; k < s->table.n_counts; k++)
        s->solo_ns[k] = (double)node_rest(&s->table, s->table.rest_best, 0, k, 0);
}

static Err tabulate(PreparedModel *s, const char *name, const Host *h, const TimeNs *light) {
    ModelMeasured m = {.pressure = &h->pressure, .n_counts = h->n_counts, .light_ns = light};
    memcpy(m.counts, h->counts, sizeof m.counts);
    TRY(model_of_profiles(&s->program, name, &m, &s->arena, &s->table));
    sum_up(s);
    return ERR_OK;
}

static double corrected_ns(const PreparedModel *s, const double *ns, uint32_t k) {
    double one = s->solo_ns[0], gain = ns[0] - ns[k];
    if (gain < LEAST_GAIN * ns[0]) return one * (1 + LEAST_GAIN) + fmax(-gain, 0);
    return fmax(one - gain, one / s->table.counts[k]);
}

void prepared_model_correct(PreparedModel *s, const double *ns) {
    double factors[NODE_COUNTS] = {1}, last = 1;
    for (uint32_t k = 1; k < s->table.n_counts; k++) {
        if (ns[0] > 0 && ns[k] > 0 && s->solo_ns[k] > 0)
            last = corrected_ns(s, ns, k) / s->solo_ns[k];
        factors[k] = last;
    }
    model_scale(&s->table, factors);
    sum_up(s);
}

uint32_t prepared_model_cores(const PreparedModel *s) {
    uint32_t best = 0;
    for (uint32_t k = 1; k < s->table.n_counts; k++)
        if (s->solo_ns[k] < s->solo_ns[best]) best = k;
    return s->table.counts[best];
}

// A measuring run has buffers of its own.
static Err measure_within(PreparedModel *s, Host *h, const PrepareOptions *o, TimeNs **light) {
    size_t bytes = o->like == NULL ? s->program.arena_bytes : 0;
    if (!budget_take(o->budget, bytes))
        return err_set(ERR_LIMIT, "no memory to measure it: %zu bytes (`%s`)", bytes,
                       o->budget->setting);
    Err e = measure(s, h, o, light);
    budget_give(o->budget, bytes);
    return e;
}

static Err make(PreparedModel *s, Host *h, const PrepareOptions *o) {
    TimeNs *light = NULL;
    TRY(make_inputs(s, o));
    TRY(compile(s, h, o));
    TRY(check_steps(s, h, o->most_ns));
    TRY(measure_within(s, h, o, &light));
    TRY(tabulate(s, o->name != NULL ? o->name : s->source->model.name, h, light));
    arena_trim(&s->arena);
    s->memory_bytes = s->program.weight_bytes + arena_in_use(&s->arena);
    return ERR_OK;
}

// Loops that are told to stop leave their results unfinished. The flag is never cleared again, so
// that one look at the end finds that.
static Err make_stoppable(PreparedModel *s, Host *h, const PrepareOptions *o) {
    WorkFlag *before = work_stop_watch(o->stop);
    Err       e = make(s, h, o);
    if (e == ERR_OK && work_stopped()) e = err_set(ERR_LIMIT, "stopped while it was compiled");
    (void)work_stop_watch(before);
    return e;
}

Err prepared_model_make(PreparedModel *s, const Source *source, Host *h, const PrepareOptions *o) {
    *s = (PreparedModel){.source = source};
    TRY(arena_init_growing(&s->arena, ARENA_FIRST, ARENA_MOST));
    Err e = arena_charge(&s->arena, o->budget) ? make_stoppable(s, h, o)
                                               : err_set(ERR_LIMIT, "no memory");
    if (e != ERR_OK) prepared_model_finish(s);
    return e;
}

Err prepared_model_load(PreparedModel *s, const char *what, Host *h, const PrepareOptions *o) {
    PrepareOptions named = *o;
    if (named.name == NULL) named.name = what;
    *s = (PreparedModel){.source = &s->own};
    TRY(source_read(&s->own, what, &(SourceOptions){.max_bytes = o->max_bytes}));
    Err e = arena_init_growing(&s->arena, ARENA_FIRST, ARENA_MOST);
    if (e == ERR_OK) e = make_stoppable(s, h, &named);
    if (e == ERR_OK) return e;
    e = err_add(e, "%s", what);
    prepared_model_finish(s);
    return e;
}

void prepared_model_finish(PreparedModel *s) {
    program_finish(&s->program);
    source_finish(&s->own);
    arena_finish(&s->arena);
    *s = (PreparedModel){0};
}

LiveTenant prepared_model_tenant(const PreparedModel *s, const char *name, TimeNs qos_ns,
                                 double priority) {
    return (LiveTenant){
        .tenant = {.model = &s->table, .name = name, .qos_ns = qos_ns, .priority = priority},
        .program = &s->program,
        .inputs = s->has_values ? s->inputs : NULL};
}
