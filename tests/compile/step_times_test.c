// Every step has a time for each of its versions on each number of cores, measured or extrapolated.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "compile/tune/step_times.h"
#include "model/net_builder.h"
#include "tests/runner.h"

static void build(Graph *g) {
    NetBuilder n;
    net_init(&n, g, 1);
    uint32_t x = net_input(&n, "x", DT_F32, 4, (int64_t[]){1, 16, 24, 24});
    x = net_conv(&n, "a", x, (NetConv){.out = 32, .kernel = 3, .pad = 1, .bias = true});
    x = net_max_pool(&n, net_activation(&n, NET_RELU, x), (NetPool){.kernel = 2, .stride = 2});
    x = net_conv(&n, "b", x, (NetConv){.out = 32, .kernel = 1});
    net_output(&n, net_softmax(&n, net_flatten(&n, net_global_pool(&n, x))), "y");
}

static void check_times(const Program *p, const TimeNs *light, uint32_t n_counts) {
    uint32_t heavy = 0;
    for (uint32_t i = 0; i < p->n_steps; i++) {
        const Step *s = &p->steps[i];
        heavy += s->key != NULL;
        for (uint32_t k = 0; k < n_counts; k++) {
            if (s->key == NULL) assert_true(light[i * n_counts + k] > 0);
            for (uint32_t v = 0; s->key != NULL && v < s->n_versions; v++) {
                const Candidate *c = &s->profile->candidates[s->profile->kept[v]];
                assert_true(c->time_ns[k] > 0 && c->tasks > 0);
                assert_true(version_same(&c->version, &s->versions[v]));
            }
        }
    }
    assert_true(heavy >= 2);
}

static void every_step_has_times(void **state) {
    (void)state;
    Model        m;
    ShapedGraph *shaped = NULL;
    Program      p;
    Tensor       in;
    assert_int_equal(model_init(&m, "laps"), ERR_OK);
    build(m.graph);
    assert_int_equal(model_materialise(&m), ERR_OK);
    in = m.graph->values[m.graph->inputs[0]].type;
    assert_int_equal(tensor_alloc(&in, &m.arena), ERR_OK);
    assert_int_equal(shaped_graph_make(m.graph, &in, interp_eval, &m.arena, &shaped), ERR_OK);
    assert_int_equal(program_make(&p, shaped, &(ProgramOptions){0}), ERR_OK);
    static WorkFlag stopped = WORK_STOP;
    for (uint32_t extrapolate = 0; extrapolate < 2; extrapolate++) {
        Team            *team = NULL;
        TimeNs          *light = NULL;
        StepTimesOptions o = {.n_counts = 2, .counts = {1, 2}, .runs = 3, .inputs = &in};
        o.extrapolate = extrapolate == 1;
        assert_int_equal(team_create(&team, extrapolate == 1 ? 1 : 2, NULL), ERR_OK);
        assert_int_equal(step_times_measure(&p, team, &o, &m.arena, &light), ERR_OK);
        check_times(&p, light, 2);
        o.stop = &stopped;
        light = NULL;
        assert_int_equal(step_times_measure(&p, team, &o, &m.arena, &light), ERR_LIMIT);
        assert_null(light);
        team_destroy(team);
    }
    program_finish(&p);
    model_finish(&m);
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_step_has_times)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
