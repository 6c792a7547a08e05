// Admission under overload, in virtual time, in front of a queue in order of deadlines.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/rng.h"
#include "node/admission.h"
#include "tests/runner.h"

enum { TENANTS = 4, CORES = 2, SECOND = 1000000000 };

typedef struct Source {
    double   load;     // offered, in cores
    double   work_ns;  // of a request
    double   guess;    // initial estimate of the work, relative to the true work
    TimeNs   qos_ns;
    uint32_t kept;
} Source;

typedef struct Tally {
    uint32_t asked[TENANTS], let_in[TENANTS], met[TENANTS];
    double   useful_ns;  // core nanoseconds of requests in time
} Tally;

typedef struct Job {
    TimeNs   deadline;
    uint32_t tenant;
} Job;

typedef struct Floor {  // what was let in, and the cores that compute it
    Job     *jobs;
    uint32_t n;
    TimeNs   free_at[CORES];
} Floor;

static uint32_t most_urgent(const Floor *f) {
    uint32_t best = 0;
    for (uint32_t i = 1; i < f->n; i++)
        if (f->jobs[i].deadline < f->jobs[best].deadline) best = i;
    return best;
}

// Runs the queue until `now`. Requests that cannot meet their deadlines are not started.
static void work_until(Floor *f, const Source *s, Admission *a, TimeNs now, Tally *t) {
    for (;;) {
        uint32_t core = 0;
        for (uint32_t c = 1; c < CORES; c++)
            if (f->free_at[c] < f->free_at[core]) core = c;
        if (f->n == 0 || f->free_at[core] >= now) return;
        uint32_t i = most_urgent(f);
        Job      j = f->jobs[i];
        TimeNs   end = f->free_at[core] + (TimeNs)s[j.tenant].work_ns;
        f->jobs[i] = f->jobs[--f->n];
        if (end > j.deadline) continue;
        f->free_at[core] = end;
        t->met[j.tenant]++;
        t->useful_ns += s[j.tenant].work_ns;
        admission_note(a, j.tenant, s[j.tenant].work_ns * s[j.tenant].guess, s[j.tenant].work_ns,
                       0);
    }
}

static void play(const Source *s, uint32_t n, double seconds, bool open, Tally *t) {
    Arena     arena;
    Admission a;
    Rng       r = {5};
    TimeNs    next[TENANTS], now = 0;
    assert_int_equal(arena_init(&arena, (size_t)1 << 30), ERR_OK);
    assert_int_equal(admission_init(&a, TENANTS, &arena), ERR_OK);
    Floor f = {.jobs = arena_new(&arena, Job, 1 << 20)};
    a.cores = CORES;
    *t = (Tally){0};
    for (uint32_t i = 0; i < n; i++) {
        admission_join(&a, i, s[i].work_ns * s[i].guess, s[i].qos_ns, s[i].kept);
        next[i] = (TimeNs)(rng_exp(&r) * s[i].work_ns / s[i].load);
    }
    while (now < (TimeNs)(seconds * SECOND)) {
        uint32_t tenant = 0;
        for (uint32_t i = 1; i < n; i++)
            if (next[i] < next[tenant]) tenant = i;
        now = next[tenant];
        next[tenant] += 1 + (TimeNs)(rng_exp(&r) * s[tenant].work_ns / s[tenant].load);
        work_until(&f, s, &a, now, t);
        for (uint32_t c = 0; c < CORES; c++)
            if (f.n == 0 && f.free_at[c] < now) f.free_at[c] = now;
        t->asked[tenant]++;
        if (!admission_allows(&a, tenant, now) && !open) continue;
        t->let_in[tenant]++;
        f.jobs[f.n++] = (Job){now + s[tenant].qos_ns, tenant};
    }
    arena_finish(&arena);
}

static double met_share(const Tally *t, uint32_t i) {
    return (double)t->met[i] / (double)t->asked[i];
}

static void nobody_is_refused_while_there_is_room(void **state) {
    (void)state;
    static const Source s[] = {{0.7, 4e6, 1, 40000000, 0}, {0.7, 1e6, 1, 10000000, 0}};
    Tally               t;
    play(s, 2, 20, false, &t);
    for (uint32_t i = 0; i < 2; i++) {
        assert_true(t.let_in[i] >= t.asked[i] * 0.99);
        assert_true(met_share(&t, i) > 0.97);
    }
}

static void a_flood_costs_its_own_tenant(void **state) {
    (void)state;
    static const Source s[] = {
        {20, 3e6, 1, 15000000, 0}, {0.5, 3e6, 2, 15000000, 0}, {0.3, 10e6, 0.5, 60000000, 0}};
    Tally t;
    play(s, 3, 20, false, &t);
    assert_true(met_share(&t, 1) > 0.95);
    assert_true(met_share(&t, 2) > 0.95);
    assert_true(t.useful_ns > 0.9 * 0.95 * CORES * 20 * SECOND);
}

// Goodput at 3 and 10 times the capacity, against the best goodput at any load, with or without
// admission.
static void goodput_stays_at_its_peak(void **state) {
    (void)state;
    static const double loads[] = {0.6, 0.8, 0.9, 1.0, 1.2, 1.5, 3, 10};
    for (uint32_t kind = 0; kind < 2; kind++) {
        double peak = 0, useful[8];
        for (uint32_t i = 0; i < 8; i++) {
            double load = loads[i] * CORES;
            Source s[] = {{load, 2e6, 1, 10000000, 0}, {load / 2, 5e6, 1, 50000000, 0}};
            Tally  t;
            s[0].load = kind == 0 ? load : load / 2;
            play(s, kind + 1, 10, true, &t);
            peak = fmax(peak, t.useful_ns);
            play(s, kind + 1, 10, false, &t);
            useful[i] = t.useful_ns;
            peak = fmax(peak, useful[i]);
        }
        assert_true(useful[6] > 0.9 * peak);
        assert_true(useful[7] > 0.9 * peak);
    }
}

static void what_is_kept_stays(void **state) {
    (void)state;
    static const Source s[] = {
        {10, 2e6, 1, 20000000, 0}, {10, 2e6, 1, 20000000, 0}, {1.2, 2e6, 1, 20000000, 1}};
    Tally t;
    play(s, 3, 10, false, &t);
    assert_true(t.met[2] * 2e6 > 0.9 * 10.0 * SECOND);
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nobody_is_refused_while_there_is_room),
        cmocka_unit_test(a_flood_costs_its_own_tenant),
        cmocka_unit_test(goodput_stays_at_its_peak),
        cmocka_unit_test(what_is_kept_stays),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
