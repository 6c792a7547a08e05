// Bounds of the cost model on the whole zoo; monotonicity in buffer and bandwidth; cost tables.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <math.h>
#include <string.h>
#include <cmocka.h>

#include "base/rng.h"
#include "chip/cost/cost.h"
#include "model/zoo/zoo.h"
#include "tests/runner.h"

static Arena arena;

static int open_arena(void **state) {
    (void)state;
    return arena_init(&arena, (size_t)1 << 32) == ERR_OK ? 0 : -1;
}

static int close_arena(void **state) {
    (void)state;
    arena_finish(&arena);
    return 0;
}

static void within_bounds(const char *network, const Shape *s, const UnitSpec *u, const Cost *c) {
    double word = u->word_bits / 8.0, all = c->read_bytes + c->write_bytes, slack = 1 - 1e-9;
    bool   ok = c->cycles >= shape_macs(s) / unit_spec_macs(u) * slack;
    ok = ok && c->cycles >= all / u->port * slack && c->cycles >= c->array_cycles * slack;
    ok = ok && c->cycles >= c->buffer_cycles * slack;
    ok = ok && c->read_bytes >= (shape_inputs(s) + shape_weights(s)) * word * slack;
    ok = ok && c->write_bytes >= shape_outputs(s) * word * slack;
    ok = ok && fabs(c->bytes_cycle * c->cycles - all) <= 1e-6 * all;
    ok = ok && c->utilization > 0 && c->utilization <= 1 + 1e-9;
    ok = ok && c->energy_pj >= shape_macs(s) * u->mac_pj + all * u->memory_pj;
    if (!ok) fail_msg("%s %s on %s: %g cycles", network, s->name, u->name, c->cycles);
}

static void check_network(const char *network, const UnitSpec *u) {
    Shape   *s = NULL;
    uint32_t n = 0;
    size_t   mark = arena.used;
    assert_int_equal(shape_list(network, 1, &arena, &s, &n), ERR_OK);
    Cost *costs = arena_new(&arena, Cost, n);
    cost_all(s, n, u, costs);
    for (uint32_t i = 0; i < n; i++) {
        bool cannot = shape_depthwise(&s[i]) && !u->depthwise;
        if (cannot != isinf(costs[i].cycles)) fail_msg("%s %s on %s", network, s[i].name, u->name);
        if (!cannot) within_bounds(network, &s[i], u, &costs[i]);
    }
    arena_rewind(&arena, mark);
}

static void test_bounds_on_the_whole_zoo(void **state) {
    (void)state;
    for (uint32_t i = 0; unit_spec_name(i) != NULL; i++) {
        UnitSpec u;
        assert_int_equal(unit_spec_load(unit_spec_name(i), &arena, &u), ERR_OK);
        for (size_t z = 0; zoo_entry(z) != NULL; z++) check_network(zoo_entry(z)->name, &u);
    }
}

static int64_t pick(Rng *r, int64_t lo, int64_t hi) {
    return lo + (int64_t)rng_below(r, (uint64_t)(hi - lo + 1));
}

static Shape random_shape(Rng *r) {
    Shape s = {.name = "random", .op = "Conv", .n = pick(r, 1, 3), .k = pick(r, 1, 40)};
    s.c = pick(r, 1, 40);
    s.r = pick(r, 1, 5);
    s.s = pick(r, 1, 5);
    s.p = pick(r, 1, 30);
    s.q = pick(r, 1, 30);
    s.groups = pick(r, 1, 3);
    s.stride_h = pick(r, 1, 2);
    s.stride_w = pick(r, 1, 2);
    s.dilation_h = s.dilation_w = 1;
    s.h = shape_span(s.p, s.r, s.stride_h, 1, INT64_MAX);
    s.w = shape_span(s.q, s.s, s.stride_w, 1, INT64_MAX);
    return s;
}

static double score(const Shape *s, const UnitSpec *u) {
    Cost c = cost_of(s, u);
    return c.cycles + COST_TRAFFIC * c.memory_cycles;
}

// Small, so that the buffers limit the mapping.
static UnitSpec small_unit(const char *name, Rng *r) {
    UnitSpec u;
    assert_int_equal(unit_spec_load(name, &arena, &u), ERR_OK);
    u.buffer_bytes = (int)pick(r, 500, 6000);
    u.input_bytes = (int)pick(r, 8, 40);
    u.weight_bytes = (int)pick(r, 100, 3000);
    u.sum_bytes = (int)pick(r, 24, 300);
    u.port = (double)pick(r, 1, 8);
    u.buffer_port = (double)pick(r, 4, 64);
    return u;
}

static void no_worse(const Shape *s, const UnitSpec *less, const UnitSpec *more) {
    double a = score(s, less), b = score(s, more);
    if (!(b <= a * (1 + 1e-12))) fail_msg("%s: %g became %g", less->name, a, b);
}

static void test_more_is_never_slower(void **state) {
    (void)state;
    static const char *const names[] = {"eyeriss", "simba", "shidiannao"};
    Rng                      r = {5};
    for (int i = 0; i < 150; i++) {
        Shape    s = random_shape(&r);
        UnitSpec u = small_unit(names[i % 3], &r), more = u;
        more.buffer_bytes += (int)pick(&r, 1, 3000);
        no_worse(&s, &u, &more);
        more = u;
        more.weight_bytes += (int)pick(&r, 1, 2000);
        no_worse(&s, &u, &more);
        more = u;
        more.sum_bytes += (int)pick(&r, 1, 200);
        no_worse(&s, &u, &more);
        more = u;
        more.input_bytes += (int)pick(&r, 1, 30);
        no_worse(&s, &u, &more);
        more = u;
        more.port *= 1.3;
        no_worse(&s, &u, &more);
        more = u;
        more.buffer_port *= 1.3;
        no_worse(&s, &u, &more);
    }
}

static void test_known_layers(void **state) {
    (void)state;
    UnitSpec simba, eyeriss;
    Shape   *s = NULL;
    uint32_t n = 0;
    assert_int_equal(unit_spec_load("simba", &arena, &simba), ERR_OK);
    assert_int_equal(unit_spec_load("eyeriss", &arena, &eyeriss), ERR_OK);
    assert_int_equal(shape_list("resnet50", 1, &arena, &s, &n), ERR_OK);
    // The first layer has 3 of 8 lanes and 8 of 16 elements; 7 of 12 rows.
    assert_true(cost_of(&s[0], &simba).cycles == shape_macs(&s[0]) / (3 * 64));
    assert_true(cost_of(&s[0], &eyeriss).cycles == shape_macs(&s[0]) / (7 * 14));
    // A 3x3 layer of 64 channels uses every multiplier of both.
    assert_true(cost_of(&s[2], &simba).utilization == 1);
    assert_true(cost_of(&s[2], &eyeriss).utilization == 1);
    // The last is bound by its weights on both.
    double bytes = 2048.0 * 1000 + 2048 + 1000;
    assert_true(cost_of(&s[n - 1], &simba).cycles == bytes / simba.port);
    assert_true(cost_of(&s[n - 1], &eyeriss).cycles == bytes / eyeriss.port);
    assert_int_equal(shape_list("mobilenet_v2", 1, &arena, &s, &n), ERR_OK);
    // Depthwise: one lane of each vector, and only as many vectors as channels.
    assert_true(cost_of(&s[1], &simba).cycles == 9.0 * 112 * 112);
    assert_true(isinf(cost_of(&s[1], &eyeriss).cycles));
    assert_true(cost_of(&s[0], &eyeriss).cycles < cost_of(&s[0], &simba).cycles);
}

static void test_relative_energy(void **state) {
    (void)state;
    static const char text[] =
        "name: u\nabout: u\nflow: row_stationary\nclock_mhz: 1\nrows: 12\ncols: 14\nword_bits: 16\n"
        "sum_bits: 16\ninput_bytes: 24\nweight_bytes: 448\nsum_bytes: 48\nbuffer_bytes: 100000\n"
        "buffer_port: 16\nport: 2\nenergy: relative\nmac_pj: 1\ninput_pj: 9\nweight_pj: 9\n"
        "sum_pj: 9\nhop_pj: 9\nbuffer_pj: 9\nmemory_pj: 9\n";
    UnitSpec u;
    assert_int_equal(unit_spec_parse("u.yaml", text, strlen(text), &arena, &u), ERR_OK);
    assert_true(u.input_pj == 1 && u.weight_pj == 1 && u.sum_pj == 1 && u.hop_pj == 2);
    assert_true(u.buffer_pj == 3 && u.memory_pj == 100);
}

static void test_model_is_the_table(void **state) {
    (void)state;
    Package   p;
    ChipModel m, again;
    Shape    *s = NULL;
    uint32_t  n = 0;
    assert_int_equal(package_load("4+4", &arena, &p), ERR_OK);
    assert_int_equal(cost_model("mobilenet_v2", &p, &arena, &m), ERR_OK);
    assert_int_equal(cost_model("mobilenet_v2", &p, &arena, &again), ERR_OK);
    assert_int_equal(shape_list("mobilenet_v2", 1, &arena, &s, &n), ERR_OK);
    assert_int_equal(m.n_layers, n);
    assert_memory_equal(m.costs, again.costs, n * p.n_kinds * sizeof *m.costs);
    for (uint32_t i = 0; i < n; i++) {
        assert_string_equal(m.layers[i], s[i].name);
        float least = INFINITY;
        for (uint32_t k = 0; k < p.n_kinds; k++) {
            Cost c = cost_of(&s[i], p.kinds[k].unit);
            assert_true(chip_cost(&m, i, k)->ns == (float)c.cycles);
            assert_true(chip_cost(&m, i, k)->bytes_ns == (float)c.bytes_cycle);
            least = fminf(least, chip_cost(&m, i, k)->ns);
        }
        assert_true(chip_cost(&m, i, m.fastest[i])->ns == least);
        assert_true(m.rest_ns[i] == m.rest_ns[i + 1] + least);
    }
    assert_true(m.rest_ns[n] == 0);
}

// The first depthwise layer of MobileNet v2 has channels for 4 of 16 elements: the other 12 take
// rows of the map, and 112 rows are 28 for each, in strips of the buffer.
static void test_depthwise_rows_spread(void **state) {
    (void)state;
    UnitSpec u, alone;
    Shape   *s = NULL;
    uint32_t n = 0;
    assert_int_equal(unit_spec_load("simba_timeloop", &arena, &u), ERR_OK);
    assert_int_equal(shape_list("mobilenet_v2", 1, &arena, &s, &n), ERR_OK);
    u.buffer_bytes = 1 << 24;  // the whole map is one strip
    alone = u;
    alone.spread = false;
    assert_true(shape_depthwise(&s[1]));
    assert_true(cost_of(&s[1], &u).array_cycles == 28224);
    assert_true(cost_of(&s[1], &alone).array_cycles == 112896);
    for (uint32_t i = 0; i < n; i++) {
        Cost wide = cost_of(&s[i], &u), narrow = cost_of(&s[i], &alone);
        assert_true(wide.cycles <= narrow.cycles);
        assert_true(wide.array_cycles * unit_spec_macs(&u) >= shape_macs(&s[i]));
        if (!shape_depthwise(&s[i])) assert_memory_equal(&wide, &narrow, sizeof wide);
    }
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bounds_on_the_whole_zoo),
        cmocka_unit_test(test_more_is_never_slower),
        cmocka_unit_test(test_known_layers),
        cmocka_unit_test(test_relative_energy),
        cmocka_unit_test(test_model_is_the_table),
        cmocka_unit_test(test_depthwise_rows_spread),
    };
    return cmocka_run_group_tests(tests, open_arena, close_arena);
}
