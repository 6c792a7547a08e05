// Users submit bursts of similar jobs: one tenant, model, gang size and kind of duration, with
// correlated durations. Bursts arrive as a Poisson process modulated by day and week. All jobs are
// drawn first, so that their total work is known; then burst times, at the rate that yields the
// load. Durations are a mixture of three log-normal distributions: short jobs, typical jobs, and a
// tail that grows with the gang.
#include "cluster/trace/synth.h"

#include <math.h>
#include <string.h>

#include "base/decimal.h"
#include "base/file.h"
#include "cluster/trace/weighted_choice.h"

enum { FILE_MOST = 1 << 16, DAY = 86400, TAIL_GPUS = 8, CORES_ALONE = 12, GB_ALONE = 48 };

static const Setting rows[] = {
#define X(...) SETTING_ROW(SynthSettings, __VA_ARGS__)
#include "cluster/trace/synth.def"
#undef X
};

static const struct ModelDemand {
    const char *name;
    double      cores, gb;
} model_demands[] = {
#define X(name, cores, gb) {name, cores, gb},
#include "cluster/trace/synth_model.def"
#undef X
};
enum { MODEL_DEMANDS = sizeof model_demands / sizeof *model_demands };

Settings synth_settings(SynthSettings *s, Arena *a) {
    return (Settings){rows, sizeof rows / sizeof *rows, s, a};
}

Err synth_load(const char *what, Arena *a, SynthSettings *out) {
    Settings s = synth_settings(out, a);
    settings_default(&s);
    if (what == NULL) return ERR_OK;
    for (const SynthFile *f = synth_files; f->name != NULL; f++)
        if (strcmp(f->name, what) == 0)
            return settings_parse(&s, f->name, f->text, strlen(f->text));
    return settings_load(&s, what);
}

typedef struct Maker {
    const SynthSettings *s;
    WeightedChoice       sizes, parts, types, models, tenants;
    uint32_t             size[WEIGHTED_CHOICE_MAX], part[WEIGHTED_CHOICE_MAX],
        model_demand[WEIGHTED_CHOICE_MAX];
    Rng         shapes, times, times_start;
    double      tenant_sum;
    uint32_t    type_mask[WEIGHTED_CHOICE_MAX];
    const char *type[JOB_TYPES];
    uint32_t    n_types;
    JobList    *list;
    uint32_t   *burst_of;  // [job]
    double      gpu_seconds;
} Maker;

typedef struct Burst {
    Job      like;
    double   median_s, sigma, score;
    uint32_t jobs;
} Burst;

static Err read_numbers(const char *what, const WeightedChoice *w, int64_t most, uint32_t *out) {
    for (uint32_t i = 0; i < w->n; i++) {
        int64_t      v = 0;
        DecimalError f = decimal_read(w->word[i], 1, most, &v);
        if (f != DECIMAL_OK || v == 0)
            return err_set(ERR_CONFIG, "%s: '%.40s' is no number from 1 to %lld", what, w->word[i],
                           (long long)most);
        out[i] = (uint32_t)v;
    }
    return ERR_OK;
}

static Err read_models(Maker *m) {
    for (uint32_t i = 0; i < m->models.n; i++) {
        uint32_t k = 0;
        while (k < MODEL_DEMANDS && strcmp(model_demands[k].name, m->models.word[i]) != 0) k++;
        if (k == MODEL_DEMANDS)
            return err_set(ERR_CONFIG,
                           "models: there is no class '%.40s'; give some of alexnet, "
                           "bert, deepspeech, gnmt, lstm, m5, mobilenet, res18, res50, "
                           "shufflenet, transformer, vae",
                           m->models.word[i]);
        m->model_demand[i] = k;
    }
    return ERR_OK;
}

static Err add_type(Maker *m, const char *name, uint32_t *mask) {
    uint32_t t = 0;
    while (t < m->n_types && strcmp(m->type[t], name) != 0) t++;
    if (t == JOB_TYPES) return err_set(ERR_CONFIG, "gpu_types: more than %d", JOB_TYPES);
    if (t == m->n_types) m->type[m->n_types++] = name;
    *mask |= 1u << t;
    return ERR_OK;
}

// "V100M16|V100M32": alternatives.
static Err read_types(Maker *m, Arena *a) {
    for (uint32_t i = 0; i < m->types.n; i++) {
        const char *at = m->types.word[i];
        if (strcmp(at, "any") == 0) continue;
        for (size_t n = 0; *at != '\0'; at += n + (at[n] == '|')) {
            n = strcspn(at, "|");
            if (n > 0) TRY(add_type(m, arena_printf(a, "%.*s", (int)n, at), &m->type_mask[i]));
        }
    }
    return ERR_OK;
}

static Err fit_sizes(Maker *m) {
    m->sizes.sum = 0;
    for (uint32_t i = 0; i < m->sizes.n; i++) {
        if (m->size[i] > (uint32_t)m->s->gpus) m->sizes.weight[i] = 0;
        m->sizes.sum += m->sizes.weight[i];
    }
    if (!(m->sizes.sum > 0))
        return err_set(ERR_CONFIG, "sizes: every gang is larger than gpus, %d", m->s->gpus);
    return ERR_OK;
}

static Err prepare(Maker *m, Arena *a) {
    const SynthSettings *s = m->s;
    TRY(weighted_choice_read("sizes", s->sizes, a, &m->sizes));
    TRY(weighted_choice_read("parts", s->parts, a, &m->parts));
    TRY(weighted_choice_read("gpu_types", s->gpu_types, a, &m->types));
    TRY(weighted_choice_read("models", s->models, a, &m->models));
    TRY(read_numbers("sizes", &m->sizes, JOB_GPUS_MAX, m->size));
    TRY(read_numbers("parts", &m->parts, 1000, m->part));
    TRY(read_models(m));
    TRY(read_types(m, a));
    if (s->brief_part + s->usual_part > 1)
        return err_set(ERR_CONFIG, "brief_part and usual_part are more than 1 together");
    for (int k = 1; k <= s->tenants; k++) m->tenant_sum += pow(k, -s->tenant_skew);
    return fit_sizes(m);
}

static uint32_t draw_tenant(Maker *m) {
    double at = rng_unit64(&m->shapes) * m->tenant_sum;
    int    k = 1;
    for (; k < m->s->tenants; k++) {
        double share = pow(k, -m->s->tenant_skew);
        if (at < share) break;
        at -= share;
    }
    return (uint32_t)k - 1;
}

static void draw_kind(Maker *m, Burst *b) {
    const SynthSettings *s = m->s;
    double               at = rng_unit64(&m->shapes);
    uint32_t             gang = b->like.gpus < TAIL_GPUS ? b->like.gpus : TAIL_GPUS;
    if (at < s->brief_part) {
        b->median_s = s->brief_s;
        b->sigma = s->brief_sigma;
    } else if (at < s->brief_part + s->usual_part) {
        b->median_s = s->usual_s;
        b->sigma = s->usual_sigma;
    } else {
        b->median_s = s->tail_s * pow(gang > 0 ? gang : 1, s->tail_growth);
        b->sigma = s->tail_sigma;
    }
}

static double demand_error(Maker *m) { return exp(m->s->asks_sigma * rng_normal(&m->shapes)); }

// Cores in halves and memory in whole GB, as users write them.
static void draw_demand(Maker *m, Burst *b) {
    const struct ModelDemand *want = &model_demands[m->model_demand[b->like.model]];
    bool                      alone = b->like.gpus == 0;
    double                    part = alone ? 1 : (double)b->like.gpus * b->like.gpu_milli / 1000;
    double                    cores = (alone ? CORES_ALONE : want->cores) * part * demand_error(m);
    double                    gb = (alone ? GB_ALONE : want->gb) * part * demand_error(m);
    b->like.cores_milli = (uint32_t)fmax(1, fmin(1e6, round(2 * cores))) * 500;
    b->like.memory_mib = (uint32_t)fmax(1, fmin(1e6, round(gb))) * 1024;
}

static Burst draw_burst(Maker *m) {
    const SynthSettings *s = m->s;
    Burst                b = {.like.gpu_milli = 1000, .jobs = 1};
    double               again = 1 - 1 / s->burst_jobs;
    bool                 alone = rng_unit64(&m->shapes) < s->cpu_only;
    uint32_t             size = weighted_choice_draw(&m->sizes, &m->shapes),
             part = weighted_choice_draw(&m->parts, &m->shapes);
    uint32_t type = weighted_choice_draw(&m->types, &m->shapes);
    b.like.tenant = draw_tenant(m);
    b.like.model = weighted_choice_draw(&m->models, &m->shapes);
    b.like.gpus = alone ? 0 : m->size[size];
    if (b.like.gpus == 1) b.like.gpu_milli = m->part[part];
    if (alone) b.like.gpu_milli = 0;
    if (!alone) b.like.gpu_types = m->type_mask[type];
    draw_kind(m, &b);
    b.score = rng_normal(&m->shapes);
    if (rng_unit64(&m->shapes) < s->asks || alone) draw_demand(m, &b);
    while (rng_unit64(&m->shapes) < again) b.jobs++;
    return b;
}

static TimeNs draw_work(Maker *m, const Burst *b) {
    double alike = m->s->burst_alike;
    double score = sqrt(alike) * b->score + sqrt(1 - alike) * rng_normal(&m->shapes);
    double seconds = round(b->median_s * exp(b->sigma * score));
    return (TimeNs)fmax(1, fmin(seconds, m->s->most_s)) * JOB_SECOND;
}

// Jobs of a burst are adjacent.
static void draw_jobs(Maker *m) {
    JobList *l = m->list;
    uint32_t n = (uint32_t)m->s->jobs;
    for (uint32_t burst = 0; l->n < n; burst++) {
        Burst b = draw_burst(m);
        for (uint32_t i = 0; i < b.jobs && l->n < n; i++) {
            Job *j = &l->at[l->n++];
            *j = b.like;
            j->work = draw_work(m, &b);
            j->row = l->n - 1;
            m->burst_of[j->row] = burst;
            m->gpu_seconds += job_gpu_seconds(j);
        }
    }
}

// Arrival rate at a time relative to the weekly mean.
static double arrival_factor(const SynthSettings *s, double t) {
    double hours = t / 3600 - floor(t / DAY) * 24;
    int    day = (int)(fmod(floor(t / DAY), 7));
    double weekday = 7 / (5 + 2 * s->weekend);
    double swing = 1 + s->day_swing * cos(2 * 3.14159265358979323846 * (hours - s->day_peak) / 24);
    return swing * weekday * (day >= 5 ? s->weekend : 1);
}

static double next_burst(Maker *m, double t, double rate) {
    double most = (1 + m->s->day_swing) * 7 / (5 + 2 * m->s->weekend);
    do t += rng_exp(&m->times) / (rate * most);
    while (rng_unit64(&m->times) * most > arrival_factor(m->s, t));
    return t;
}

// Draws all submission times; returns the seconds from first to last.
static double draw_times(Maker *m, double rate) {
    double start = 0, t = 0, first = 0, last = 0;
    m->times = m->times_start;
    for (uint32_t i = 0; i < m->list->n && t < 3e9; i++) {
        if (i == 0 || m->burst_of[i] != m->burst_of[i - 1])
            t = start = next_burst(m, start, rate);
        else
            t += m->s->burst_gap_s * rng_exp(&m->times);
        m->list->at[i].submit = (TimeNs)round(t) * JOB_SECOND;
        if (i == 0) first = t;
        last = fmax(last, t);
    }
    return last - first;
}

// A short trace covers only part of a day, so the rate is searched for: the same draws again,
// faster or slower.
static Err spread(Maker *m) {
    const SynthSettings *s = m->s;
    double               jobs = (double)m->list->n, bursts = 1 + m->burst_of[m->list->n - 1];
    double               wanted = jobs * 3600 / s->jobs_hour;
    if (s->load > 0 && m->gpu_seconds > 0) wanted = m->gpu_seconds / (s->load * s->gpus);
    if (wanted > 3e9) return err_set(ERR_CONFIG, "load is so low that the trace spans a century");
    double rate = bursts / wanted;
    for (int i = 0; i < 20; i++) {
        double span = draw_times(m, rate);
        if (span > 0.99 * wanted && span < 1.01 * wanted) break;
        rate *= fmin(4, fmax(0.25, span / wanted));
    }
    return ERR_OK;
}

static Err name_jobs(JobList *l, Arena *a) {
    for (uint32_t i = 0; i < l->n; i++) {
        char *id = arena_try(a, 12, 1, 1);
        if (id == NULL) return err_set(ERR_LIMIT, "no memory for %u jobs", l->n);
        (void)snprintf(id, 12, "%u", i);
        l->at[i].id = id;
        l->at[i].row = i;
    }
    return ERR_OK;
}

static void take_names(const Maker *m, Arena *a, JobList *l) {
    l->n_models = m->models.n;
    l->n_gpu_types = m->n_types;
    l->n_tenants = (uint32_t)m->s->tenants;
    l->models = arena_new(a, const char *, l->n_models);
    l->gpu_types = arena_new(a, const char *, l->n_gpu_types);
    l->tenants = arena_new(a, const char *, l->n_tenants);
    for (uint32_t i = 0; i < l->n_models; i++) l->models[i] = m->models.word[i];
    for (uint32_t i = 0; i < l->n_gpu_types; i++) l->gpu_types[i] = m->type[i];
    for (uint32_t i = 0; i < l->n_tenants; i++) l->tenants[i] = arena_printf(a, "t%u", i);
}

Err synth_make(const SynthSettings *s, Rng rng, Arena *a, JobList *out) {
    JobList l = {.name = "synth", .format = "synth"};
    Maker  *m = arena_try_new(a, Maker, 1);
    l.at = arena_try_new(a, Job, (size_t)s->jobs);
    if (m == NULL || l.at == NULL)
        return err_set(ERR_LIMIT, "no memory for %lld jobs", (long long)s->jobs);
    *m = (Maker){.s = s, .list = &l, .shapes = rng_fork(rng, 1), .times_start = rng_fork(rng, 2)};
    TRY(prepare(m, a));
    m->burst_of = arena_try_new(a, uint32_t, (size_t)s->jobs);
    if (m->burst_of == NULL)
        return err_set(ERR_LIMIT, "no memory for %lld jobs", (long long)s->jobs);
    draw_jobs(m);
    TRY(spread(m));
    TRY(job_list_sort(&l, a));
    TRY(name_jobs(&l, a));
    take_names(m, a, &l);
    *out = l;
    return ERR_OK;
}
