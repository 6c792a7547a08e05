// Slurm's accounting and Kubernetes' pods: jobs, what is left out, errors with their places.
#include "cluster/trace/job_trace.h"
#include "cluster/trace/pod.h"
#include "cluster/trace/trace_window.h"
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

static JobList good(const char *text) {
    JobList l = {0};
    if (trace_parse("t", text, strlen(text), "auto", NULL, &arena, &l) != ERR_OK)
        fail_msg("%s", err_why());
    return l;
}

static void bad(const char *format, const char *text, const char *why) {
    JobList l = {.n = 77};
    if (trace_parse("t", text, strlen(text), format, NULL, &arena, &l) == ERR_OK)
        fail_msg("accepted: %s", text);
    if (strstr(err_why(), why) == NULL) fail_msg("'%s' does not say '%s'", err_why(), why);
    assert_int_equal(l.n, 77);
}

static uint32_t left(const JobList *l, const char *reason) {
    for (uint32_t i = 0; i < l->n_left_out; i++)
        if (strcmp(l->left_out[i].reason, reason) == 0) return l->left_out[i].rows;
    return 0;
}

static const Job *job(const JobList *l, const char *id) {
    for (uint32_t i = 0; i < l->n; i++)
        if (strcmp(l->at[i].id, id) == 0) return &l->at[i];
    fail_msg("no job %s", id);
    return NULL;
}

#define S(n) ((TimeNs)(n)*JOB_SECOND)

static void sacct(void **state) {
    (void)state;
    JobList l = good(
        "JobID|User|Account|JobName|Submit|Start|End|ElapsedRaw|State|NNodes|ReqMem|AllocTRES|"
        "ReqTRES|Priority|Timelimit\n"
        "7|ann|vis|a|2024-03-01T10:00:00|2024-03-01T10:05:00|2024-03-01T12:05:00|7100|COMPLETED|1|"
        "64G|billing=9,cpu=16,gres/gpu:a100=2,gres/gpu=2,mem=64G,node=1||4294901759|UNLIMITED\n"
        "7.batch||vis|batch|2024-03-01T10:05:00|2024-03-01T10:05:00|2024-03-01T12:05:00|7200|"
        "COMPLETED|1||cpu=16,gres/gpu=2|||\n"
        "8_3|bob||b|2024-03-01T10:59:00+01:00|2024-03-01T12:00:00+01:00|2024-03-01T13:00:00+01:00|"
        "3600|CANCELLED by 1000|2|4000Mc|cpu=8,gres/gpu:a100=1,gres/gpu:v100=3||17|\n"
        "8_[4-9]|bob||b|2024-03-01T10:00:01|Unknown|Unknown|0|PENDING|1|||gres/gpu=4||\n"
        "9|bob||c|2024-03-01T10:00:01|None|2024-03-01T11:00:00|0|CANCELLED by 5|1|||gres/gpu=4||\n"
        "10|bob||c|2024-03-01T10:00:01|2024-03-01T10:00:02|Unknown|9|RUNNING|1||gres/gpu=4|||\n"
        "11|bob||c|2024-03-01T10:00:01|2024-03-01T10:00:02|2024-03-01T10:00:02|0|FAILED|1||"
        "gres/gpu=4|||\n"
        "12|bob||c|2024-03-01T10:00:02|2024-03-01T10:00:02|2024-03-01T10:00:09|7|REQUEUED|1||"
        "gres/gpu=4|||\n"
        "12|bob||c|2024-03-01T10:00:09|2024-03-01T10:01:02|2024-03-01T10:01:12|10|NODE_FAIL|1|16Gn|"
        "|gres/gpu=4||\n"
        "12|bob||c|2024-03-01T11:00:09|2024-03-01T11:01:02|2024-03-01T11:01:12|10|TIMEOUT|1|||||\n"
        "12|bob||c|2024-03-01T11:00:09|2024-03-01T11:01:02|2024-03-01T11:01:12|10|TIMEOUT|1|||||"
        "\n");
    assert_string_equal(l.format, "sacct");
    assert_int_equal(l.n, 4);
    assert_true(l.origin == S(1709287140));
    const Job *j = job(&l, "7");
    assert_true(j->submit == S(60) && j->work == S(7100) && j->gpus == 2 && j->gpu_types == 1);
    assert_true(j->cores_milli == 16000 && j->memory_mib == 65536 && j->priority == INT32_MAX);
    assert_string_equal(job_tenant(&l, j), "vis");
    assert_string_equal(job_model(&l, j), "a");
    j = job(&l, "8_3");
    assert_true(j->submit == 0 && j->gpus == 4 && j->gpu_types == 3 && j->memory_mib == 32000);
    assert_string_equal(job_tenant(&l, j), "bob");
    assert_true(job(&l, "12")->gpus == 4 && job(&l, "12")->memory_mib == 16384);
    assert_true(job(&l, "12#2")->gpus == 0 && job(&l, "12#2")->work == S(10));
    assert_int_equal(left(&l, "job steps"), 1);
    assert_int_equal(left(&l, "jobs that have not ended"), 2);
    assert_int_equal(left(&l, "jobs that never started"), 1);
    assert_int_equal(left(&l, "jobs shorter than a second"), 1);
    assert_int_equal(left(&l, "runs that were requeued"), 1);
    assert_int_equal(left(&l, "rows stated twice"), 1);
    assert_int_equal(l.n + job_list_left_out(&l), 11);
}

static void sacct_old(void **state) {
    (void)state;
    JobList l = good("JobIDRaw|Submit|Start|End|NNodes|ReqCPUS|ReqMem|AllocGRES|ReqGRES|\r\n"
                     "7|2019-03-01T10:00:00|2019-03-01T10:00:00|2019-03-01T11:00:00|2|8|16Gn|"
                     "gpu:tesla:2(IDX:0,3),net:1|gpu:1|\r\n"
                     "8|1551434401|1551434402|1551438000|2|8|2Gc|7696487:4|gpu:4|\r\n"
                     "9|2019-03-01T10:00:02|2019-03-01T10:00:02|2019-03-01T11:00:00|3|8|?||"
                     "gres:gpu:v100:2,gres:gpu|\r\n");
    assert_int_equal(l.n, 3);
    assert_true(job(&l, "7")->gpus == 2 && job(&l, "7")->memory_mib == 32768);
    assert_true(job(&l, "7")->cores_milli == 8000 && job(&l, "7")->gpu_types == 1);
    assert_true(job(&l, "8")->gpus == 4 && job(&l, "8")->memory_mib == 16384);
    assert_true(job(&l, "9")->gpus == 9 && job(&l, "9")->memory_mib == 0);
    assert_true(job(&l, "8")->submit == S(1) && job(&l, "8")->work == S(3598));
}

#define HET "JobID|Submit|Elapsed|State|AllocTRES\n"

static void sacct_joins(void **state) {
    (void)state;
    JobList l = good(HET "5+0|2024-03-01T10:00:00|10:00|FAILED|cpu=4,mem=1.5G\n"
                         "5+1|2024-03-01T10:00:00|10:01|FAILED|cpu=8,gres/gpu=8,mem=512M\n"
                         "5+1|2024-03-01T10:00:00|10:01|FAILED|cpu=8,gres/gpu=8,mem=512M\n"
                         "5+0|2024-04-01T10:00:00|1-00:00:00.5|FAILED|gres/gpu=1\n");
    assert_int_equal(l.n, 2);
    assert_true(l.at[0].gpus == 8 && l.at[0].gpu_milli == 1000 && l.at[0].work == S(601));
    assert_true(l.at[0].cores_milli == 12000 && l.at[0].memory_mib == 2048);
    assert_string_equal(l.at[1].id, "5#2");
    assert_true(l.at[1].work == S(86400) + S(1) / 2);
    assert_int_equal(left(&l, "components joined to their job"), 1);
    assert_int_equal(left(&l, "rows stated twice"), 1);
}

static void sacct_refused(void **state) {
    (void)state;
    bad("auto", "JobID|Submit|State|AllocTRES\n", "t:1: no column states a job's duration; add");
    bad("auto", "User|Submit|Elapsed|State|AllocTRES\n", "a job's name; add JobID");
    bad("auto", "JobID|Submit|Elapsed|State\n",
        "t:1: no column states a job's GPUs; add AllocTRES");
    bad("auto", "JobID|Submit|Elapsed|AllocTRES\n", "whether a job has ended");
    bad("sacct", "JobID|Elapsed\n", "no column 'Submit'");
    bad("auto", HET "1|yesterday|10:00|FAILED|\n", "t:2: Submit: 'yesterday' is no time");
    bad("auto", HET "1|2024-03-01T10:00:00|ten|FAILED|\n", "t:2: Elapsed: 'ten' is no span");
    bad("auto", HET "1|2024-03-01T10:00:00|1:2:3:4|FAILED|\n", "is no span of time");
    bad("auto", HET "1|2024-03-01T10:00:00|10:00|FAILED|gres/gpu=x\n", "AllocTRES: 'x' is not");
    bad("auto", HET "1|2024-03-01T10:00:00|10:00|FAILED|gpu\n", "is no NAME=AMOUNT");
    bad("auto", HET "1|2024-03-01T10:00:00|10:00|FAILED|gres/gpu=9999999\n", "too large");
    bad("auto", HET "|2024-03-01T10:00:00|10:00|FAILED|\n", "every row needs a JobID");
    bad("auto", HET "1|2024-03-01T10:00:00|10:00|FAILED\n", "4 fields where there should be 5");
    bad("auto", HET "1|2024-03-01T10:00:00|10:00|FAILED||x\n", "leave out JobName");
    bad("auto", HET "1|2024-03-01T10:00:00|00:00|PENDING|\n2.0|Unknown|00:00|COMPLETED|\n",
        "has no job of format sacct that ran to its end: 1 jobs that have not ended, 1 job steps");
}

static void instants(void **state) {
    (void)state;
    TimeNs t = 0;
    assert_true(instant_read("2024-03-01T10:00:00", &t) && t == S(1709287200));
    assert_true(instant_read("2024-03-01T10:00:00.25Z", &t) && t == S(1709287200) + S(1) / 4);
    assert_true(instant_read("2024-03-01T10:00:00+01:30", &t) && t == S(1709287200 - 5400));
    assert_true(instant_read("2024-03-01T10:00:00-0530", &t) && t == S(1709287200 + 19800));
    const char *none[] = {"",
                          "2024-03-01",
                          "2024-03-01T10:00:00X",
                          "2024-03-01T10:00:00.Z",
                          "2024-03-01T10:00:00+25:00",
                          "2024-03-01T10:00:00+1",
                          "2024-03-01T10:00:00.1234567890Z",
                          "1970-01-01T00:00:00+01:00"};
    for (size_t i = 0; i < sizeof none / sizeof *none; i++)
        if (instant_read(none[i], &t)) fail_msg("accepted: %s", none[i]);
}

static void quantities(void **state) {
    (void)state;
    const struct {
        const char *text;
        int64_t     unit, is;
    } good_ones[] = {{"500m", 1000, 500},     {"2", 1000, 2000},      {"1.5", 1000, 1500},
                     {"100u", 1000, 1},       {"2Gi", 1, 2147483648}, {"128974848", 1, 128974848},
                     {"129e6", 1, 129000000}, {"129M", 1, 129000000}, {"123Mi", 1, 128974848},
                     {"1E3", 1, 1000},        {"5e-1", 1000, 500},    {"0", 1, 0},
                     {"1500m", 1, 2},         {"4k", 1, 4000}};
    int64_t v = 0;
    for (size_t i = 0; i < sizeof good_ones / sizeof *good_ones; i++) {
        assert_int_equal(quantity_read(good_ones[i].text, good_ones[i].unit, 1LL << 50, &v),
                         ERR_OK);
        if (v != good_ones[i].is) fail_msg("%s: %lld", good_ones[i].text, (long long)v);
    }
    const char *none[] = {"", "x", "5x", "-1", "1e", "e3", "1 Gi", "1e99", "5E", "nan", "1..2"};
    for (size_t i = 0; i < sizeof none / sizeof *none; i++)
        if (quantity_read(none[i], 1, 1LL << 50, &v) == ERR_OK) fail_msg("accepted: %s", none[i]);
}

#define POD(name, uid, more, resources, status)                                                    \
    "{\"kind\":\"Pod\",\"metadata\":{\"name\":\"" name "\",\"namespace\":\"n\",\"uid\":\"" uid     \
    "\",\"creationTimestamp\":\"2024-03-01T10:00:00Z\"" more                                       \
    "},\"spec\":{\"containers\":[{\"resources\":{\"requests\":{" resources                         \
    "}}}]},\"status\":{" status "}}"
#define RAN(from, to)                                                                              \
    "\"phase\":\"Succeeded\",\"containerStatuses\":[{\"state\":{\"terminated\":{\"startedAt\":"    \
    "\"2024-03-01T" from "Z\",\"finishedAt\":\"2024-03-01T" to "Z\"}}}]"
#define OWNED(kind, name)                                                                          \
    ",\"ownerReferences\":[{\"kind\":\"" kind "\",\"name\":\"" name "\",\"uid\":\"o\"}]"
#define GPU2 "\"nvidia.com/gpu\":\"2\",\"cpu\":\"500m\",\"memory\":\"1Gi\""

static void pods(void **state) {
    (void)state;
    JobList l = good("{\"kind\":\"List\",\"items\":[" POD(
        "alone", "a", "", GPU2, RAN("10:01:00", "10:11:00")) "," POD("live", "b", "", GPU2,
                                                                     "\"phase\":\"Running\"") "]}");
    assert_string_equal(l.format, "kubernetes");
    assert_int_equal(l.n, 1);
    assert_string_equal(l.at[0].id, "n/alone");
    assert_string_equal(job_tenant(&l, &l.at[0]), "n");
    assert_true(l.at[0].gpus == 2 && l.at[0].cores_milli == 500 && l.at[0].memory_mib == 1024);
    assert_true(l.at[0].submit == 0 && l.at[0].work == S(600) && l.origin == S(1709287200));
    assert_int_equal(left(&l, "pods that have not ended"), 1);
    l = good(POD("bare", "a", "", "\"amd.com/gpu\":1", RAN("10:01:00", "10:02:00")));
    assert_true(l.n == 1 && l.at[0].gpus == 1);
}

// Two pods at a time, then a retry: the gang is two pods large. Namesakes of other owners are other
// jobs.
static void gangs(void **state) {
    (void)state;
    JobList l = good(
        POD("t-0", "a", OWNED("PyTorchJob", "t"), GPU2, RAN("10:01:00", "10:11:00")) "\n" POD("t-1", "b", OWNED("PyTorchJob", "t"), GPU2, RAN("10:02:00", "10:05:00")) "\n" POD(
            "t-2", "c", OWNED("PyTorchJob", "t"),
            GPU2,
            RAN("10:05:00",
                "10:12:00")) "\n" POD("t", "d", "", GPU2,
                                      RAN("10:05:00",
                                          "10:12:00")) "\n" POD("r", "e", OWNED("ReplicaSet", "s"),
                                                                GPU2,
                                                                RAN("10:05:00",
                                                                    "10:12:00")) "\n" POD("g-0",
                                                                                          "f",
                                                                                          ",\"label"
                                                                                          "s\":{"
                                                                                          "\"schedu"
                                                                                          "ling.x-"
                                                                                          "k8s.io/"
                                                                                          "pod-"
                                                                                          "group\":"
                                                                                          "\"g\","
                                                                                          "\"app\":"
                                                                                          "\"bert\""
                                                                                          "}",
                                                                                          GPU2,
                                                                                          RAN("10:"
                                                                                              "05:"
                                                                                              "00",
                                                                                              "10:"
                                                                                              "12:"
                                                                                              "00")) "\n" POD("g-1",
                                                                                                              "g",
                                                                                                              ",\"labels\":{\"scheduling.x-k8s.io/pod-group\":\"g\"}",
                                                                                                              GPU2,
                                                                                                              RAN("10:05:00",
                                                                                                                  "10:13:00")) "\n" POD("h-0",
                                                                                                                                        "h",
                                                                                                                                        OWNED(
                                                                                                                                            "Job",
                                                                                                                                            "h"),
                                                                                                                                        GPU2,
                                                                                                                                        RAN("10:05:00",
                                                                                                                                            "10:13:00")) "\n" POD("h-1",
                                                                                                                                                                  "i",
                                                                                                                                                                  OWNED(
                                                                                                                                                                      "Job",
                                                                                                                                                                      "h"),
                                                                                                                                                                  GPU2,
                                                                                                                                                                  "\"phase\":\"Pending\""));
    assert_int_equal(l.n, 4);
    const Job *j = job(&l, "n/t");
    const Job *again = job(&l, "n/t#2");
    const Job *gang = j->gpus == 4 ? j : again;
    assert_true(j->gpus + again->gpus == 6 && gang->work == S(660) && gang->cores_milli == 1000);
    assert_true(job(&l, "n/r")->gpus == 2);
    assert_true(job(&l, "n/g")->gpus == 4 && job(&l, "n/g")->work == S(480));
    assert_string_equal(job_model(&l, job(&l, "n/g")), "bert");
    assert_int_equal(left(&l, "pods of jobs that have not ended"), 1);
    assert_int_equal(left(&l, "pods that have not ended"), 1);
}

static void events(void **state) {
    (void)state;
    const char *text = POD(
        "x", "a", "", GPU2,
        "\"phase\":\"Failed\",\"startTime\":\"2024-03-01T10:10:00Z\"") " {\"kind\":\"EventList\","
                                                                       "\"items\":[{\"reason\":"
                                                                       "\"Evicted\","
                                                                       "\"involvedObject\":{"
                                                                       "\"uid\":\"a\"},"
                                                                       "\"lastTimestamp\":"
                                                                       "\"2024-03-01T10:40:00Z\"},{"
                                                                       "\"reason\":\"Pulled\","
                                                                       "\"regarding\":{\"uid\":"
                                                                       "\"a\"}}]}" POD("x", "a", "",
                                                                                       GPU2,
                                                                                       "\"phase\":"
                                                                                       "\"Running"
                                                                                       "\"") "{\"ki"
                                                                                             "nd\":"
                                                                                             "\"Nod"
                                                                                             "e\"}";
    JobList l = good(text);
    assert_true(l.n == 1 && l.at[0].work == S(1800));
    assert_int_equal(left(&l, "earlier copies of a pod"), 1);
    assert_int_equal(left(&l, "objects that are neither pods nor events"), 1);
}

static void demands(void **state) {
    (void)state;
    JobList l =
        good("{\"kind\":\"Pod\",\"metadata\":{\"name\":\"p\",\"creationTimestamp\":"
             "\"2024-03-01T10:00:00Z\"},\"spec\":{\"priority\":7,\"overhead\":{\"cpu\":\"250m\"},"
             "\"nodeSelector\":{\"nvidia.com/gpu.product\":\"A100\"},\"initContainers\":["
             "{\"restartPolicy\":\"Always\",\"resources\":{\"requests\":{\"cpu\":\"1\"}}},"
             "{\"resources\":{\"requests\":{\"cpu\":\"7\",\"memory\":\"1Mi\"}}}],\"containers\":["
             "{\"resources\":{\"limits\":{\"cpu\":2,\"nvidia.com/gpu\":1}}},"
             "{\"resources\":{\"requests\":{\"cpu\":\"1\",\"memory\":\"3M\"}}}]},\"status\":{"
             "\"startTime\":\"2024-03-01T10:00:30Z\"," RAN("10:01:00", "10:11:00") "}}");
    const Job *j = &l.at[0];
    assert_string_equal(j->id, "default/p");
    assert_true(j->cores_milli == 8250 && j->memory_mib == 3 && j->gpus == 1 && j->priority == 7);
    assert_true(j->gpu_types == 1 && j->work == S(600));
}

static void kubernetes_refused(void **state) {
    (void)state;
    bad("auto", "{\"items\":[]}", "has no \"kind\"; give the output of kubectl");
    bad("auto", "{\"kind\":\"List\",\"items\":[]}", "t: has no pods");
    bad("auto", "{\"kind\":\"List\"}", "without \"items\"");
    bad("auto", "{\"kind\":\"List\",\n\"items\":[}", "t:2:");
    bad("auto", "{\"kind\":\"Node\"}\n\n{\"kind\":", "t:3:");
    bad("auto", "[{\"kind\":\"Pod\"}]", "t: items[0]: metadata.name: is missing");
    bad("auto", "[7]", "t: items[0]: is no object");
    bad("kubernetes", "job,submit_s\n", "t:1:");
    bad("auto", POD("x", "a", "", "\"cpu\":\"5x\"", ""),
        "t: pod n/x: spec.containers[0]: resources: cpu: '5x' is no quantity; write 2");
    bad("auto", "{\"kind\":\"Node\"}" POD("x", "a", "", "\"cpu\":[]", ""), "document 2: pod n/x");
    bad("auto", POD("x", "a", "", "", "\"startTime\":\"noon\""), "status.startTime: 'noon'");
    bad("auto", POD("x", "a", "", "\"nvidia.com/mig-1g.5gb\":\"1\"", RAN("10:01:00", "10:02:00")),
        "1 pods with a part of a GPU");
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sacct),
        cmocka_unit_test(sacct_old),
        cmocka_unit_test(sacct_joins),
        cmocka_unit_test(sacct_refused),
        cmocka_unit_test(instants),
        cmocka_unit_test(quantities),
        cmocka_unit_test(pods),
        cmocka_unit_test(gangs),
        cmocka_unit_test(events),
        cmocka_unit_test(demands),
        cmocka_unit_test(kubernetes_refused),
    };
    return cmocka_run_group_tests(tests, begin, end);
}
