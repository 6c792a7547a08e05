// Every format from a few lines of text: parsed rows, and errors with their lines.
#include "cluster/trace/job_trace.h"
#include "tests/runner.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

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

static JobList good(const char *format, const JobTraceOptions *o, const char *text) {
    JobList l = {0};
    Err     e = trace_parse("t.csv", text, strlen(text), format, o, &arena, &l);
    if (e != ERR_OK) fail_msg("%s: %s", format, err_why());
    return l;
}

static void bad(const char *format, const char *text, const char *why) {
    JobList l = {.n = 77};
    if (trace_parse("t.csv", text, strlen(text), format, NULL, &arena, &l) == ERR_OK)
        fail_msg("accepted: %s", text);
    if (strstr(err_why(), why) == NULL) fail_msg("'%s' does not say '%s'", err_why(), why);
    assert_int_equal(l.n, 77);
}

#define S(n)          ((TimeNs)(n)*JOB_SECOND)
#define PLAIN         "job,submit_s,duration_s,gpus\n"
#define PLAIN_ELASTIC "job,submit_s,duration_s,gpus,gpus_min,gpus_max\n"

static void elastic(void **state) {
    (void)state;
    JobList l =
        good("auto", NULL, PLAIN_ELASTIC "a,0,5,2,1,8\nb,1,5,4,,\nc,2,5,4,2,\nd,3,5,2,2,2\n");
    assert_true(l.at[0].gpus_min == 1 && l.at[0].gpus_max == 8 && l.at[1].gpus_max == 0);
    assert_true(l.at[2].gpus_min == 2 && l.at[2].gpus_max == 4 && l.at[3].gpus_max == 0);
    char  *text = NULL;
    size_t len = 0;
    FILE  *f = open_memstream(&text, &len);
    trace_write(f, &l);
    assert_int_equal(fclose(f), 0);
    assert_string_equal(text, PLAIN_ELASTIC "a,0,5,2,1,8\nb,1,5,4,,\nc,2,5,4,2,4\nd,3,5,2,,\n");
    free(text);
}

static void made_elastic(void **state) {
    (void)state;
    ElasticRange all, half;
    assert_int_equal(elastic_range_read("1..4", &all), ERR_OK);
    assert_int_equal(elastic_range_read("1..4,0.5", &half), ERR_OK);
    JobTraceOptions o = {.elastic = all};
    JobList         l = good("auto", &o, PLAIN "a,0,5,2\nb,1,5,8\nc,2,5,0\n");
    assert_true(l.at[0].gpus_min == 1 && l.at[0].gpus_max == 4);
    assert_true(l.at[1].gpus_max == 0 && l.at[2].gpus_max == 0);
    Job      jobs[1000];
    uint32_t n = 0;
    for (uint32_t i = 0; i < 1000; i++) jobs[i] = (Job){.row = i, .gpus = 1, .gpu_milli = 1000};
    l = (JobList){.at = jobs, .n = 1000};
    job_list_make_elastic(&l, &half);
    for (uint32_t i = 0; i < 1000; i++) n += jobs[i].gpus_max > 0;
    assert_true(n > 450 && n < 550);
    static const char *const wrong[] = {"",      "1",      "1..",   "4..1", "0..4",
                                        "1..4,", "1..4,2", "1..4 ", "x"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_int_equal(elastic_range_read(wrong[i], &all), ERR_ARG);
}

static void plain(void **state) {
    (void)state;
    JobList l = good("auto", NULL,
                     "job,submit_s,duration_s,gpus,gpu_milli,cores,memory_gb,model,tenant,priority,"
                     "gpu_type\r\n"
                     "late,7.5,10,1,250,2.5,5.46875,bert,t0,-3,T4|A10\r\n"
                     "\"a,b\",0,0,8,,,,,,,\r\n"
                     "tie,7.5,,1,,,,bert,t1,2,T4");
    assert_string_equal(l.format, "plain");
    assert_int_equal(l.n, 3);
    const Job *j = l.at;
    assert_string_equal(j[0].id, "a,b");
    assert_true(j[0].row == 1 && j[0].gpus == 8 && j[0].gpu_milli == 1000 && j[0].work == 0);
    assert_true(j[0].model == JOB_NONE && j[0].cores_milli == 0 && j[0].gpu_types == 0);
    assert_string_equal(j[1].id, "late");
    assert_true(j[1].submit == S(15) / 2 && j[1].work == S(10) && j[1].gpu_milli == 250);
    assert_true(j[1].cores_milli == 2500 && j[1].memory_mib == 5600 && j[1].priority == -3);
    assert_true(j[1].gpu_types == 3 && j[2].gpu_types == 1 && l.n_gpu_types == 2);
    assert_string_equal(job_model(&l, &j[1]), "bert");
    assert_string_equal(job_tenant(&l, &j[2]), "t1");
    assert_true(j[2].work == JOB_UNKNOWN && j[1].model == j[2].model);
    assert_true(job_gpu_seconds(&j[1]) == 2.5 && job_gpu_seconds(&j[2]) == 0);
}

static void philly(void **state) {
    (void)state;
    JobList l = good("auto", NULL,
                     "timestamp,duration,num_gpus,gpu_time,cluster\n"
                     "2020-03-01 00:00:00,66.0,1,66.0,a\n"
                     "2020-02-28 23:59:50,10.0,4,40.0,b\n\n");
    assert_string_equal(l.format, "philly");
    assert_true(l.n == 2 && l.origin == S(1582934390));
    assert_true(l.at[0].submit == 0 && l.at[0].gpus == 4 && l.at[0].row == 1);
    assert_true(l.at[1].submit == S(86410) && l.at[1].work == S(66));
    assert_string_equal(l.at[1].id, "0");
    assert_string_equal(job_tenant(&l, &l.at[1]), "a");
}

static void helios(void **state) {
    (void)state;
    JobList l =
        good("auto", NULL,
             "job_id,user,vc,gpu_num,cpu_num,node_num,state,submit_time,start_time,end_time,"
             "duration,queue\n"
             "5,u1,vcA,0,8,1,COMPLETED,2020-04-01 00:00:01,x,y,60,1\n"
             "6,u2,vcB,16,64,2,FAILED,2020-04-01 00:00:00,None,None,0,0\n");
    assert_string_equal(l.format, "helios");
    assert_true(l.at[0].gpus == 16 && l.at[0].cores_milli == 64000 && l.at[0].work == 0);
    assert_true(l.at[1].gpus == 0 && l.at[1].gpu_milli == 0 && l.at[1].submit == S(1));
    assert_string_equal(l.at[1].id, "5");
}

static void openb(void **state) {
    (void)state;
    JobList l = good("auto", NULL,
                     "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,"
                     "creation_time,deletion_time,scheduled_time\n"
                     "p0,12000,16384,1,460,,LS,Running,1,121,3\n"
                     "p1,6000,5600,1,1000,T4|P100|T4,BE,Pending,5,9,\n"
                     "p2,8000,1,0,0,,Burstable,Failed,7,30,8\n");
    assert_string_equal(l.format, "openb");
    assert_true(l.at[0].submit == S(1) && l.at[0].work == S(118) && l.at[0].gpu_milli == 460);
    assert_true(l.at[0].cores_milli == 12000 && l.at[0].memory_mib == 16384);
    assert_true(l.at[0].priority == 1 && l.at[0].class == JOB_PLAIN);
    assert_true(l.at[1].work == JOB_UNKNOWN && l.at[1].class == JOB_BEST);
    assert_true(l.at[1].gpu_types == 3 && l.at[2].gpus == 0);
    l = good("auto", NULL,
             "name,cpu_milli,memory_mib,num_gpu,gpu_milli\nb,1,1,8,1000\na,1,1,1,5\n");
    assert_true(l.n == 2 && l.at[0].submit == 0 && l.at[0].work == JOB_UNKNOWN);
    assert_string_equal(l.at[0].id, "b");
}

static void tiresias(void **state) {
    (void)state;
    JobList l = good("auto", NULL,
                     "job_id,num_gpu,submit_time,iterations,model_name,duration,interval\r\n"
                     "0,2,30,606,vgg19,164,30\r\n");
    assert_string_equal(l.format, "tiresias");
    assert_true(l.at[0].submit == S(30) && l.at[0].work == S(164) && l.at[0].iterations == 606);
    l = good("auto", NULL, "job_id,gpu_num,submit_time,duration\n0,8,79,47194\n");
    assert_string_equal(l.format, "lucid");
    assert_true(l.at[0].gpus == 8 && l.at[0].submit == S(79));
}

static void muri(void **state) {
    (void)state;
    const char *text = "job_id,num_gpu,submit_time,iterations,model_name,batch_size,duration,"
                       "interval,iteration_time,resource_time_0,resource_time_1,resource_time_2,"
                       "priority\r\n0,1,1500,58,dqn,128,28420,46,490,446,8,0,1\r\n";
    JobList     l = good("auto", NULL, text);
    assert_string_equal(l.format, "muri");
    assert_true(l.at[0].submit == S(3) / 2 && l.at[0].work == S(28420) / 1000);
    assert_true(l.at[0].iteration == S(490) / 1000 && l.at[0].priority == 1);
    JobTraceOptions o = {.unit = JOB_SECOND};
    l = good("muri", &o, text);
    assert_true(l.at[0].submit == S(1500));
}

static void chronus(void **state) {
    (void)state;
    JobList l = good("auto", NULL,
                     "job_id,user,num_gpu,submit_time,iterations,model_name,duration,interval,"
                     "expect_time_list,expect_value_list,best_effort,job_type\n"
                     "0,vcA,1,5,55,m,9,5,15-18-22,10-8-5,0,soft\n"
                     "1,vcA,1,7,76,m,10,6,23,10,0,strict\n"
                     "2,vcB,4,9,1,m,10,6,9,10,1,best\n");
    assert_string_equal(l.format, "chronus");
    assert_true(l.at[0].submit == S(300) && l.at[0].work == S(540) && l.at[0].deadline == S(900));
    assert_true(l.at[0].class == JOB_SOFT && l.at[1].class == JOB_STRICT);
    assert_true(l.at[2].class == JOB_BEST && l.at[2].deadline == 0);
}

static void by_iterations(void **state) {
    (void)state;
    IterationTime        rate[] = {{"m", 1, 0.5, 0}, {"m", 4, 0.25, 0}, {"p", 1, 2, 30}};
    const IterationTimes rates = {rate, 3};
    JobTraceOptions      o = {.rates = &rates};
    const char          *gavel = "m\trun %s\tdir\t--n\t1\t200\t1\t1\t-1.000000\t3\n"
                                 "m\trun\tdir\t--n\t1\t200\t8\t2\t1.5\t0\n";
    JobList              l = good("auto", NULL, gavel);
    assert_string_equal(l.format, "gavel");
    assert_true(l.at[0].gpus == 8 && l.at[0].work == JOB_UNKNOWN && l.at[0].iterations == 200);
    l = good("gavel", &o, gavel);
    assert_true(l.at[0].work == S(50) && l.at[0].deadline == S(75) && l.at[0].priority == 2);
    assert_true(l.at[1].work == S(100) && l.at[1].deadline == 0 && l.at[1].submit == S(3));
    l = good("gavel", &o, "m\tcd x\t-step\t1\t100\t6.000000\t2\n");
    assert_true(l.at[0].gpus == 2 && l.at[0].work == S(50) && l.at[0].submit == S(6));
    l = good("auto", &o, "0,m,0.001,264,1\n");
    assert_string_equal(l.format, "synergy");
    assert_true(l.at[0].submit == 1000000 && l.at[0].work == S(132));
    l = good("auto", &o, "name,time,application,num_replicas,batch_size\nc-0,107,p,6,2048\n");
    assert_string_equal(l.format, "pollux");
    assert_true(l.at[0].work == S(60) && l.at[0].gpus == 6);
}

static void refused(void **state) {
    (void)state;
    bad("auto", "", "t.csv:1: is empty");
    bad("auto", "a,b,c\n1,2,3\n", "t.csv:1: unknown trace format");
    bad("plane", PLAIN, "did you mean plain");
    bad("plain", "job,submit_s,gpus\n1,0,1\n", "t.csv:1: no column 'duration_s'");
    bad("gavel", "a\tb\n", "2 fields do not make a job");
    bad("plain", "job,submit_s,duration_s,gpus,colour\n1,0,1,1,red\n", "no column 'colour'");
    bad("plain", "job,submit_s,duration_s,gpus,gpus\n1,0,1,1,1\n", "'gpus' is there twice");
    bad("plain", PLAIN, "has a header and no jobs");
    bad("plain", PLAIN "1,0,5,1\n2,0,5\n", "t.csv:3: 3 fields where there should be 4");
    bad("plain", PLAIN "1,0,5,1\n\n2,0,5,1\n", "t.csv:3: an empty line");
    bad("plain", PLAIN_ELASTIC "1,0,5,2,3,4\n", "t.csv:2: gpus_min, gpus_max: 3 to 4 GPUs");
    bad("plain", PLAIN_ELASTIC "1,0,5,2,1,1\n", "give bounds around its 2 whole GPUs");
    bad("plain", PLAIN_ELASTIC "1,0,5,0,0,4\n", "give bounds around its 0 whole GPUs");
    bad("plain", PLAIN_ELASTIC "1,0,5,2,-1,4\n", "gpus_min: '-1' is negative");
    bad("plain", PLAIN "1,0,-5,1\n", "t.csv:2: duration_s: '-5' is negative");
    bad("plain", PLAIN "1,x,5,1\n", "t.csv:2: submit_s: 'x' is not a number");
    bad("plain", PLAIN "1,,5,1\n", "t.csv:2: submit_s: '' is empty");
    bad("plain", PLAIN "1,99999999999999999999,5,1\n", "is too large");
    bad("plain", PLAIN "1,nan,5,1\n", "is not a number");
    bad("plain", PLAIN "1,0,5,1.5\n", "t.csv:2: gpus: '1.5' is not a whole number");
    bad("plain", PLAIN "1,0,5,100001\n", "gpus: '100001' is too large");
    bad("plain", PLAIN "1,0,5,1\n1,0,5,1\n", "t.csv:3: job: '1' names a second job");
    bad("plain", PLAIN ",0,5,1\n", "t.csv:2: job: '' is empty");
    bad("plain", "job,submit_s,duration_s,gpus,gpu_milli\n1,0,5,2,500\n", "only one GPU");
    bad("plain", "job,submit_s,duration_s,gpus,gpu_milli\n1,0,5,1,0\n", "0 of a GPU");
    bad("plain", "job,submit_s,duration_s,gpus,gpu_type\n1,0,5,1,A|\n", "ends in the middle");
    bad("plain", "job,submit_s,duration_s,gpus,class\n1,0,5,1,gold\n", "'gold' is no class");
    bad("philly", "timestamp,duration,num_gpus,gpu_time,cluster\n2021-02-29 00:00:00,1.0,1,1.0,a\n",
        "t.csv:2: timestamp: '2021-02-29 00:00:00' is no date");
    bad("philly", "timestamp,duration,num_gpus,gpu_time,cluster\n2021-02-28 00:00:00,1.0,2,1.0,a\n",
        "t.csv:2: gpu_time: 1.0 s is not duration times num_gpus, 2.0 s");
    bad("lucid", "job_id,gpu_num,submit_time,duration\n1,0,0,5\n", "asks for no GPU");
    bad("openb",
        "name,cpu_milli,memory_mib,num_gpu,gpu_milli,creation_time,deletion_time,scheduled_time\n"
        "p,1,1,1,1000,0,1,5\n",
        "t.csv:2: deletion_time: is before scheduled_time");
    JobList l;
    assert_int_equal(trace_parse("t.csv", "job\0,", 5, "plain", NULL, &arena, &l), ERR_PARSE);
    assert_int_equal(trace_read("/nonexistent/t.csv", "auto", NULL, &arena, &l), ERR_IO);
}

static void too_much(void **state) {
    (void)state;
    Arena   small;
    JobList l;
    size_t  n = 1 << 16;
    char   *lines = calloc(n, 1);
    memset(lines, '\n', n - 1);
    memcpy(lines, PLAIN, strlen(PLAIN));
    assert_int_equal(arena_init(&small, (size_t)1 << 20), ERR_OK);
    assert_int_equal(trace_parse("t.csv", lines, n - 1, "plain", NULL, &small, &l), ERR_LIMIT);
    arena_finish(&small);
    free(lines);
}

static void formats_have_names(void **state) {
    (void)state;
    uint32_t n = 0;
    while (trace_format_name(n) != NULL) n++;
    assert_int_equal(n, 14);
    assert_non_null(strstr(trace_formats(&arena), "gavel"));
}

static JobList window(TraceWindow w, const char *text) {
    JobTraceOptions o = {.window = w};
    return good("auto", &o, text);
}

static void windows(void **state) {
    (void)state;
    const char *text = PLAIN "a,0,60,1\nb,60,,2\nc,120,3600,4\nd,3600,10,8\n";
    assert_int_equal(window((TraceWindow){0}, text).n, 4);
    JobList l = window((TraceWindow){.from = "1m", .to = "1h", .rebase = true}, text);
    assert_true(l.n == 2 && l.at[0].submit == 0 && l.at[1].submit == S(60) && l.at[1].row == 2);
    l = window((TraceWindow){.from = "60"}, text);
    assert_true(l.n == 3 && l.at[0].submit == S(60));
    assert_int_equal(window((TraceWindow){.known = true}, text).n, 3);
    assert_int_equal(window((TraceWindow){.min_s = 60}, text).n, 2);
    assert_int_equal(window((TraceWindow){.max_s = 60}, text).n, 2);
    assert_int_equal(window((TraceWindow){.min_gpus = 2, .max_gpus = 4}, text).n, 2);
    l = window((TraceWindow){.skip = 1, .jobs = 2}, text);
    assert_true(l.n == 2 && l.at[0].gpus == 2 && l.at[1].gpus == 4);
    const char *dated = "timestamp,duration,num_gpus,gpu_time,cluster\n"
                        "2020-03-01 00:00:00,1,1,1,a\n2020-03-02 08:00:00,1,1,1,a\n";
    l = window((TraceWindow){.from = "2020-03-02", .rebase = true}, dated);
    assert_true(l.n == 1 && l.at[0].submit == 0 && l.origin == S(1583136000));
    assert_int_equal(window((TraceWindow){.to = "2020-03-02 08:00:00"}, dated).n, 1);
    TimeNs t;
    assert_int_equal(trace_window_time("2020-03-02", &(JobList){.name = "x"}, &t), ERR_ARG);
    assert_int_equal(trace_window_time("2020-13-02", &l, &t), ERR_ARG);
    assert_int_equal(trace_window_time("h", &l, &t), ERR_ARG);
    assert_int_equal(trace_window_time("-3h", &l, &t), ERR_ARG);
    assert_int_equal(trace_window_time("1.5d", &l, &t), ERR_OK);
    assert_true(t == S(129600));
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plain),        cmocka_unit_test(elastic),
        cmocka_unit_test(made_elastic), cmocka_unit_test(philly),
        cmocka_unit_test(helios),       cmocka_unit_test(openb),
        cmocka_unit_test(tiresias),     cmocka_unit_test(muri),
        cmocka_unit_test(chronus),      cmocka_unit_test(by_iterations),
        cmocka_unit_test(refused),      cmocka_unit_test(too_much),
        cmocka_unit_test(windows),      cmocka_unit_test(formats_have_names),
    };
    return cmocka_run_group_tests(tests, begin, end);
}
