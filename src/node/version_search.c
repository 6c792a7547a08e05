// Samples are taken on one core, whatever the core counts of the host: versions for more cores are
// told apart by their tasks, and prepared models are measured again with the versions kept. So the
// store can tell these profiles from those of a search on all cores, which replaces them.
#include "node/version_search.h"

#include "base/clock.h"
#include "base/sync.h"
#include "compile/interp/interp.h"
#include "compile/tune/stopwatch.h"

enum { ARENA_FIRST = 1 << 20 };  // bytes of address space
enum { QUIET_LOOKS = 3 };        // in a row at which a core is idle

#define LOOK_NS      INT64_C(1000000)
#define STRETCH_NS   INT64_C(4000000)    // CPU time of samples before a rest of the same length
#define REST_MOST_NS INT64_C(100000000)  // so that it heeds `stop` soon
#define WAIT_LEAST_S 60                  // for idle cores, and WAIT_TIMES as long as the search
#define WAIT_TIMES   30

static const size_t ARENA_MOST = (size_t)1 << 34;

typedef struct SearchPace {
    const VersionSearch *search;
    TimeNs               rested_at;  // CPU time of this thread
    TimeNs               until;      // when waiting for idle cores ends the search
} SearchPace;

static bool is_stopped(const VersionSearch *s) { return atomic_load(s->stop) == WORK_STOP; }

static bool has_idle_core(const VersionSearch *s) {
    return s->engine == NULL || node_live_idle(s->engine) > 0;
}

// A core that is idle for some looks is likely to be so for one sample.
static bool wait_until_quiet(const SearchPace *p) {
    const VersionSearch *s = p->search;
    for (uint32_t quiet = 0; quiet < QUIET_LOOKS;) {
        if (is_stopped(s) || clock_monotonic_ns() > p->until) return false;
        quiet = has_idle_core(s) ? quiet + 1 : 0;
        if (quiet < QUIET_LOOKS) futex_wait_for(s->stop, WORK_GO, LOOK_NS);
    }
    return true;
}

// Rests between samples, not by a timer: a sample that is interrupted counts as disturbed.
static bool wait_for_idle_core(void *self) {
    SearchPace *p = self;
    TimeNs      used = stopwatch_cpu_time() - p->rested_at;
    if (used < STRETCH_NS && has_idle_core(p->search)) return !is_stopped(p->search);
    if (used > REST_MOST_NS) used = REST_MOST_NS;
    if (used >= STRETCH_NS) futex_wait_for(p->search->stop, WORK_GO, used);
    bool quiet = wait_until_quiet(p);
    p->rested_at = stopwatch_cpu_time();
    return quiet;
}

static bool is_disturbed(void *self) { return !has_idle_core(((SearchPace *)self)->search); }

// Profiles begin with the kernel's first choice.
static VersionGain sum_gains(const Program *p) {
    VersionGain g = {0};
    for (uint32_t i = 0; i < p->n_steps; i++) {
        const LayerProfile *f = p->steps[i].profile;
        if (f == NULL || f->n == 0 || f->n_kept == 0) continue;
        g.before_ns += (double)f->candidates[0].time_ns[0];
        g.after_ns += (double)f->candidates[f->kept[0]].time_ns[0];
    }
    return g;
}

static TuneOptions tune_options(const VersionSearch *s, Team *team, ProfileStore *store,
                                const TunePace *pace) {
    return (TuneOptions){.team = team,
                         .n_counts = 1,
                         .counts = {1},
                         .seconds = s->seconds,
                         .l2_bytes = s->host->cpu.l2_bytes,
                         .pressure = &s->host->pressure,
                         .store = store,
                         .stop = s->stop,
                         .pace = pace};
}

static Err compile(const VersionSearch *s, const ShapedGraph *g, Team *team, ProfileStore *store,
                   VersionGain *out) {
    TimeNs         wait_ns = (TimeNs)((WAIT_LEAST_S + WAIT_TIMES * s->seconds) * 1e9);
    SearchPace     state = {s, stopwatch_cpu_time(), clock_monotonic_ns() + wait_ns};
    TunePace       pace = {wait_for_idle_core, is_disturbed, &state};
    TuneOptions    tune = tune_options(s, team, store, &pace);
    ProgramOptions o = {.isa = s->host->isa,
                        .store = store,
                        .tune = &tune,
                        .weights = s->weights,
                        .release_weights = true,
                        .at_least_one_step = true,
                        .limits = {.max_bytes = s->source.max_bytes}};
    Program        p;
    TRY(program_make(&p, g, &o));
    *out = sum_gains(&p);
    program_finish(&p);
    return is_stopped(s) ? err_set(ERR_LIMIT, "the search was stopped") : ERR_OK;
}

static Err search(const VersionSearch *s, const Graph *g, Arena *a, VersionGain *out) {
    ProfileStore store;
    ShapedGraph *shaped = NULL;
    Team        *team = NULL;
    TRY(shaped_graph_make(g, s->shapes, interp_eval, a, &shaped));
    TRY(team_create(&team, 1, NULL));
    profile_store_open(&store, s->host->store.path, &s->host->cpu, s->host->isa);
    Err e = store.db != NULL && !store.read_only
                ? compile(s, shaped, team, &store, out)
                : err_set(ERR_IO, "the profile store '%s' cannot be written", store.path);
    profile_store_close(&store);
    team_destroy(team);
    return e;
}

static Err search_source(const VersionSearch *s, VersionGain *out) {
    Source source;
    Arena  a;
    TRY(source_read(&source, s->what, &s->source));
    Err e = source_same_stamp(&source.stamp, s->stamp)
                ? arena_init_growing(&a, ARENA_FIRST, ARENA_MOST)
                : err_set(ERR_INVALID, "its file has changed since it was loaded");
    if (e == ERR_OK) {
        e = search(s, source.model.graph, &a, out);
        arena_finish(&a);
    }
    source_finish(&source);
    return e;
}

// Long loops of reading and folding look at the flag of their thread.
Err version_search_run(const VersionSearch *s, VersionGain *out) {
    WorkFlag *before = work_stop_watch(s->stop);
    Err       e = search_source(s, out);
    (void)work_stop_watch(before);
    return e;
}
