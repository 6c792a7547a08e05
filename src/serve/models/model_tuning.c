// ModelTuning: faster kernel versions for models in service.
//
// A model is ready at once, with the versions that the profile store has, else with the kernels'
// first choices. Once nothing is left to load, the models of which the store does not know all
// layers are searched one after another (node/version_search.h). If that found faster versions, the
// model is loaded again beside the one in service, takes the versions from the store, and replaces
// it as a newer file would: requests that have begun end on the old one.
#include <string.h>

#include "base/clock.h"
#include "serve/models/registry_int.h"

enum { COPIES_BYTES = 1 << 20, COPIES_SHIFT = 30 };

static const double LEAST_GAIN = 0.02;    // below it the versions in service stay
static const double MEMORY_FACTOR = 1.5;  // of the model's memory: weights, packed and unpacked

double model_tuning_seconds(const ModelVersion *mv, TuneWhen when) {
    const ServeSettings *set = &mv->from->serve;
    return config_word("tune", set->tune) == (uint32_t)when ? set->tune_s : 0;
}

static void report(const ModelVersion *mv, const ModelTuned *t) {
    const ModelRegistry *r = mv->registry;
    if (r->o.tuned != NULL) r->o.tuned(r->o.self, &mv->info, t);
}

static double run_ms(const ModelVersion *mv) { return mv->shapes[0].prepared.solo_ns[0] / 1e6; }

static double seconds_since(TimeNs t) { return (double)(clock_monotonic_ns() - t) / 1e9; }

void model_tuning_report_kept(const ModelVersion *mv, TimeNs began, const char *why, bool failed) {
    report(mv, &(ModelTuned){.before_ms = run_ms(mv),
                             .after_ms = run_ms(mv),
                             .seconds = seconds_since(began),
                             .kept = why,
                             .failed = failed});
}

void model_tuning_report(const ModelVersion *mv) {
    report(mv, &(ModelTuned){.before_ms = mv->untuned_ns / 1e6,
                             .after_ms = run_ms(mv),
                             .seconds = seconds_since(mv->search_began)});
}

static bool is_due(const ModelVersion *mv) {
    return mv->info.state == MODEL_READY && !mv->searched && mv->replacement == NULL &&
           mv->n_shapes > 0 && mv->shapes[0].state == COMPILED_SHAPE_READY &&
           mv->shapes[0].prepared.has_values && mv->shapes[0].prepared.program.untuned > 0 &&
           model_tuning_seconds(mv, TUNE_BACKGROUND) > 0;
}

static char *copy_text(Arena *a, const char *text) {
    size_t n = text != NULL ? strlen(text) + 1 : 0;
    char  *own = text != NULL ? arena_try_new(a, char, n) : NULL;
    if (own != NULL) memcpy(own, text, n);
    return own;
}

// The configuration, the version and its shapes may be freed while the search runs.
static Err copy_search(ModelTuning *t, const ModelVersion *mv) {
    const ConfigModel *m = mv->info.config;
    Arena             *a = &t->memory;
    uint32_t           n = mv->signature.n_inputs;
    TRY(arena_init_growing(a, COPIES_BYTES, (size_t)1 << COPIES_SHIFT));
    Tensor *shapes = arena_try_new(a, Tensor, n > 0 ? n : 1);
    char   *path = copy_text(a, m->path), *root = copy_text(a, m->root);
    if (shapes == NULL || path == NULL || (m->root != NULL && root == NULL))
        return err_set(ERR_LIMIT, "out of memory for a search");
    for (uint32_t i = 0; i < n; i++) shapes[i] = mv->shapes[0].shapes[i];
    t->stamp = mv->stamp;
    t->search = (VersionSearch){.what = path,
                                .source = {.name = mv->info.name, .root = root},
                                .stamp = &t->stamp,
                                .shapes = shapes,
                                .weights = mv->shapes[0].prepared.program.weights,
                                .host = mv->registry->o.host,
                                .engine = mv->registry->o.engine,
                                .seconds = model_tuning_seconds(mv, TUNE_BACKGROUND),
                                .stop = &t->stop};
    return ERR_OK;
}

// The search has the weights a second time.
static Err check_memory(ModelTuning *t, const ModelVersion *mv) {
    uint64_t room = model_version_memory_beside(mv);
    double   need = MEMORY_FACTOR * (double)mv->info.memory_bytes;
    t->search.source.max_bytes = room;
    if (need <= (double)room) return ERR_OK;
    return err_set(ERR_LIMIT, "a search needs %.0f MiB of memory, %.0f MiB are left",
                   need / (1 << 20), (double)room / (1 << 20));
}

static Err search(void *self) {
    ModelTuning *t = &((ModelRegistry *)self)->tuning;
    return version_search_run(&t->search, &t->gain);
}

// Why the versions in service stay; NULL: faster ones were found.
static const char *reason_to_keep(const ModelTuning *t, Err e, const char *why) {
    bool faster = t->gain.after_ns < (1 - LEAST_GAIN) * t->gain.before_ns;
    return e != ERR_OK ? why : faster ? NULL : "no faster versions were found";
}

static void searched(void *self, Err e, const char *why) {
    ModelRegistry *r = self;
    ModelTuning   *t = &r->tuning;
    ModelVersion  *mv = t->of;
    const char    *keep = reason_to_keep(t, e, why);
    t->busy = false;
    t->of = NULL;
    arena_finish(&t->memory);
    if (mv != NULL) mv->info.tuning = false;
    if (mv != NULL && keep == NULL && model_version_load_tuned(mv, t->began) != ERR_OK) {
        e = ERR_LIMIT;
        keep = err_why();
    }
    if (mv != NULL && keep != NULL) model_tuning_report_kept(mv, t->began, keep, e != ERR_OK);
    model_tuning_next(r);
}

static Err start(ModelTuning *t, ModelVersion *mv) {
    Err e = t->tuner != NULL ? ERR_OK : loader_create(&t->tuner, mv->registry->o.loop);
    if (e == ERR_OK) e = copy_search(t, mv);
    if (e == ERR_OK) e = check_memory(t, mv);
    if (e != ERR_OK) {
        arena_finish(&t->memory);
        return e;
    }
    atomic_store(&t->stop, WORK_GO);
    t->of = mv;
    t->busy = true;
    t->gain = (VersionGain){0};
    t->began = clock_monotonic_ns();
    t->job = (LoaderJob){.work = search, .done = searched, .self = mv->registry, .paced = true};
    mv->info.tuning = true;
    loader_put(t->tuner, &t->job);
    return ERR_OK;
}

// What a search finds reaches the model through the store.
static bool has_store(const ModelRegistry *r) {
    const ProfileStore *s = &r->o.host->store;
    return s->db != NULL && !s->read_only;
}

void model_tuning_next(ModelRegistry *r) {
    ModelTuning *t = &r->tuning;
    if (t->off || r->n_queued > 0 || !has_store(r)) return;
    for (uint32_t i = 0; i < r->n_listed && !t->busy; i++) {
        ModelVersion *mv = r->listed[i];
        if (!is_due(mv)) continue;
        mv->searched = true;
        if (start(t, mv) != ERR_OK)
            model_tuning_report_kept(mv, clock_monotonic_ns(), err_why(), true);
    }
}

static void stop(ModelTuning *t) {
    if (t->of != NULL) t->of->info.tuning = false;
    t->of = NULL;
    work_stop_tell(&t->stop, WORK_STOP);
}

void model_tuning_stop(const ModelVersion *mv) {
    if (mv->registry->tuning.of == mv) stop(&mv->registry->tuning);
}

void registry_stop_tuning(ModelRegistry *r) {
    r->tuning.off = true;
    stop(&r->tuning);
}

void model_tuning_finish(ModelRegistry *r) {
    registry_stop_tuning(r);
    loader_destroy(r->tuning.tuner);
    r->tuning.tuner = NULL;
    arena_finish(&r->tuning.memory);
}
