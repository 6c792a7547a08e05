// How many updates per second does DDPG make? Batches of 64 sequences of 32 items, with BLAS and
// with the fixed-order matrix product, on one and two threads.
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "learn/ddpg.h"

enum { BATCH = 64, ITEMS = 32, FEATURES = 32, ACTIONS = 3, ROUNDS = 30 };

static void fill(Rng *rng, float *x, size_t n) {
    for (size_t i = 0; i < n; i++) x[i] = 2 * rng_unit(rng) - 1;
}

static float *filled(Arena *a, Rng *rng, size_t n) {
    float *x = float_vec_new(a, n).at;
    fill(rng, x, n);
    return x;
}

typedef struct Way {
    const char *name;
    bool        bidirectional, twin, fixed;
    uint32_t    embed, threads, parts;
} Way;

static int measure(Arena *a, const DdpgTransition *steps, Way way) {
    Team       *team = NULL;
    Actor       actor = {{FEATURES, way.embed, 64, way.bidirectional}, ACTIONS};
    Critic      critic = {FEATURES, ACTIONS, way.embed, 64, way.bidirectional};
    DdpgOptions o = ddpg_defaults(actor, critic);
    DdpgReport  report;
    o.twin = way.twin;
    o.reproducible = way.fixed;
    o.shards = way.parts;
    o.items = ITEMS;
    o.actor_every = way.twin ? 2 : 1;
    if (way.threads > 1 && team_create(&team, way.threads, NULL) != ERR_OK) return 1;
    size_t mark = a->used;
    Ddpg  *d = ddpg_create(a, o, 1);
    ddpg_train(d, team, steps, BATCH, &report);
    ddpg_train(d, team, steps, BATCH, &report);
    TimeNs start = clock_now(clock_monotonic());
    for (uint32_t i = 0; i < ROUNDS; i++) ddpg_train(d, team, steps, BATCH, &report);
    double seconds = (double)(clock_now(clock_monotonic()) - start) / 1e9;
    printf("%-6s %-5s %-5s embed %2u, %u threads, %2u parts: %7.1f updates/s  %6.2f ms\n", way.name,
           way.bidirectional ? "both" : "one", way.twin ? "twin" : "plain", way.embed, way.threads,
           way.parts, ROUNDS / seconds, 1e3 * seconds / ROUNDS);
    arena_rewind(a, mark);
    team_destroy(team);
    return 0;
}

int main(void) {
    Arena          a;
    Rng            rng = {1};
    DdpgTransition steps[BATCH];
    if (arena_init(&a, (size_t)1 << 32) != ERR_OK) return 1;
    for (uint32_t i = 0; i < BATCH; i++)
        steps[i] = (DdpgTransition){.x = filled(&a, &rng, ITEMS * FEATURES),
                                    .action = filled(&a, &rng, ITEMS * ACTIONS),
                                    .next_x = filled(&a, &rng, ITEMS * FEATURES),
                                    .n = ITEMS,
                                    .next_n = ITEMS,
                                    .reward = rng_unit(&rng),
                                    .discount = 0.99f,
                                    .weight = 1};
    static const Way ways[] = {
        {"BLAS", false, false, false, 0, 1, 1}, {"BLAS", false, false, false, 0, 1, 4},
        {"fixed", false, false, true, 0, 1, 4}, {"fixed", false, false, true, 0, 2, 4},
        {"BLAS", true, true, false, 64, 1, 1},  {"BLAS", true, true, false, 64, 1, 4},
        {"fixed", true, true, true, 64, 1, 1},  {"fixed", true, true, true, 64, 1, 2},
        {"fixed", true, true, true, 64, 1, 4},  {"fixed", true, true, true, 64, 1, 8},
        {"fixed", true, true, true, 64, 2, 4},  {"fixed", true, true, true, 64, 2, 8},
    };
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++)
        if (measure(&a, steps, ways[i])) return 1;
    arena_finish(&a);
    return 0;
}
