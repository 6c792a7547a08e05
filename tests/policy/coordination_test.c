#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "tests/policy/coordination_case.h"
#include "tests/policy/coordination_exact.h"
#include "tests/runner.h"

static CoordCase made, other;
static uint32_t  claims[CASE_AGENTS], others[CASE_AGENTS];

static const CoordKind kinds[] = {
    {1, 1, 0, 0, 0, 0},          {3, 5, 0, 0.5, 0.5, 0},    {16, 16, 0, 0, 0, 0},
    {24, 12, 2, 0.3, 0.3, 0.3f}, {12, 40, 4, 0.8, 0.2, 1},  {64, 32, 0, 0.2, 0.6, 0},
    {65, 20, 1, 0.9, 0.1, 0.1f}, {128, 64, 0, 0.5, 0.3, 0}, {40, 30, 4, 0, 0.4, 3},
    {100, 8, 0, 0.1, 1, 0},      {30, 30, 0, 0.97, 0.5, 0},
};
enum { KINDS = sizeof kinds / sizeof *kinds };

static const char *const words[] = {
#define X(word, parts, help) #word,
#include "policy/cluster/maifs/coord_kind.def"
#undef X
};
enum { WORDS = sizeof words / sizeof *words };

static CoordParams rules_of(const char *word) {
    CoordParams r = coord_default_params();
    assert_true(coord_parts_of(word, &r.parts));
    return r;
}

static void answers_are_legal_and_the_centre_no_worse_than_arbitration(void **state) {
    (void)state;
    Rng rng = {1};
    for (uint32_t which = 0; which < WORDS; which++)
        for (uint32_t x = 0; x < KINDS; x++) {
            CoordParams   r = rules_of(words[which]);
            Coordination *a = coord_new(128, 64, &r);
            for (uint32_t again = 0; again < 3; again++) {
                coord_case(&made, &kinds[x], &rng);
                coord_decide(a, &made.p, claims);
                assert_true(exact_legal(&made.p, claims));
                const CoordStats *stats = coord_stats(a);
                double            value = exact_value(&made.p, claims);
                assert_true(fabs(stats->value - value) <= 1e-4 * (1 + fabs(value)));
                if (coord_has(a, COORD_CENTRAL)) assert_true(stats->value >= stats->baseline);
            }
            free(a);
        }
}

static void the_same_again_is_the_same(void **state) {
    (void)state;
    for (uint32_t x = 0; x < KINDS; x++) {
        CoordParams   r = rules_of(x % 2 == 0 ? "auction" : "everything");
        Coordination *a = coord_new(128, 64, &r), *b = coord_new(200, 64, &r);
        Rng           rng = {x + 1};
        coord_case(&made, &kinds[x], &rng);
        coord_decide(a, &made.p, claims);
        coord_case(&other, &kinds[(x + 1) % KINDS], &rng);
        coord_decide(b, &other.p, others);  // has solved another problem before
        coord_decide(b, &made.p, others);
        assert_memory_equal(claims, others, kinds[x].agents * sizeof *claims);
        free(a);
        free(b);
    }
}

static void permute(const CoordCase *from, CoordCase *to, const uint32_t *place) {
    const CoordProblem *p = &from->p;
    size_t              row = p->jobs, wide = row * p->rank;
    memcpy(to->need, from->need, sizeof to->need);
    for (uint32_t i = 0; i < p->agents; i++) {
        uint32_t at = place[i];
        to->idle[at] = from->idle[i];
        memcpy(to->payoff + at * row, from->payoff + i * row, row * sizeof(float));
        memcpy(to->give + at * row, from->give + i * row, row * sizeof(uint16_t));
        memcpy(to->left + at * wide, from->left + i * wide, wide * sizeof(float));
        memcpy(to->right + at * wide, from->right + i * wide, wide * sizeof(float));
    }
    to->p = (CoordProblem){p->agents, p->jobs,  p->rank,  to->payoff, to->idle,
                           to->give,  to->need, to->left, to->right};
}

// Draws and the order of servers depend on their numbers, so these are left out here.
static void agents_may_be_permuted(void **state) {
    (void)state;
    Rng rng = {3};
    for (uint32_t which = 0; which < WORDS; which++)
        for (uint32_t x = 0; x < KINDS; x++) {
            CoordParams r = rules_of(words[which]);
            uint32_t    n = kinds[x].agents, place[CASE_AGENTS];
            if ((r.parts & (COORD_DRAWN | COORD_UNRANKED)) != 0) continue;
            Coordination *a = coord_new(n, 64, &r);
            coord_case(&made, &kinds[x], &rng);
            for (uint32_t i = 0; i < n; i++) {
                uint32_t j = (uint32_t)rng_below(&rng, i + 1);
                place[i] = place[j];
                place[j] = i;
            }
            permute(&made, &other, place);
            coord_decide(a, &made.p, claims);
            coord_decide(a, &other.p, others);
            for (uint32_t i = 0; i < n; i++) assert_int_equal(claims[i], others[place[i]]);
            free(a);
        }
}

static void units_of_payoffs_do_not_matter(void **state) {
    (void)state;
    Rng rng = {4};
    for (uint32_t x = 0; x < KINDS; x++) {
        CoordParams   r = coord_default_params();
        Coordination *a = coord_new(128, 64, &r);
        CoordKind     kind = kinds[x];
        kind.rank = 0;
        coord_case(&made, &kind, &rng);
        coord_decide(a, &made.p, claims);
        for (uint32_t i = 0; i < kind.agents; i++) {
            made.idle[i] = 96;
            for (uint32_t k = 0; k < kind.jobs; k++) {
                float *payoff = &made.payoff[i * kind.jobs + k];
                *payoff = ldexpf(*payoff, 20) + 96;
            }
        }
        coord_decide(a, &made.p, others);
        uint32_t differ = 0;  // but for what adding rounds away
        for (uint32_t i = 0; i < kind.agents; i++) differ += claims[i] != others[i];
        assert_true(differ * 20 <= kind.agents);
        free(a);
    }
}

// Pair payoffs of 0 take the general path and give the same result.
static void pairs_worth_nothing_change_nothing(void **state) {
    (void)state;
    Rng rng = {6};
    for (uint32_t run = 0; run < 40; run++) {
        CoordParams   r = rules_of(run % 2 == 0 ? "messages" : "rebids");
        CoordKind     kind = {40, 30, 0, 0.3, 0.3, 0};
        Coordination *a = coord_new(40, 30, &r);
        coord_case(&made, &kind, &rng);
        memset(made.left, 0, sizeof made.left);
        memset(made.right, 0, sizeof made.right);
        coord_decide(a, &made.p, claims);
        made.p.rank = 3;
        coord_decide(a, &made.p, others);
        assert_memory_equal(claims, others, 40 * sizeof *claims);
        free(a);
    }
}

// Value relative to the optimum if every job needs one agent.
static void ways_compare_as_published(void **state) {
    (void)state;
    const struct {
        uint32_t agents, jobs;
        double   argmax, rebid;
    } rows[] = {
        {8, 8, 0.50, 0.98}, {16, 16, 0.40, 0.98}, {32, 32, 0.34, 0.98}, {64, 32, 0.34, 0.99}};
    for (uint32_t x = 0; x < sizeof rows / sizeof *rows; x++) {
        CoordParams argmax = rules_of("arbitration"), rebid = rules_of("rebids"),
                    auction = rules_of("auction");
        rebid.rebids = 64;
        auction.step = 0.003f;
        Coordination *a = coord_new(64, 32, &argmax), *b = coord_new(64, 32, &rebid);
        Coordination *c = coord_new(64, 32, &auction);
        double        sums[3] = {0};
        Rng           rng = {9 + x};
        for (uint32_t run = 0; run < 48; run++) {
            coord_case(&made, &(CoordKind){rows[x].agents, rows[x].jobs, 0, 0, 0, 0}, &rng);
            double best = exact_assignment(made.payoff, rows[x].agents, rows[x].jobs);
            coord_decide(a, &made.p, claims);
            sums[0] += coord_stats(a)->value / best / 48;
            coord_decide(b, &made.p, claims);
            sums[1] += coord_stats(b)->value / best / 48;
            coord_decide(c, &made.p, claims);
            sums[2] += coord_stats(c)->value / best / 48;
        }
        print_message("%2ux%-2u argmax %.3f re-bid %.4f auction %.5f\n", rows[x].agents,
                      rows[x].jobs, sums[0], sums[1], sums[2]);
        assert_true(fabs(sums[0] - rows[x].argmax) < 0.08);
        assert_true(fabs(sums[1] - rows[x].rebid) < 0.02);
        assert_true(sums[2] > 0.995);
        free(a);
        free(b);
        free(c);
    }
}

// Mean value relative to the optimum on problems small enough for exhaustive search.
static double against_all(const CoordKind *kind, const CoordParams *r, double *least) {
    Rng           rng = {21};
    Coordination *a = coord_new(8, 8, r);
    double        sum = 0;
    uint32_t      n = 0;
    *least = 1;
    for (uint32_t run = 0; run < 300; run++) {
        coord_case(&made, kind, &rng);
        for (uint32_t k = 0; k < kind->jobs; k++)  // gangs that so few can serve
            if (made.need[k] > 1) made.need[k] = (uint16_t)(2 + made.need[k] % 9);
        for (uint32_t at = 0; at < kind->agents * kind->jobs; at++) {
            uint16_t need = made.need[at % kind->jobs];
            if (made.give[at] > need) made.give[at] = need;
        }
        coord_decide(a, &made.p, claims);
        assert_true(exact_legal(&made.p, claims));
        double best = exact_coordination(&made.p), value = coord_stats(a)->value;
        assert_true(value <= best + 1e-4);
        if (best < 1e-6) continue;
        sum += value / best;
        n++;
        *least = value / best < *least ? value / best : *least;
    }
    free(a);
    return n > 0 ? sum / n : 1;
}

static void comes_close_to_the_best_of_all_answers(void **state) {
    (void)state;
    const struct {
        const char *name;
        CoordKind   kind;
        double      mean;
    } rows[] = {
        {"singles", {5, 4, 0, 0.2, 0, 0}, 0.99},
        {"gangs", {6, 4, 0, 0.2, 0.6, 0}, 0.975},
        {"all gangs", {6, 3, 0, 0.1, 1, 0}, 0.96},
        {"pairs", {5, 4, 2, 0.2, 0, 0.5f}, 0.97},
        {"gangs and pairs", {6, 4, 2, 0.2, 0.5, 0.5f}, 0.94},
    };
    for (uint32_t x = 0; x < 2 * (sizeof rows / sizeof *rows); x++) {
        CoordParams r = rules_of(x % 2 == 0 ? "auction" : "everything");
        double      least, mean = against_all(&rows[x / 2].kind, &r, &least);
        print_message("%-16s mean %.4f least %.3f\n", rows[x / 2].name, mean, least);
        assert_true(mean > rows[x / 2].mean);
    }
}

static void numbers_that_are_none_are_no_claims(void **state) {
    (void)state;
    const float bad[] = {NAN, INFINITY, -INFINITY, 3e38f, -3e38f, 0};
    Rng         rng = {8};
    for (uint32_t run = 0; run < 200; run++) {
        CoordParams   r = rules_of(words[run % WORDS]);
        Coordination *a = coord_new(24, 12, &r);
        coord_case(&made, &kinds[3], &rng);
        for (uint32_t x = 0; x < 60; x++) {
            float what = bad[rng_below(&rng, 6)];
            switch (rng_below(&rng, 4)) {
            case 0: made.payoff[rng_below(&rng, 24 * 12)] = what; break;
            case 1: made.left[rng_below(&rng, 24 * 24)] = what; break;
            case 2: made.give[rng_below(&rng, 24 * 12)] = 0; break;
            default: made.idle[rng_below(&rng, 24)] = run % 2 == 0 ? 0 : what; break;
            }
        }
        made.need[run % 12] = 0;
        coord_decide(a, &made.p, claims);
        assert_true(exact_legal(&made.p, claims));
        for (uint32_t i = 0; i < 24; i++) assert_true(claims[i] != run % 12);
        free(a);
    }
}

static void nobody_claims_where_idling_is_better(void **state) {
    (void)state;
    CoordParams   r = coord_default_params();
    Coordination *a = coord_new(24, 12, &r);
    Rng           rng = {2};
    coord_case(&made, &(CoordKind){24, 12, 0, 0, 0.3, 0}, &rng);
    for (uint32_t i = 0; i < 24; i++) made.idle[i] = 100;
    coord_decide(a, &made.p, claims);
    for (uint32_t i = 0; i < 24; i++) assert_int_equal(claims[i], COORD_NONE);
    assert_true(coord_stats(a)->value == 2400);
    free(a);
}

// Two servers have four GPUs each for a job that needs eight, and jobs of their own that are worth
// less, or more, together.
static void a_gang_is_made_where_it_is_worth_more(void **state) {
    (void)state;
    CoordParams   r = coord_default_params();
    Coordination *a = coord_new(2, 3, &r);
    for (uint32_t cheap = 0; cheap < 2; cheap++) {
        float        own = cheap ? 3 : 5;
        const float  payoff[] = {4, own, 1, 4, 1, own}, idle[] = {0, 0};
        uint16_t     give[] = {4, 1, 1, 4, 1, 1}, need[] = {8, 1, 1};
        CoordProblem p = {2, 3, 0, payoff, idle, give, need, NULL, NULL};
        coord_decide(a, &p, claims);
        assert_int_equal(claims[0], cheap ? 0 : 1);
        assert_int_equal(claims[1], cheap ? 0 : 2);
    }
    free(a);
}

// All agents want the same job: every one has neighbours, none more than the degree. Each wants
// another job: no edges.
static void rivals_for_a_job_are_joined(void **state) {
    (void)state;
    CoordParams   r = rules_of("everything");
    Coordination *a = coord_new(128, 32, &r);
    coord_case(&made, &(CoordKind){128, 32, 0, 0, 0, 0}, &(Rng){1});
    for (uint32_t same = 0; same < 2; same++) {
        for (uint32_t i = 0; i < 128; i++)
            for (uint32_t k = 0; k < 32; k++)
                made.payoff[i * 32 + k] = k == (same ? 0 : i) ? 1.0f + 1e-3f * (float)i : 0;
        coord_decide(a, &made.p, claims);
        if (!same) assert_int_equal(coord_stats(a)->edges, 0);
        for (uint32_t i = 0; i < 128 && same; i++)
            assert_in_range(a->arc_first[i + 1] - a->arc_first[i], r.degree / 2, r.degree);
    }
    free(a);
}

// Where all decide at once and losers idle, messages serve more than arbitration does.
static void messages_relieve_simultaneous_claims(void **state) {
    (void)state;
    const char *const ways[] = {"independent", "arbitration", "messages", "graph"};
    double            sums[4] = {0};
    for (uint32_t way = 0; way < 4; way++) {
        CoordParams   r = rules_of(ways[way]);
        Coordination *a = coord_new(64, 64, &r);
        Rng           rng = {5};
        for (uint32_t run = 0; run < 48; run++) {
            coord_case(&made, &(CoordKind){64, 64, 0, 0.2, 0, 0}, &rng);
            coord_decide(a, &made.p, claims);
            sums[way] += coord_stats(a)->value / exact_assignment(made.payoff, 64, 64) / 48;
        }
        print_message("%-12s %.3f\n", ways[way], sums[way]);
        free(a);
    }
    assert_true(sums[1] > sums[0] && sums[2] > 1.2 * sums[1] && sums[3] > 1.2 * sums[1]);
}

// Claims come from an auction that is blind to pairs; re-pricing finds the ones that fit together.
static void pairs_are_priced_beside_all_others(void **state) {
    (void)state;
    CoordParams   r = rules_of("auction");
    Coordination *a = coord_new(2, 4, &r);
    const float   payoff[] = {1, 0.9f, -INFINITY, -INFINITY, -INFINITY, -INFINITY, 1, 0.9f};
    const float   left[] = {-2, 0, 0, 0, 0, 0, -2, 0}, right[] = {1, 0, 0, 0, 0, 0, 1, 0};
    const float   idle[] = {0, 0};
    uint16_t      give[] = {1, 1, 0, 0, 0, 0, 1, 1}, need[] = {1, 1, 1, 1};
    CoordProblem  p = {2, 4, 1, payoff, idle, give, need, left, right};
    coord_decide(a, &p, claims);  // 0 and 2 together cost 2
    assert_true(claims[0] != COORD_NONE && claims[1] != COORD_NONE);
    assert_true(claims[0] == 1 || claims[1] == 3);
    free(a);
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(answers_are_legal_and_the_centre_no_worse_than_arbitration),
        cmocka_unit_test(the_same_again_is_the_same),
        cmocka_unit_test(agents_may_be_permuted),
        cmocka_unit_test(units_of_payoffs_do_not_matter),
        cmocka_unit_test(pairs_worth_nothing_change_nothing),
        cmocka_unit_test(ways_compare_as_published),
        cmocka_unit_test(comes_close_to_the_best_of_all_answers),
        cmocka_unit_test(numbers_that_are_none_are_no_claims),
        cmocka_unit_test(nobody_claims_where_idling_is_better),
        cmocka_unit_test(a_gang_is_made_where_it_is_worth_more),
        cmocka_unit_test(rivals_for_a_job_are_joined),
        cmocka_unit_test(messages_relieve_simultaneous_claims),
        cmocka_unit_test(pairs_are_priced_beside_all_others),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
