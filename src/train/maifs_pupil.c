#include "train/maifs_pupil.h"

#include "policy/cluster/maifs/maifs.h"
#include "policy/policies.h"
#include "train/maifs_episode.h"

enum { BATCH = 32, KEEP = 120, MORE = 3 };  // MORE: updates of those who imitate
static const float EPSILON = 0.1f;

typedef struct MaifsPupil {
    Pupil         pupil;
    MaifsQ       *q;
    MaifsSettings settings;
} MaifsPupil;

typedef struct Lesson {
    MaifsPupil        *of;
    const PupilLesson *l;
    bool               imitate;
    MaifsEpisode      *episodes;
    Arena             *arenas;  // [episode] that keep what was seen
} Lesson;

static Err play(void *self, uint32_t i, Arena *a) {
    (void)a;
    Lesson             *x = self;
    uint64_t            n = (uint64_t)x->l->generation * x->l->episodes + i;
    ClusterCourseRun    at = cluster_course_draw(x->l->course, x->l->seed, n);
    MaifsEpisodeOptions o = {
        .settings = &x->of->settings, .w = x->of->pupil.w.at, .epsilon = EPSILON, .keep = KEEP};
    if (x->imitate) {
        o.teacher = &x->of->settings;
        o.epsilon = 0;
    }
    return maifs_episode_run(&at, &o, &x->arenas[i], &x->episodes[i]);
}

static Err gather(Lesson *x, Arena *scratch) {
    uint32_t n = x->l->episodes;
    x->episodes = arena_new(scratch, MaifsEpisode, n);
    x->arenas = arena_new(scratch, Arena, n);
    for (uint32_t i = 0; i < n; i++) TRY(arena_init(&x->arenas[i], (size_t)1 << 31));
    return runs_each(x->l->runs, n, play, x);
}

static double imitate_all(const Lesson *x, Arena *scratch) {
    uint32_t     n = 0, at = 0;
    MaifsQLesson batch[BATCH];
    Rng          rng = rng_fork((Rng){x->l->seed ^ 0x1e5}, x->l->generation);
    uint32_t     updates = MORE * x->l->updates;
    double       loss = 0;
    for (uint32_t i = 0; i < x->l->episodes; i++) n += x->episodes[i].n_lessons;
    MaifsQLesson *all = arena_new(scratch, MaifsQLesson, n + 1);
    for (uint32_t i = 0; i < x->l->episodes; i++)
        for (uint32_t k = 0; k < x->episodes[i].n_lessons; k++)
            all[at++] = x->episodes[i].lessons[k];
    maifs_q_options(x->of->q)->rate = 1e-3f;
    for (uint32_t u = 0; n > 0 && u < updates; u++) {
        for (uint32_t i = 0; i < BATCH; i++) batch[i] = all[rng_below(&rng, n)];
        loss += maifs_q_imitate(x->of->q, runs_team(x->l->runs), batch, BATCH) / updates;
    }
    return loss;
}

// All that the generation saw, and nothing from before: a training may stop between any two.
static Replay *fill(const Lesson *x, Arena *scratch) {
    size_t   floats = 0;
    uint32_t n = 0;
    for (uint32_t i = 0; i < x->l->episodes; i++) {
        n += x->episodes[i].n_steps;
        for (uint32_t k = 0; k < x->episodes[i].n_steps; k++)
            floats += maifs_step_size(&x->episodes[i].steps[k]);
    }
    Replay *replay =
        replay_create(scratch, (ReplayOptions){.records = n + 1, .floats = floats + 1});
    for (uint32_t i = 0; i < x->l->episodes; i++)
        for (uint32_t k = 0; k < x->episodes[i].n_steps; k++) {
            const MaifsQStep *s = &x->episodes[i].steps[k];
            maifs_step_write(s, replay_add(replay, (uint32_t)maifs_step_size(s)));
        }
    return replay;
}

static double learn_all(const Lesson *x, Arena *scratch) {
    Replay    *replay = fill(x, scratch);
    MaifsQStep batch[BATCH];
    ReplayPick picks[BATCH];
    Rng        rng = rng_fork((Rng){x->l->seed ^ 0x9a7}, x->l->generation);
    double     loss = 0;
    maifs_q_options(x->of->q)->rate = 2e-4f;
    for (uint32_t u = 0; replay_count(replay) > 0 && u < x->l->updates; u++) {
        replay_draw(replay, &rng, BATCH, picks);
        for (uint32_t i = 0; i < BATCH; i++) batch[i] = maifs_step_read(picks[i].record);
        loss += maifs_q_train(x->of->q, runs_team(x->l->runs), batch, BATCH) / x->l->updates;
    }
    return loss;
}

static Err study(Pupil *p, const PupilLesson *l, Arena *scratch, bool imitate, double *loss) {
    Lesson x = {.of = p->self, .l = l, .imitate = imitate};
    Err    e = gather(&x, scratch);
    if (e == ERR_OK) *loss = imitate ? imitate_all(&x, scratch) : learn_all(&x, scratch);
    for (uint32_t i = 0; i < l->episodes; i++) arena_finish(&x.arenas[i]);
    return e;
}

static Err imitate_rule(Pupil *p, const PupilLesson *l, Arena *scratch, double *loss) {
    return study(p, l, scratch, true, loss);
}

static Err learn_values(Pupil *p, const PupilLesson *l, Arena *scratch, double *loss) {
    return study(p, l, scratch, false, loss);
}

static const void *loaded(const Pupil *p, const float *w, Arena *a) {
    (void)p;
    MaifsLoaded *l = arena_new(a, MaifsLoaded, 1);
    *l = (MaifsLoaded){.w = w};
    return l;
}

static void moved(Pupil *p) {
    MaifsPupil *m = p->self;
    maifs_q_moved(m->q);
}

Err maifs_pupil_open(const MaifsSettings *settings, uint32_t servers, uint64_t seed, Arena *a,
                     Pupil **out) {
    MaifsPupil       *m = arena_new(a, MaifsPupil, 1);
    MaifsQOptions     o = maifs_q_usual(maifs_net_of(settings));
    MaifsOutputLayers at = maifs_net_output_layers(&o.net);
    o.servers = servers;
    m->settings = *settings;
    m->q = maifs_q_create(a, o, rng_fork((Rng){seed}, 3).s);
    FloatVec w = maifs_q_net(m->q);
    FloatVec head = float_vec_part(w, at.value, at.end - at.value);
    float   *scale = arena_new(a, float, head.n);
    for (size_t i = 0; i < head.n; i++) scale[i] = i < at.straight - at.value ? 1 : 4;
    m->pupil = (Pupil){.policy = &cluster_policy_maifs,
                       .settings = &m->settings,
                       .w = w,
                       .head = head,
                       .scale = scale,
                       .state = maifs_q_state(m->q),
                       .facts = maifs_weights_facts(a),
                       .loaded = loaded,
                       .imitate = imitate_rule,
                       .learn = learn_values,
                       .moved = moved,
                       .self = m};
    *out = &m->pupil;
    return ERR_OK;
}
