// Every zoo network has its published multiply-accumulates and parameters and the shapes that its
// builder expects, and depends on its seed only.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "model/work.h"
#include "model/zoo/zoo.h"
#include "tests/model/graph_equal.h"
#include "tests/runner.h"

typedef struct Row {
    const char *name;
    double      mmacs,
        macs_within;  // published, in millions; tolerance for rounding and ways of counting
    double  mparams, params_within;  // the same; docs/zoo.md explains the differences
    int64_t macs, params;            // exact
} Row;

static const double round_m = 0.5, round_k = 0.0005;  // published to a million, to a thousand

static const Row rows[] = {
    {"alexnet", 714, round_m, 61.101, round_k, 714188480, 61100840},
    {"squeezenet1_1", 349, round_m, 1.235, round_k, 349151936, 1235496},
    {"vgg16", 15470, round_m, 138.358, round_k, 15470264320, 138357544},
    {"googlenet", 1498, round_m, 6.625, round_k, 1498376192, 6624904},
    {"inception_v3", 5713, round_m, 27.161, 3.327, 5713216096, 23834568},
    {"resnet18", 1814, round_m, 11.690, round_k, 1814073344, 11689512},
    {"resnet34", 3664, round_m, 21.798, round_k, 3663761408, 21797672},
    {"resnet50", 4089, round_m, 25.557, round_k, 4089184256, 25557032},
    {"densenet121", 2834, round_m, 7.979, round_k, 2834161664, 7978856},
    {"mobilenet_v1", 569, round_m, 4.232, round_k, 568740352, 4231976},
    {"mobilenet_v2", 301, round_m, 3.505, round_k, 300774272, 3504872},
    {"mobilenet_v3_large", 217, round_m, 5.483, round_k, 216589760, 5483032},
    {"efficientnet_b0", 386, round_m, 5.289, round_k, 385814752, 5288548},
    {"tiny_yolo_v2", 3485, 2.5, 15.862, round_k, 3485520896, 15861773},
    {"yolo_v3", 32930, 2.5, 61.949, round_k, 32932037632, 61949149},
    {"ssd_mobilenet_v1", 1235, 2.5, 6.807, 0.0115, 1237129408, 6818111},
    {"ssd_resnet34", 216500, 250, 20.058, 0.0855, 216415931904, 19972534},
    {"ssd_resnet34_512", 0, 0, 0, 0, 39434977792, 19972534},
    {"unet", 0, 0, 31.031, round_k, 150428424448, 31030658},
    {"deeplab_v3", 10452, 16, 11.029, 0.0039, 10436350688, 11025477},
    {"bert_base", 11250, 80, 109.482, round_k, 11174215680, 109482240},
    {"bert_large", 123465, 260, 333.96, 0.14, 123212660736, 334094338},
    {"mobile_bert", 2850, 160, 24.582, round_k, 2692743168, 24581888},
    {"dlrm", 0, 0, 0, 0, 2458496, 58838017},
    {"lstm_kws", 2.95, 0.025, 0, 0, 2961800, 62788},
    {"decoder", 0, 0, 0, 0, 3866624, 4917504},
    {"decoder_int4", 0, 0, 0, 0, 3866624, 4917504},
};
enum { N_ROWS = sizeof rows / sizeof *rows };

static void build(const char *name, ZooOptions o, Model *m) {
    assert_int_equal(zoo_build(name, &o, m), ERR_OK);
    for (uint32_t i = 0; i < m->graph->n_nodes; i++)
        assert_int_equal(op_check(&m->graph->nodes[i]), ERR_OK);
    assert_int_equal(graph_sort(m->graph), ERR_OK);
}

static ShapedGraph *specialised(Model *m) {
    Graph       *g = m->graph;
    ShapedGraph *s = NULL;
    Tensor       inputs[16];
    assert_in_range(g->n_inputs, 1, 16);
    for (uint32_t i = 0; i < g->n_inputs; i++) inputs[i] = g->values[g->inputs[i]].type;
    if (shaped_graph_make(g, inputs, NULL, &m->arena, &s) != ERR_OK) fail_msg("%s", err_why());
    return s;
}

static Work total(Model *m) {
    Work w = {0};
    assert_int_equal(work_total(specialised(m), &m->arena, &w), ERR_OK);
    return w;
}

static void totals_are_the_published_ones(void **state) {
    (void)state;
    for (size_t i = 0; i < N_ROWS; i++) {
        const ZooEntry *e = zoo_find(rows[i].name);
        Model           m;
        build(rows[i].name, (ZooOptions){0}, &m);
        Work w = total(&m);
        print_message("%s: %lld MAC, %lld parameters\n", rows[i].name, (long long)w.macs,
                      (long long)w.params);
        assert_true(w.macs == rows[i].macs && w.params == rows[i].params);
        assert_true(e->mmacs == rows[i].mmacs && e->mparams == rows[i].mparams);
        if (e->mmacs > 0) assert_true(fabs((double)w.macs / 1e6 - e->mmacs) <= rows[i].macs_within);
        if (e->mparams > 0)
            assert_true(fabs((double)w.params / 1e6 - e->mparams) <= rows[i].params_within);
        model_finish(&m);
    }
    assert_null(zoo_entry(N_ROWS));
}

static void figure(double x, int places, char *out, size_t size) {
    (void)snprintf(out, size, "%.*f", places, x);
    if (x == 0) (void)snprintf(out, size, "-");
}

static void the_documented_table_is_this_one(void **state) {
    (void)state;
    static char doc[1 << 16];
    char        path[4096], line[400], macs[32], params[32];
    if (getenv("SRC") == NULL) skip();
    (void)snprintf(path, sizeof path, "%s/docs/zoo.md", getenv("SRC"));
    FILE *f = fopen(path, "r");
    assert_non_null(f);
    doc[fread(doc, 1, sizeof doc - 1, f)] = '\0';
    assert_int_equal(fclose(f), 0);
    for (size_t i = 0; i < N_ROWS; i++) {
        const ZooEntry *e = zoo_find(rows[i].name);
        figure(e->mmacs, e->mmacs < 10 ? 2 : 0, macs, sizeof macs);
        figure(e->mparams, 3, params, sizeof params);
        (void)snprintf(line, sizeof line, "| %s | %s | %.3f | %.3f | %s | %s | %s |\n", e->name,
                       e->input, (double)rows[i].macs / 1e6, (double)rows[i].params / 1e6, macs,
                       params, e->source);
        if (strstr(doc, line) == NULL) fail_msg("docs/zoo.md lacks this row: %s", line);
    }
}

static void shapes_are_those_the_builder_expects(void **state) {
    (void)state;
    for (size_t i = 0; i < N_ROWS; i++) {
        Model m;
        build(rows[i].name, (ZooOptions){.batch = 2}, &m);
        ShapedGraph *s = specialised(&m);
        for (uint32_t v = 0; v < m.graph->n_values; v++) {
            const Tensor *declared = &m.graph->values[v].type;
            if (!tensor_same_shape(declared, &s->values[v]) ||
                declared->dtype != s->values[v].dtype)
                fail_msg("%s: %s", rows[i].name, m.graph->values[v].name);
        }
        model_finish(&m);
    }
}

static void work_grows_with_batch_and_sequence(void **state) {
    (void)state;
    Model m;
    build("resnet18", (ZooOptions){.batch = 3}, &m);
    Work w = total(&m);
    assert_true(w.macs == 3 * INT64_C(1814073344) && w.params == 11689512);
    model_finish(&m);
    build("bert_base", (ZooOptions){.sequence = 64}, &m);
    w = total(&m);  // 12 layers of 12 h^2 + 2 T h each token, and the pooler
    assert_true(w.macs == 64 * 12 * (12 * INT64_C(768) * 768 + 2 * 64 * 768) + 768 * 768);
    assert_true(w.params == 109482240);
    model_finish(&m);
}

static void weights_depend_on_the_seed_alone(void **state) {
    (void)state;
    Model a, b, c;
    build("squeezenet1_1", (ZooOptions){.seed = 7}, &a);
    build("squeezenet1_1", (ZooOptions){.seed = 7, .batch = 1}, &b);
    build("squeezenet1_1", (ZooOptions){.seed = 8}, &c);
    assert_int_equal(model_materialise(&a), ERR_OK);
    assert_int_equal(model_materialise(&b), ERR_OK);
    assert_int_equal(model_materialise(&c), ERR_OK);
    assert_true(graph_equal(a.graph, b.graph));
    assert_false(graph_equal(a.graph, c.graph));
    uint32_t v = graph_find(a.graph, "features.0.weight"),
             u = graph_find(a.graph, "features.0.bias");
    assert_true(v != NO_VALUE && u != NO_VALUE);
    const float *w = a.graph->values[v].type.data;
    double       square = 0;
    for (int i = 0; i < 64 * 27; i++) square += (double)(w[i] * w[i]);
    assert_true(fabs(square / 64 - 1) < 0.1);  // expected mean square 1
    model_finish(&a);
    model_finish(&b);
    model_finish(&c);
}

static void weights_are_generated_on_demand(void **state) {
    (void)state;
    Model m;
    build("bert_large", (ZooOptions){0}, &m);
    assert_true(m.arena.high < 16 << 20);
    for (uint32_t i = 0; i < m.graph->n_values; i++)
        if (m.graph->values[i].fill != NULL) assert_null(m.graph->values[i].type.data);
    model_finish(&m);
}

static void names_read_like_the_original(void **state) {
    (void)state;
    Model m;
    build("resnet50", (ZooOptions){0}, &m);
    assert_int_not_equal(graph_find(m.graph, "layer3.5.conv2.weight"), NO_VALUE);
    assert_int_not_equal(graph_find(m.graph, "layer4.0.downsample.1.running_var"), NO_VALUE);
    assert_string_equal(m.graph->nodes[4].name, "/layer1/0/conv1");
    assert_string_equal(m.graph->values[m.graph->outputs[0]].name, "logits");
    model_finish(&m);
}

static void rejects(const char *name, ZooOptions o, const char *reason) {
    Model m;
    assert_int_equal(zoo_build(name, &o, &m), ERR_ARG);
    if (strstr(err_why(), reason) == NULL) fail_msg("%s", err_why());
}

static void wrong_requests_are_rejected_with_advice(void **state) {
    (void)state;
    rejects("resnet51", (ZooOptions){0}, "resnet50");
    rejects("mobilenetv2", (ZooOptions){0}, "mobilenet_v2");
    rejects("", (ZooOptions){0}, "zoo list");
    rejects("resnet50", (ZooOptions){.sequence = 5}, "no sequence");
    rejects("resnet50", (ZooOptions){.open = true}, "no cache");
    rejects("bert_base", (ZooOptions){.sequence = 513}, "1 to 512");
    rejects("bert_base", (ZooOptions){.sequence = -1}, "1 to 512");
    rejects("resnet50", (ZooOptions){.batch = -1}, "batch");
    rejects("resnet50", (ZooOptions){.batch = 1 << 30}, "batch");
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(totals_are_the_published_ones),
        cmocka_unit_test(the_documented_table_is_this_one),
        cmocka_unit_test(shapes_are_those_the_builder_expects),
        cmocka_unit_test(work_grows_with_batch_and_sequence),
        cmocka_unit_test(weights_depend_on_the_seed_alone),
        cmocka_unit_test(weights_are_generated_on_demand),
        cmocka_unit_test(names_read_like_the_original),
        cmocka_unit_test(wrong_requests_are_rejected_with_advice),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
