// How long does the forward pass of an actor over a queue take? Plain loops, one sequence, one
// core: minimum and median time, and multiply-adds per second.
#include <stdio.h>

#include "base/clock.h"
#include "base/stats.h"
#include "learn/actor_critic.h"
#include "learn/float_vec.h"

enum { ROUNDS = 2000, ITEMS = 64 };

typedef struct Shape {
    uint32_t features, embed, hidden;
    bool     bidirectional;
    uint32_t items;
} Shape;

static bool measure(Arena *arena, Shape s) {
    Actor    actor = {{s.features, s.embed, s.hidden, s.bidirectional}, 3};
    Rng      rng = {1};
    FloatVec w = float_vec_new(arena, actor_params(actor));
    float   *x = float_vec_new(arena, (size_t)s.items * s.features).at;
    float   *out = float_vec_new(arena, (size_t)s.items * 3).at;
    float   *scratch = float_vec_new(arena, actor_infer_scratch(actor, s.items)).at;
    double  *took = arena_new(arena, double, ROUNDS), *sorted;
    actor_init(actor, w.at, &rng);
    for (size_t i = 0; i < (size_t)s.items * s.features; i++) x[i] = (float)rng_normal(&rng);
    for (uint32_t i = 0; i < ROUNDS; i++) {
        TimeNs start = clock_now(clock_monotonic());
        actor_infer(actor, w.at, s.items, x, out, scratch);
        took[i] = (double)(clock_now(clock_monotonic()) - start);
    }
    if (stats_sort(arena, took, ROUNDS, &sorted) != ERR_OK) return false;
    printf("%8u %6u %6u %5s %6u %10.1f %10.1f %10.1f\n", s.features, s.embed, s.hidden,
           s.bidirectional ? "both" : "one", s.items, sorted[0] / 1e3,
           stats_percentile(sorted, ROUNDS, 50) / 1e3, actor_macs(actor, s.items) / sorted[0]);
    return true;
}

int main(void) {
    static const Shape shapes[] = {
        {32, 0, 16, false, 64},  {32, 0, 32, true, 64},   {32, 0, 64, false, 64},
        {32, 0, 64, true, 64},   {32, 64, 64, false, 64}, {32, 64, 64, true, 64},
        {32, 64, 128, true, 64}, {32, 64, 64, true, 8},   {32, 64, 64, true, 1},
    };
    Arena arena;
    if (arena_init(&arena, (size_t)1 << 28) != ERR_OK) return 1;
    printf("%8s %6s %6s %5s %6s %10s %10s %10s\n", "features", "embed", "hidden", "ways", "items",
           "least us", "median us", "GMAC/s");
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        if (!measure(&arena, shapes[i])) return 1;
    arena_finish(&arena);
    return 0;
}
