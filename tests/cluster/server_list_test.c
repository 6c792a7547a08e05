// Server lists and iteration times from a few lines of text.
#include "cluster/server_list.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "cluster/trace/iteration_times.h"
#include "tests/runner.h"

static Arena arena;

static int begin(void **state) {
    (void)state;
    return arena_init(&arena, (size_t)1 << 26) == ERR_OK ? 0 : -1;
}

static int end(void **state) {
    (void)state;
    arena_finish(&arena);
    return 0;
}

#define NODES "sn,cpu_milli,memory_mib,gpu,model\n"
#define SPEC  "num_switch,num_node_p_switch,num_gpu_p_node,num_cpu_p_node,mem_p_node\n"

static void refuse_servers(const char *text, const char *why) {
    ServerList l;
    assert_int_not_equal(server_list_parse("s.csv", text, strlen(text), &arena, &l), ERR_OK);
    if (strstr(err_why(), why) == NULL) fail_msg("'%s' does not say '%s'", err_why(), why);
}

static void nodes(void **state) {
    (void)state;
    const char *text = NODES "a,32000,262144,0,\r\nb,96000,393216,8,V100M32\n\n";
    ServerList  l;
    assert_int_equal(server_list_parse("s.csv", text, strlen(text), &arena, &l), ERR_OK);
    assert_true(l.n == 2 && l.gpus == 8 && l.racks == 1);
    assert_string_equal(l.at[1].gpu_type, "V100M32");
    assert_true(l.at[1].cores_milli == 96000 && l.at[1].memory_mib == 393216);
    refuse_servers(NODES, "has no servers");
    refuse_servers(NODES "a,1,1\n", "s.csv:2: 3 fields");
    refuse_servers(NODES "a,1,1,-1,\n", "s.csv:2: gpu: '-1' is negative");
    refuse_servers("x,y\n", "s.csv:1: no list of servers");
}

static void specs(void **state) {
    (void)state;
    const char *text = SPEC "2,3,8,92,520";
    ServerList  l;
    assert_int_equal(server_list_parse("s.csv", text, strlen(text), &arena, &l), ERR_OK);
    assert_true(l.n == 6 && l.gpus == 48 && l.racks == 2 && l.at[2].rack == 0 && l.at[3].rack == 1);
    assert_true(l.at[5].cores_milli == 92000 && l.at[5].memory_mib == 520 * 1024);
    refuse_servers(SPEC, "no cluster");
    refuse_servers(SPEC "65536,65536,8,92,520", "more than 1048576 servers");
    refuse_servers(SPEC "0,3,8,92,520", "give 1 to");
}

static void equal_ones(void **state) {
    (void)state;
    ServerList l;
    assert_int_equal(server_list_equal(4, &(ServerSpec){.gpus = 8}, &arena, &l), ERR_OK);
    assert_true(l.n == 4 && l.at[3].cores_milli == 24000 && l.at[3].memory_mib == 500 * 1024);
    assert_string_equal(l.at[3].name, "s3");
}

static IterationTimes read_rates(const char *text, const char *type) {
    IterationTimes r = {0};
    if (iteration_times_parse("r.csv", text, strlen(text), type, &arena, &r) != ERR_OK)
        fail_msg("%s", err_why());
    return r;
}

static void rates(void **state) {
    (void)state;
    const char *gavel =
        "gpu_type,model,scale_factor,steps_per_s\nv100,m,1,4\nk80,m,1,2\nv100,m,2,0\n";
    IterationTimes r = read_rates(gavel, NULL);
    assert_true(r.n == 1 && r.at[0].iteration_s == 0.25);
    r = read_rates(gavel, "k80");
    assert_true(r.n == 1 && r.at[0].iteration_s == 0.5);
    r = read_rates("set,model,gpus,iter_time_s\nmodels,m,1,0.6\nmodels-4,m,2,0.7\n", NULL);
    assert_true(r.n == 1 && r.at[0].iteration_s == 0.6);
    r = read_rates("model,gpus,iteration_s,iterations\nm,2,1,7\nm,8,0.5,7\n", NULL);
    assert_true(iteration_times_find(&r, "m", 1)->gpus == 2 &&
                iteration_times_find(&r, "m", 7)->gpus == 2);
    assert_true(iteration_times_find(&r, "m", 8)->gpus == 8 &&
                iteration_times_find(&r, "m", 99)->gpus == 8);
    assert_null(iteration_times_find(&r, "n", 1));
    const char *bad = "model,gpus,iteration_s\nm,1,-1\n";
    assert_int_equal(iteration_times_parse("r.csv", bad, strlen(bad), NULL, &arena, &r), ERR_PARSE);
    assert_non_null(strstr(err_why(), "r.csv:2: iteration_s: '-1' is negative"));
    assert_int_equal(iteration_times_parse("r.csv", "a,b\n", 4, NULL, &arena, &r), ERR_PARSE);
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nodes),
        cmocka_unit_test(specs),
        cmocka_unit_test(equal_ones),
        cmocka_unit_test(rates),
    };
    return cmocka_run_group_tests(tests, begin, end);
}
