// Jobs of tenants that run two classes each, one after the other, with profiles off the library by
// sigma 0.4; asked for their speeds at belief_levels after 0, 1 and 2 measurements of their own.
#include <math.h>
#include <stdio.h>

#include "bench/beliefs/beliefs.h"
#include "cluster/information.h"
#include "cluster/profile/profiles.h"
#include "contract/rate.h"
#include "estimator/profile_posterior.h"

enum { SEEDS = 20, JOBS = 60, TENANTS = 6, MEASURED = 3, KEPT = 40000 };
enum { OWN, SHARED, BY_HAND };
static const double noise = 0.03;

typedef struct World {
    const ClusterProfiles *library;
    HypothesisTable        table;
    ClusterProfiles        profiles, truth;
    ClusterServer          server;
    uint32_t               types[1];
    ClusterSetup           believed, real;
    ProfilePosterior       hand[BY_HAND];
    BeliefContext         *contexts;
    float (*speeds)[BELIEF_LEVELS];              // logarithms, by hypothesis
    Errors (*errors)[BELIEFS_MODELS + BY_HAND];  // [MEASURED]
    uint32_t n;                                  // contexts
    bool     named;
} World;

static ClusterJob job_of(uint32_t class) {
    return (ClusterJob){
        .gpus = 1, .gpu_milli = 1000, .cores_milli = 3000, .memory_mib = 64000, .class = class};
}

static ClusterSlice slice_of(double cores, double memory) {
    return (ClusterSlice){.mask = 1,
                          .gpus = 1,
                          .gpu_milli = 1000,
                          .cores_milli = (uint32_t)(3000 * cores),
                          .memory_mib = (uint32_t)(64000 * memory)};
}

static double rate_at(const ClusterSetup *s, uint32_t class, double cores, double memory) {
    ClusterJob   j = job_of(class);
    ClusterSlice at = slice_of(cores, memory);
    return fmax(rate_alone(s, &j, &at, 1), 1e-3);
}

static Err open_world(World *w, const Weights *weights, uint64_t seed, Arena *a) {
    const PosteriorParams params = POSTERIOR_PARAMS;
    Information           info = {.profiles = PROFILES_LIBRARY, .sigma = 0.4};
    TRY(information_hypotheses(w->library, a, &w->profiles, &w->table));
    w->table.profiles = &w->profiles;
    TRY(information_truth(&info, w->library, (Rng){seed}, a, &w->truth));
    w->server = (ClusterServer){"s", 8, 24000, 512000, 0, 0};
    w->types[0] = PROFILE_NONE;
    w->believed = (ClusterSetup){.servers = &w->server,
                                 .profiles = &w->profiles,
                                 .profile_type = w->types,
                                 .n_servers = 1,
                                 .most_gpus = 8};
    w->real = w->believed;
    w->real.profiles = &w->truth;
    for (uint32_t i = 0; i < BY_HAND; i++)
        TRY(profile_posterior_init(&w->hand[i], &w->table, &params, a));
    w->contexts = arena_new(a, BeliefContext, w->n);
    for (uint32_t i = 0; i < w->n; i++)
        TRY(belief_context_init(&w->contexts[i], weights[i].w, JOBS, a));
    w->speeds = arena_alloc(a, w->table.n, sizeof *w->speeds, 16);
    for (uint32_t k = 0; k < w->table.n; k++)
        for (uint32_t l = 0; l < BELIEF_LEVELS; l++)
            w->speeds[k][l] = (float)log(
                rate_at(&w->believed, k, belief_levels[l].cores, belief_levels[l].memory));
    return ERR_OK;
}

typedef struct Said {
    double mean[BELIEF_LEVELS], sd[BELIEF_LEVELS];
} Said;

static Said by_hand(const World *w, uint32_t row, const PosteriorQuery *q) {
    double weights[POSTERIOR_MOST];
    Said   s;
    profile_posterior_weights(&w->hand[row], q, weights);
    for (uint32_t l = 0; l < BELIEF_LEVELS; l++) {
        double mean = 0, square = 0;
        for (uint32_t i = 0; i < w->table.n; i++) {
            double x = (double)w->speeds[i][l];
            mean += weights[i] * x;
            square += weights[i] * x * x;
        }
        s.mean[l] = mean;
        s.sd[l] = sqrt(fmax(square - mean * mean, 0) +
                       w->hand[row].params.misfit * w->hand[row].params.misfit);
    }
    return s;
}

static void add(World *w, uint32_t k, uint32_t row, const Said *s, uint32_t class) {
    for (uint32_t l = 0; l < BELIEF_LEVELS; l++)
        errors_add(&w->errors[k][row], s->mean[l], s->sd[l],
                   log(rate_at(&w->real, class, belief_levels[l].cores, belief_levels[l].memory)));
}

static void ask(World *w, uint32_t job, uint32_t k, uint32_t class,
                const PosteriorQuery q[BY_HAND]) {
    Said hand = {{0}, {0}};
    for (uint32_t i = 0; i < BY_HAND; i++) {
        hand = by_hand(w, i, &q[i]);
        add(w, k, i, &hand, class);
    }
    for (uint32_t i = 0; i < w->n; i++) {
        BeliefOutput x;
        Said         s;
        belief_context_ask(&w->contexts[i], job, w->named ? w->speeds[class] : NULL, &x);
        for (uint32_t l = 0; l < BELIEF_LEVELS; l++) {
            s.mean[l] = (double)x.speed[l];
            s.sd[l] = sqrt(2) * (double)x.scale[l];
        }
        add(w, k, BY_HAND + 2 * i, &s, class);
        for (uint32_t l = 0; l < BELIEF_LEVELS; l++) {
            s.mean[l] = (s.mean[l] + hand.mean[l]) / 2;
            s.sd[l] = (s.sd[l] + hand.sd[l]) / 2;
        }
        add(w, k, BY_HAND + 2 * i + 1, &s, class);
    }
}

static void measure(World *w, uint32_t job, uint32_t class, const PosteriorQuery q[BY_HAND],
                    PosteriorRecord own[BY_HAND], Rng *r) {
    static const double cores[] = {0.34, 0.67, 1.33, 2, 3}, memory[] = {0.5, 1, 1, 2};
    double              c = cores[rng_below(r, 5)], m = memory[rng_below(r, 4)];
    ClusterSlice        at = slice_of(c, m);
    ClusterJob          j = job_of(class);
    RateMeasurement     x = {&w->believed, &j, &at, 1, NULL, 0, 0};
    x.rate = rate_at(&w->real, class, c, m) * exp(noise * rng_normal(r));
    for (uint32_t i = 0; i < BY_HAND; i++)
        (void)profile_posterior_measured(&w->hand[i], &q[i], &x, &own[i]);
    BeliefRecord record = {(float)c, (float)m, 0, (float)x.rate};
    for (uint32_t i = 0; i < w->n; i++) {
        belief_context_record(&w->contexts[i], job, &record);
        belief_context_work(&w->contexts[i], job, 600);
    }
}

static void run_job(World *w, uint32_t job, Rng *r) {
    uint32_t tenant = (uint32_t)rng_below(r, TENANTS);
    uint32_t class = (tenant * 5 + (uint32_t)rng_below(r, 2) * 3) % w->library->n;
    uint32_t        name = w->named ? class + 1 : 0, known = w->named ? class : PROFILE_NONE;
    PosteriorRecord own[BY_HAND] = {{.n = 0}, {.n = 0}};
    JobTraits       t = {tenant + 1, name, 1};
    PosteriorQuery  q[BY_HAND] = {{{0, 0, 1}, known, &own[OWN]}, {t, known, &own[SHARED]}};
    for (uint32_t i = 0; i < w->n; i++)
        belief_context_arrive(&w->contexts[i], job, &t, 600.0 * job);
    for (uint32_t k = 0; k < MEASURED; k++) {
        ask(w, job, k, class, q);
        measure(w, job, class, q, own, r);
    }
    profile_posterior_ended(&w->hand[SHARED], &q[SHARED]);
    for (uint32_t i = 0; i < w->n; i++) belief_context_end(&w->contexts[i], job, 1200);
}

static void print_row(const World *w, uint32_t row, const char *name, Arena *a) {
    printf("%-34s", name);
    for (uint32_t k = 0; k < MEASURED; k++) {
        ErrorSummary s = errors_summary(&w->errors[k][row], a);
        printf("  %4.2f/%4.2f", s.rmse, s.cover);
    }
    printf("\n");
}

Err speeds_table(const Weights *weights, uint32_t n, bool named, Arena *a) {
    static const char *const hand[] = {"by hand, own measurements", "by hand, shared"};
    ClusterProfiles          library;
    World                    w = {.library = &library, .n = n, .named = named};
    TRY(profile_load(NULL, a, &library));
    w.errors = arena_alloc(a, MEASURED, sizeof *w.errors, 16);
    for (uint32_t k = 0; k < MEASURED; k++)
        for (uint32_t i = 0; i < BY_HAND + 2 * n; i++) errors_open(&w.errors[k][i], KEPT, a);
    for (uint64_t seed = 301; seed < 301 + SEEDS; seed++) {
        Rng    r = {seed};
        size_t mark = a->used;
        TRY(open_world(&w, weights, seed, a));
        for (uint32_t job = 0; job < JOBS; job++) run_job(&w, job, &r);
        arena_rewind(a, mark);
    }
    printf("speeds, classes %s: RMSE of log / coverage of 90 %%, after 0, 1, 2 own measurements\n",
           named ? "named" : "without names");
    for (uint32_t i = 0; i < BY_HAND; i++) print_row(&w, i, hand[i], a);
    for (uint32_t i = 0; i < n; i++) {
        print_row(&w, BY_HAND + 2 * i, arena_printf(a, "attention, %s", weights[i].name), a);
        print_row(&w, BY_HAND + 2 * i + 1, arena_printf(a, "both, %s", weights[i].name), a);
    }
    return ERR_OK;
}
