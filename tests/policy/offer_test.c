// An offer's figures equal the effect of taking it; its victims suffice, and none is needless.
#include "policy/cluster/maifs/offer.h"

#include "tests/policy/maifs_case.h"
#include "tests/runner.h"

enum { JOBS = 60, ASKS = 8 };

static Arena arena;

static int begin(void **state) {
    (void)state;
    return arena_init(&arena, (size_t)4 << 30) == ERR_OK ? 0 : -1;
}

static int end(void **state) {
    (void)state;
    arena_finish(&arena);
    return 0;
}

typedef struct Seen {
    uint64_t whole, evicting, beside;
    double off, over, beside_off;  // relative to the plan's utility; over: promised and not reached
} Seen;

static Resident resident_of(const ClusterSetup *s, const TaskUtility *w, const Offer *o) {
    return (Resident){.mask = o->mask,
                      .task = o->task,
                      .cores_milli =
                          task_utility_units(w, w->gpus) * w->levels[o->level].cores_milli,
                      .memory_mib = task_utility_units(w, w->gpus) * w->levels[o->level].memory_mib,
                      .gpus = (uint8_t)w->gpus,
                      .level = o->level,
                      .cap = UTILITY_LEVELS,
                      .incoming = true,
                      .spread_factor = server_plan_spread(s, w, 1)};
}

static bool eviction(const Maifs *m, const ServerPlan *h, const VictimSet *go,
                     const TaskUtility *w) {
    Headroom f;
    uint64_t used = 0, all = h->gpus == 64 ? UINT64_MAX : (UINT64_C(1) << h->gpus) - 1;
    uint32_t units = task_utility_units(w, w->gpus);
    server_plan_headroom(h, go, m->utilities, &f);
    for (uint32_t i = 0; i < h->n; i++)
        if (!victim_set_has(go, i)) used |= h->at[i].mask;
    return (uint32_t)__builtin_popcountll(all & ~used) >= w->gpus &&
           f.cores_milli >= (int64_t)units * w->levels[0].cores_milli &&
           f.memory_mib >= (int64_t)units * w->levels[0].memory_mib;
}

static void check_victims(const Maifs *m, const ServerPlan *h, const TaskUtility *w,
                          const VictimSet *go) {
    assert_true(eviction(m, h, go, w));
    for (uint32_t i = 0; i < h->n; i++) {
        VictimSet but = *go;
        if (!victim_set_has(go, i)) continue;
        assert_false(h->at[i].incoming);
        victim_set_put(&but, i, false);
        assert_false(eviction(m, h, &but, w));
    }
}

// Restart cost and evict_margin reduce an offer's gain, but not the plan's utility.
static float besides(const Maifs *m, const ServerPlan *h, const TaskUtility *w, const VictimSet *go,
                     const Offer *o) {
    float sum = 0;
    for (uint32_t i = 0; i < h->n && o->corunners == 0; i++) {
        const Resident    *g = &h->at[i];
        const TaskUtility *x = &m->utilities[g->task];
        float              part = resident_fraction(g, x);
        if (!victim_set_has(go, i)) continue;
        sum += m->offering.params.restart_weight * x->value * x->restart_s * part / w->left_s;
        sum += m->offering.params.evict_margin * resident_utility(g, x) * part +
               resident_utility(g, x) * (1 - part);
    }
    return sum;
}

static bool sliced_mates(const ServerPlan *h, uint64_t mask) {
    for (uint32_t i = 0; i < h->n; i++)
        if ((h->at[i].mask & mask) != 0 && h->at[i].sliced) return true;
    return false;
}

static bool any_company(const ServerPlan *h) {
    uint64_t used = 0;
    for (uint32_t i = 0; i < h->n; i++) {
        if ((used & h->at[i].mask) != 0) return true;
        used |= h->at[i].mask;
    }
    return false;
}

// The task is fixed at the offered level; others get the rest.
static void carry_out(const Maifs *m, const ServerPlan *h, const Offer *o, Seen *seen) {
    static ServerPlan  after;
    const TaskUtility *w = &m->utilities[o->task];
    VictimSet          go = {{0}};
    uint64_t           mask = o->mask;
    Headroom           f;
    if (o->corunners == 0) {
        assert_true(offer_victims(&m->offering, h, w, w->gpus, &go, &mask));
        assert_true(mask == o->mask);
        check_victims(m, h, w, &go);
    } else if (sliced_mates(h, mask)) {
        return;
    }
    after = *h;
    for (uint32_t i = h->n; i-- > 0;)
        if (victim_set_has(&go, i)) server_plan_remove(&after, h->at[i].task);
    Resident g = resident_of(m->setup, w, o);
    server_plan_add(&after, &g);
    server_plan_allocate(&after, m->setup, m->utilities);
    float share = after.at[after.n - 1].rate_factor;
    after.n--;  // the rest, with what the task leaves of cores and memory
    server_plan_headroom(&after, NULL, m->utilities, &f);
    double rest = headroom_utility(&f, f.cores_milli - (int64_t)g.cores_milli,
                                   f.memory_mib - (int64_t)g.memory_mib);
    double own = (double)(w->value * share * w->levels[o->level].rate);
    double told = (double)o->gain + (double)besides(m, h, w, &go, o);
    double more = (own + rest - h->utility - told) / fmax(h->utility, own);
    assert_true(fabs(own - (double)o->own) <= 1e-4 * own);
    seen->whole += o->corunners == 0;
    seen->evicting += o->victims > 0;
    seen->beside += o->corunners > 0;
    if (o->corunners > 0) {
        seen->beside_off = fmax(seen->beside_off, fabs(more));
    } else {
        seen->over = fmax(seen->over, -more);
        if (!any_company(h)) seen->off = fmax(seen->off, fabs(more));
    }
}

static void offers(void *self, const ClusterView *v, const void *state) {
    static Offer out[ASKS * OFFER_EACH];
    Maifs       *m = (Maifs *)(uintptr_t)state;
    OfferRequest requests[ASKS];
    uint32_t     n = 0;
    if ((v->now / 1000) % 3 != 0) return;  // some moments are enough
    maifs_observe(m, v);
    m->offering.params.evict = true;
    for (uint32_t i = 0; i < v->n_waiting && n < ASKS; i++)
        if (!m->utilities[v->waiting[i]].wide)
            requests[n++] = (OfferRequest){v->waiting[i], m->utilities[v->waiting[i]].gpus};
    for (uint32_t s = 0; s < v->setup->n_servers; s++) {
        maifs_allocate(m);
        uint32_t made = offer_make(&m->offering, &m->plans[s], requests, n, out);
        assert_true(made <= ASKS * OFFER_EACH);
        for (uint32_t i = 0; i < made; i++) carry_out(m, &m->plans[s], &out[i], self);
    }
}

static void test_gain_is_what_changes(void **state) {
    (void)state;
    Seen seen = {0};
    for (uint32_t with = 0; with < CLUSTER_CASE_KINDS; with += 3) {
        size_t        mark = arena.used;
        ClusterCase   x = cluster_case_random(with, JOBS, with + 1, &arena);
        MaifsCase     c = {.seed = 1, .watch = offers, .watcher = &seen};
        ClusterResult r;
        assert_int_equal(maifs_case_run(&x, &c, &arena, &r), ERR_OK);
        arena_rewind(&arena, mark);
    }
    print_message("%lu offers of whole GPUs, %lu with victims: off by %.1e, over by %.1e of the "
                  "utility; %lu beside others: off by %.2f\n",
                  (unsigned long)seen.whole, (unsigned long)seen.evicting, seen.off, seen.over,
                  (unsigned long)seen.beside, seen.beside_off);
    assert_true(seen.whole > 1000 && seen.evicting > 100 && seen.beside > 100);
    assert_true(seen.off < 1e-4);
    assert_true(seen.over < 1e-4);        // co-runners of victims speed up: not counted
    assert_true(seen.beside_off < 0.35);  // nor the new allocation of slowed residents
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gain_is_what_changes),
    };
    return cmocka_run_group_tests(tests, begin, end);
}
