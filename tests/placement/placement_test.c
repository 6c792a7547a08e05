// Placement on random clusters: a query agrees with placing and changes nothing, placing agrees
// with a slow search, no resource is taken twice, and shortages are what is missing.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "placement/placement.h"
#include "tests/runner.h"

enum { SERVERS = 6, GPUS = 4, CLASSES = 3 };

static Arena arena;

static int begin(void **state) {
    (void)state;
    return arena_init(&arena, (size_t)1 << 30) == ERR_OK ? 0 : -1;
}

static int end(void **state) {
    (void)state;
    arena_finish(&arena);
    return 0;
}

typedef struct Case {
    ClusterServer   servers[SERVERS];
    ServerState     states[SERVERS];
    uint16_t        parts[SERVERS * GPUS];
    ClusterProfile  classes[CLASSES];
    double          pairs[PROFILE_CLASSES * PROFILE_CLASSES];
    ClusterProfiles profiles;
    ClusterSetup    setup;
    ClusterView     view;
    FreeResources   free;
} Case;

static uint32_t pick(Rng *rng, uint32_t n) { return (uint32_t)rng_below(rng, n); }

// Servers of 1 to 4 GPUs with random free parts; classes 0 and 1 do not fit into a GPU together.
static Case *open_case(uint64_t seed) {
    Case    *c = arena_new(&arena, Case, 1);
    Rng      rng = {seed};
    uint32_t first = 0;
    for (uint32_t i = 0; i < PROFILE_CLASSES * PROFILE_CLASSES; i++) c->pairs[i] = 0.8;
    c->pairs[1] = c->pairs[PROFILE_CLASSES] = 0;
    c->profiles = (ClusterProfiles){.at = c->classes, .n = CLASSES, .pair = c->pairs};
    for (uint32_t i = 0; i < SERVERS; i++) {
        ServerState *s = &c->states[i];
        uint32_t     gpus = 1 + pick(&rng, GPUS);
        c->servers[i] = (ClusterServer){
            .gpus = gpus, .cores_milli = 16000, .memory_mib = 16000, .type = pick(&rng, 2)};
        *s = (ServerState){.cores_milli = 1000 * pick(&rng, 17),
                           .memory_mib = 1000 * pick(&rng, 17),
                           .parts = c->parts + first};
        for (uint32_t g = 0; g < gpus; g++) {
            uint32_t part = 250 * pick(&rng, 8);
            c->parts[first + g] = (uint16_t)(part < CLUSTER_WHOLE_GPU ? part : CLUSTER_WHOLE_GPU);
            s->gpus += c->parts[first + g] == CLUSTER_WHOLE_GPU;
        }
        if (gpus > c->setup.most_gpus) c->setup.most_gpus = gpus;
        first += gpus;
    }
    c->setup.servers = c->servers;
    c->setup.profiles = &c->profiles;
    c->setup.n_servers = SERVERS;
    c->setup.n_slots = 1;
    c->setup.gpus = first;
    c->setup.fractions = c->setup.shares = true;
    c->view = (ClusterView){.setup = &c->setup, .servers = c->states};
    assert_int_equal(placement_alloc(&c->free, &c->setup, &arena), ERR_OK);
    placement_open(&c->free, &c->view);
    return c;
}

static ClusterJob random_job(Rng *rng) {
    ClusterJob j = {.gpus = pick(rng, 2 * GPUS + 1),
                    .gpu_milli = CLUSTER_WHOLE_GPU,
                    .gpu_types = pick(rng, 4),
                    .cores_milli = 1000 * pick(rng, 9),
                    .memory_mib = 1000 * pick(rng, 9),
                    .class = pick(rng, CLASSES)};
    if (j.gpus == 1 && pick(rng, 2) == 0) j.gpu_milli = 250 * (1 + pick(rng, 3));
    return j;
}

static uint32_t largest(const Case *c, const ClusterJob *j) {
    uint32_t most = 0;
    for (uint32_t i = 0; i < SERVERS; i++)
        if (cluster_server_fits(&c->setup, j, i) && c->servers[i].gpus > most)
            most = c->servers[i].gpus;
    return most;
}

// The obvious search for jobs that fit on one server: every server, every GPU.
static bool fits_slow(const Case *c, const ClusterJob *j) {
    for (uint32_t i = 0; i < SERVERS; i++) {
        const ServerState *s = &c->states[i];
        uint32_t           enough = 0;
        if (!cluster_server_fits(&c->setup, j, i)) continue;
        if (s->cores_milli < j->cores_milli || s->memory_mib < j->memory_mib) continue;
        for (uint32_t g = 0; g < c->servers[i].gpus; g++) enough += s->parts[g] >= j->gpu_milli;
        if (enough >= j->gpus) return true;
    }
    return false;
}

static void assert_unchanged(const Case *c) {
    for (uint32_t i = 0, first = 0; i < SERVERS; first += c->servers[i++].gpus) {
        assert_int_equal(c->free.gpus[i], c->states[i].gpus);
        assert_int_equal(c->free.cores[i], c->states[i].cores_milli);
        assert_int_equal(c->free.memory[i], c->states[i].memory_mib);
        assert_memory_equal(c->free.parts + first, c->states[i].parts,
                            c->servers[i].gpus * sizeof *c->free.parts);
    }
    assert_int_equal(c->free.n_slices, 0);
}

static void assert_legal(const Case *c, const ClusterJob *j, const ClusterAction *a) {
    uint32_t gpus = 0;
    for (uint32_t i = 0; i < a->n_slices; i++) {
        const ClusterSlice *s = &a->slices[i];
        const ServerState  *x = &c->states[s->server];
        assert_true(cluster_server_fits(&c->setup, j, s->server));
        assert_true(s->cores_milli <= x->cores_milli && s->memory_mib <= x->memory_mib);
        assert_int_equal(__builtin_popcountll(s->mask), s->gpus);
        for (uint64_t m = s->mask; m != 0; m &= m - 1)
            assert_true(x->parts[__builtin_ctzll(m)] >= s->gpu_milli);
        for (uint32_t k = 0; k < i; k++) assert_true(a->slices[k].server != s->server);
        gpus += s->gpus;
    }
    assert_int_equal(gpus, j->gpus);
}

static void test_query_agrees_with_placing(void **state) {
    (void)state;
    uint32_t placed = 0, wide = 0;
    for (uint64_t seed = 1; seed <= 3000; seed++) {
        size_t        mark = arena.used;
        Case         *c = open_case(seed);
        Rng           rng = {seed * 7919};
        ClusterJob    j = random_job(&rng);
        ClusterAction a = {0};
        bool          fits = placement_fits(&c->free, &j);
        assert_unchanged(c);
        if (j.gpus <= largest(c, &j)) assert_int_equal(fits, fits_slow(c, &j));
        assert_int_equal(placement_place_as(&c->free, 0, &j, &a), fits);
        if (fits) assert_legal(c, &j, &a);
        for (uint32_t i = 0; i < a.n_slices; i++) placement_give(&c->free, &a.slices[i]);
        c->free.n_slices = 0;
        assert_unchanged(c);
        placed += fits;
        wide += fits && a.n_slices > 1;
        arena_rewind(&arena, mark);
    }
    assert_true(placed > 500 && wide > 10);
}

// A job that lacks GPUs, cores or memory fits once that amount is added.
static void test_shortages(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= 2000; seed++) {
        size_t     mark = arena.used;
        Case      *c = open_case(seed);
        Rng        rng = {seed * 104729};
        ClusterJob j = random_job(&rng), fed = j;
        fed.cores_milli = fed.memory_mib = 0;
        int64_t gpus = placement_short_gpus(&c->free, &j);
        if (gpus > 0) assert_false(placement_fits(&c->free, &fed));
        if (j.gpus <= largest(c, &j) && placement_fits(&c->free, &fed)) {
            int64_t cores = placement_short_cores(&c->free, &j);
            fed.cores_milli = j.cores_milli;
            assert_int_equal(placement_fits(&c->free, &fed) || cores > 0, true);
            if (cores > 0 && !placement_fits(&c->free, &fed)) {
                fed.cores_milli = j.cores_milli - (uint32_t)cores;
                assert_true(placement_fits(&c->free, &fed));
            }
        }
        arena_rewind(&arena, mark);
    }
}

// A GPU fraction never joins a class that does not fit into the GPU's memory with it.
static void test_corunners(void **state) {
    (void)state;
    Case        *c = open_case(5);
    uint16_t     one = 500;
    ClusterSlice slice = {.mask = 1, .gpus = 1, .gpu_milli = 500};
    ClusterTask  task = {.job = {.gpus = 1, .gpu_milli = 500, .class = 0},
                         .state = CLUSTER_RUNNING,
                         .slices = &slice,
                         .n_slices = 1};
    uint32_t     running = 0;
    c->servers[0].gpus = 1;
    c->setup.n_servers = 1;
    c->states[0] = (ServerState){.cores_milli = 1000, .memory_mib = 1000, .parts = &one};
    c->view.tasks = &task;
    c->view.running = &running;
    c->view.n_running = 1;
    placement_open(&c->free, &c->view);
    ClusterJob j = {.gpus = 1, .gpu_milli = 500, .class = 1};
    assert_false(placement_fits(&c->free, &j));
    j.class = 2;
    assert_true(placement_fits(&c->free, &j));
    placement_release(&c->free, &task);
    j.class = 1;
    assert_true(placement_fits(&c->free, &j));
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_query_agrees_with_placing),
        cmocka_unit_test(test_shortages),
        cmocka_unit_test(test_corunners),
    };
    return cmocka_run_group_tests(tests, begin, end);
}
