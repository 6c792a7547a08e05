#include "train/belief_world.h"

#include <math.h>
#include <stdlib.h>

enum { CLASSES = 24, TENANTS = 24, KINDS = 4 };

static double uniform(Rng *rng, double lo, double hi) { return lo + (hi - lo) * rng_unit64(rng); }

static double log_uniform(Rng *rng, double lo, double hi) {
    return exp(uniform(rng, log(lo), log(hi)));
}

BeliefProfile belief_profile_draw(Rng *rng) {
    return (BeliefProfile){.cores = log_uniform(rng, 0.1, 5),
                           .storage = log_uniform(rng, 0.01, 4),
                           .resident = uniform(rng, 0.1, 0.6),
                           .data = log_uniform(rng, 0.05, 3),
                           .power = log_uniform(rng, 1, 12),
                           .beside = uniform(rng, 0.4, 0.99)};
}

static double iteration(const BeliefProfile *p, double cores, double memory) {
    double cached = fmin(fmax((memory - p->resident) / p->data, 0), 1);
    double cpu = p->cores / cores, storage = p->storage * (1 - cached) + 1e-9;
    double all = pow(1 + pow(cpu, p->power) + pow(storage, p->power), 1 / p->power);
    return memory < p->resident ? all * p->resident / memory : all;
}

double belief_profile_speed(const BeliefProfile *p, double cores, double memory) {
    return iteration(p, 1, 1) / iteration(p, cores, memory);
}

typedef struct Kind {  // of jobs that a tenant submits
    uint32_t class, gpus;
    double median, sd;  // of log durations
} Kind;

typedef struct WorldPlan {  // the population that jobs are drawn from
    BeliefProfile classes[CLASSES];
    double        told_power[CLASSES];
    Kind          kinds[TENANTS][KINDS];
    double        share[TENANTS], brief[TENANTS];
    uint32_t      n_classes, n_tenants;
    double        alike, burst_jobs, gap_s, between_s;  // of bursts
    double        wait_s, recorded, noise, most_s;
    bool          named;
} WorldPlan;

static void draw_tenants(WorldPlan *p, Rng *rng) {
    static const uint32_t sizes[] = {1, 1, 1, 1, 2, 4, 8, 16};
    double middle = uniform(rng, 5, 9), spread = uniform(rng, 0.3, 1.8), skew = uniform(rng, 0, 2);
    double kinds = uniform(rng, 0.2, 1.6), own = uniform(rng, 0.2, 1.8),
           growth = uniform(rng, 0, 1);
    double brief = uniform(rng, 0, 0.5);
    for (uint32_t t = 0; t < p->n_tenants; t++) {
        double of_tenant = middle + spread * rng_normal(rng);
        p->share[t] = pow(t + 1.0, -skew);
        p->brief[t] = brief * rng_unit64(rng);
        for (uint32_t k = 0; k < KINDS; k++) {
            uint32_t gpus = sizes[rng_below(rng, sizeof sizes / sizeof *sizes)];
            p->kinds[t][k] =
                (Kind){.class = (uint32_t)rng_below(rng, p->n_classes),
                       .gpus = gpus,
                       .median = of_tenant + kinds * rng_normal(rng) + growth * log(gpus),
                       .sd = own * uniform(rng, 0.3, 1.5)};
        }
    }
}

static void draw_plan(WorldPlan *p, Rng *rng) {
    double sigma = 0.4 * rng_unit64(rng) + 0.1;
    *p = (WorldPlan){.n_classes = 2 + (uint32_t)rng_below(rng, CLASSES - 1),
                     .n_tenants = 2 + (uint32_t)rng_below(rng, TENANTS - 1),
                     .alike = uniform(rng, 0.3, 0.98),
                     .burst_jobs = log_uniform(rng, 1.2, 12),
                     .gap_s = log_uniform(rng, 5, 600),
                     .wait_s = log_uniform(rng, 1, 20000),
                     .recorded = rng_unit64(rng),
                     .most_s = rng_below(rng, 2) == 0 ? 86400 : log_uniform(rng, 20000, 5e6),
                     .noise = uniform(rng, 0.01, 0.08),
                     .named = rng_below(rng, 2) == 0};
    for (uint32_t c = 0; c < p->n_classes; c++) {
        p->classes[c] = belief_profile_draw(rng);
        p->told_power[c] = exp(sigma * rng_normal(rng));
    }
    draw_tenants(p, rng);
    // So many jobs at once, if none waits.
    double at_once = log_uniform(rng, 4, 100);
    p->between_s = p->burst_jobs * log_uniform(rng, 500, 20000) / at_once;
}

static void add_record(BeliefWorldJob *j, double noise, Rng *rng) {
    double       cores = rng_below(rng, 4) > 0 ? log_uniform(rng, 0.25, 3.2) : 1;
    double       memory = rng_below(rng, 3) == 0 ? log_uniform(rng, 0.4, 2.5) : 1;
    bool         beside = rng_below(rng, 5) == 0;
    double       harm = beside ? pow(j->profile.beside, exp(0.3 * rng_normal(rng))) : 1;
    double       rate = harm * belief_profile_speed(&j->profile, cores, memory);
    BeliefRecord r = {(float)cores, (float)memory, beside ? 1 : 0,
                      (float)(rate * exp(noise * rng_normal(rng)))};
    j->records[j->n_records++] = r;
}

static void observe_profile(BeliefWorldJob *j, const WorldPlan *p, uint32_t class, Rng *rng) {
    uint32_t n = rng_unit64(rng) < p->recorded ? 1 + (uint32_t)rng_below(rng, BELIEF_RECORDS) : 0;
    j->profile = p->classes[class];
    j->profile.cores *= exp(0.05 * rng_normal(rng));
    j->told_power = p->told_power[class];
    for (uint32_t i = 0; i < n; i++) add_record(j, p->noise, rng);
}

static void place_in_time(BeliefWorldJob *j, const WorldPlan *p, Rng *rng) {
    bool waits = rng_below(rng, 2) == 0;
    j->rate = uniform(rng, 0.7, 1.2);
    j->start_s = j->submit_s + (waits ? p->wait_s * rng_exp(rng) : 0);
}

static uint32_t draw_tenant(const WorldPlan *p, Rng *rng) {
    double sum = 0, at;
    for (uint32_t t = 0; t < p->n_tenants; t++) sum += p->share[t];
    at = sum * rng_unit64(rng);
    for (uint32_t t = 0; t + 1 < p->n_tenants; t++)
        if ((at -= p->share[t]) < 0) return t;
    return p->n_tenants - 1;
}

static void draw_jobs(const WorldPlan *p, BeliefWorld *w, Rng *rng) {
    double now = 0;
    for (uint32_t i = 0; i < w->n;) {
        uint32_t    t = draw_tenant(p, rng), n = 1 + (uint32_t)(p->burst_jobs * rng_exp(rng));
        const Kind *k = &p->kinds[t][rng_below(rng, KINDS)];
        bool        brief = rng_unit64(rng) < p->brief[t];
        double      middle = brief ? 4 + 0.5 * rng_normal(rng)
                                   : k->median + sqrt(p->alike) * k->sd * rng_normal(rng);
        double      sd = brief ? 0.3 : sqrt(1 - p->alike) * k->sd, at = now;
        for (; n > 0 && i < w->n; n--) {
            BeliefWorldJob *j = &w->jobs[i++];
            *j = (BeliefWorldJob){.submit_s = at};
            j->traits = (JobTraits){t + 1, p->named ? k->class + 1 : 0, k->gpus};
            do j->work_s = fmax(exp(middle + sd * rng_normal(rng)), 1);
            while (j->work_s > p->most_s && rng_below(rng, 8) > 0);
            j->work_s = fmin(j->work_s, p->most_s);
            place_in_time(j, p, rng);
            observe_profile(j, p, k->class, rng);
            at += p->gap_s * rng_exp(rng);
        }
        now += p->between_s * rng_exp(rng);
    }
}

// Profiles of jobs with the same model, or of a tenant's gangs of one size, are alike.
static void take_jobs(const WorldPlan *p, const JobList *like, BeliefWorld *w, Rng *rng) {
    uint32_t n = w->n < like->n ? w->n : like->n;
    uint32_t first = (uint32_t)rng_below(rng, (uint64_t)(like->n - n) + 1);
    w->n = 0;
    for (uint32_t i = first; i < first + n; i++) {
        const Job      *from = &like->at[i];
        BeliefWorldJob *j = &w->jobs[w->n];
        bool            named = from->model != JOB_NONE && p->named;
        uint32_t        key = from->model != JOB_NONE ? from->model : from->tenant * 7 + from->gpus;
        if (from->work == JOB_UNKNOWN) continue;
        *j = (BeliefWorldJob){.submit_s = (double)from->submit / 1e9};
        j->traits = (JobTraits){from->tenant == JOB_NONE ? 0 : from->tenant + 1,
                                named ? from->model + 1 : 0, from->gpus};
        j->work_s = fmax((double)from->work / 1e9, 1);
        place_in_time(j, p, rng);
        observe_profile(j, p, key % p->n_classes, rng);
        w->n++;
    }
}

static int by_submission(const void *a, const void *b) {
    double x = ((const BeliefWorldJob *)a)->submit_s, y = ((const BeliefWorldJob *)b)->submit_s;
    return (x > y) - (x < y);
}

BeliefWorld belief_world_draw(Rng rng, const JobList *like, Arena *a) {
    BeliefWorld w = {arena_new(a, BeliefWorldJob, BELIEF_WORLD_JOBS), BELIEF_WORLD_JOBS,
                     rng_below(&rng, 2) == 0};
    WorldPlan   p;
    draw_plan(&p, &rng);
    if (like != NULL)
        take_jobs(&p, like, &w, &rng);
    else
        draw_jobs(&p, &w, &rng);
    qsort(w.jobs, w.n, sizeof *w.jobs, by_submission);
    return w;
}
