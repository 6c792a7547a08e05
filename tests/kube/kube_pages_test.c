// What pages are made of: metrics, why a pod waits, progress reports.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "kube/kube_metrics.h"
#include "kube/kube_progress.h"
#include "kube/kube_why.h"
#include "tests/kube/kube_case.h"
#include "tests/runner.h"

#define CPU(n) ",'containers':[{'name':'c','resources':{'requests':{'cpu':'" n "'}}}]"

static KubeCase    c;
static Arena       arena;
static KubeMetrics metrics;

static int setup(void **state) {
    (void)state;
    metrics = (KubeMetrics){.counts = {0}};
    kube_case_begin(&c, NULL);
    kube_case_node(&c, "n0", "", "");
    kube_case_node(&c, "n1", "", ",'taints':[{'key':'team','effect':'NoSchedule'}]");
    return arena_init(&arena, 8 << 20) != ERR_OK;
}

static int teardown(void **state) {
    (void)state;
    arena_finish(&arena);
    kube_case_end(&c);
    return 0;
}

static const char *text_of(const KubeGauges *g) {
    Str out;
    assert_int_equal(kube_metrics_text(&metrics, g, &arena, &out), ERR_OK);
    return arena_printf(&arena, "%.*s", (int)out.len, out.at);
}

static void has(const char *text, const char *line) {
    const char *at = strstr(text, line);
    if (at == NULL) fail_msg("no line %s", line);
}

static void test_metrics(void **state) {
    (void)state;
    KubeGauges g = {.profile = "a\"b", .lease = "l", .leader = true, .nodes = 7, .backoff = 3};
    g.unfit[FIT_INSUFFICIENT] = 2;
    g.unfit[FIT_PODS] = 3;
    g.unfit[FIT_TAINT] = 1;
    g.watched[KUBE_NODES] = true;
    g.watches[KUBE_NODES] = (KubeWatchCounts){.relists = 4, .heard = 1, .synced = true};
    g.now = 1 + 2500000000;
    kube_metrics_count(&metrics, KUBE_COUNT_ATTEMPT_SCHEDULED);
    kube_metrics_time(&metrics, KUBE_TIME_ALGORITHM, 0.0015);
    kube_metrics_time(&metrics, KUBE_TIME_ALGORITHM, 1e9);
    kube_metrics_sli(&metrics, 3, 0.5);
    kube_metrics_sli(&metrics, 99, 0.5);
    kube_metrics_call(&metrics, "PATCH", 3000000);
    kube_metrics_call(&metrics, "OTHER", 3000000);
    const char *text = text_of(&g);
    has(text, "\nscheduler_schedule_attempts_total{result=\"scheduled\",profile=\"a\\\"b\"} 1\n");
    has(text, "\nscheduler_scheduling_algorithm_duration_seconds_bucket{le=\"0.001\"} 0\n");
    has(text, "\nscheduler_scheduling_algorithm_duration_seconds_bucket{le=\"0.002\"} 1\n");
    has(text, "\nscheduler_scheduling_algorithm_duration_seconds_bucket{le=\"16.384\"} 1\n");
    has(text, "\nscheduler_scheduling_algorithm_duration_seconds_bucket{le=\"+Inf\"} 2\n");
    has(text, "\nscheduler_pod_scheduling_sli_duration_seconds_count{attempts=\"3\"} 1\n");
    has(text, "\nscheduler_pod_scheduling_sli_duration_seconds_count{attempts=\"15+\"} 1\n");
    has(text, "\nrest_client_request_duration_seconds_count{verb=\"PATCH\",host=\"\"} 1\n");
    has(text, "\nscheduler_pending_pods{queue=\"backoff\"} 3\n");
    has(text, "\nscheduler_unschedulable_pods{plugin=\"NodeResourcesFit\",profile=\"a\\\"b\"} 5\n");
    has(text, "\nscheduler_unschedulable_pods{plugin=\"TaintToleration\",profile=\"a\\\"b\"} 1\n");
    has(text, "\ncotenant_kube_relists_total{kind=\"nodes\"} 4\n");
    has(text, "\ncotenant_kube_watch_age_seconds{kind=\"nodes\"} 2.5\n");
    has(text, "\nleader_election_master_status{name=\"l\"} 1\n");
}

// Every line is a comment or a sample; a family is described once, before its samples.
static void test_metrics_form(void **state) {
    (void)state;
    KubeGauges g = {.profile = NULL};
    char      *text = arena_printf(&arena, "%s", text_of(&g)), *save = NULL;
    char       family[128] = "";
    for (char *line = strtok_r(text, "\n", &save); line != NULL;
         line = strtok_r(NULL, "\n", &save)) {
        if (strncmp(line, "# HELP ", 7) == 0) {
            size_t n = strcspn(line + 7, " ");
            (void)snprintf(family, sizeof family, "%.*s", (int)n, line + 7);
        } else if (strncmp(line, "# TYPE ", 7) == 0) {
            assert_int_equal(strncmp(line + 7, family, strlen(family)), 0);
        } else {
            assert_int_equal(strncmp(line, family, strlen(family)), 0);
            char *end, *value = strrchr(line, ' ');
            assert_non_null(value);
            (void)strtod(value + 1, &end);
            assert_true(*end == '\0' && end != value + 1);
        }
    }
}

static json_t *why_of(const char *pod) {
    const KubeWait w = {.left = -1, .queue = "active", .policy = "fifo", .place = 2, .of = 3};
    json_t        *out = kube_why(c.state, kube_state_pod(c.state, "default", pod), &w);
    assert_non_null(out);
    return out;
}

static const char *text_at(const json_t *o, const char *key) {
    const char *text = json_string_value(json_object_get(o, key));
    return text != NULL ? text : "";
}

static const char *help(const json_t *o, const char *kind) {
    size_t  i;
    json_t *row;
    json_array_foreach(json_object_get(o, "would_help"), i, row) {
        if (strcmp(text_at(row, "kind"), kind) == 0) return text_at(row, "text");
    }
    return "";
}

static void test_why_room(void **state) {
    (void)state;
    (void)kube_case_bound(&c, "a", "n0", "", CPU("3"));
    (void)kube_case_pod(&c, "p", "", CPU("2"));
    json_t *o = why_of("p");
    assert_string_equal(text_at(o, "state"), "waiting");
    assert_int_equal(json_integer_value(json_object_get(o, "nodes")), 2);
    assert_int_equal(json_integer_value(json_object_get(o, "nodes_that_fit")), 0);
    has(text_at(o, "message"), "0/2 nodes are available");
    assert_string_equal(
        help(o, "room"),
        "1 more core on one node: n0 has 1 free of 4 and nothing else is in the way "
        "there");
    assert_string_equal(help(o, "request"),
                        "a smaller request: with 1 core instead of 2 it fits on n0 now");
    has(help(o, "constraint"), "node n1: enough is free, if the pod tolerated the taint: team");
    has(help(o, "end"), "1 of 2 nodes could run it");
    assert_int_equal(json_integer_value(json_object_get(json_object_get(o, "queue"), "place")), 2);
    json_decref(o);
}

// What it says would help does help.
static void test_help_is_true(void **state) {
    (void)state;
    (void)kube_case_bound(&c, "a", "n0", "", CPU("3"));
    (void)kube_case_pod(&c, "p", "", CPU("1"));
    json_t *o = why_of("p");
    assert_int_equal(json_integer_value(json_object_get(o, "nodes_that_fit")), 1);
    assert_null(json_object_get(o, "would_help"));
    json_decref(o);
    kube_case_gone(&c, KUBE_PODS_KIND, "{'metadata':{'namespace':'default','name':'p'}}");
    (void)kube_case_pod(&c, "p", "",
                        ",'tolerations':[{'key':'team','operator':'Exists'}]" CPU("2"));
    o = why_of("p");
    assert_int_equal(json_integer_value(json_object_get(o, "nodes_that_fit")), 1);
    json_decref(o);
}

static void test_why_never(void **state) {
    (void)state;
    (void)kube_case_pod(&c, "p", "", CPU("9"));
    json_t *o = why_of("p");
    has(help(o, "larger"), "a larger node: it asks for 9 cores");
    has(help(o, "request"), "with 4 cores instead of 9 it fits on n0 now");
    has(help(o, "never"), "no node of this cluster could run it even if it were empty");
    json_decref(o);
    assert_string_equal(kube_why_meant(c.state, "default", "q"), "p");
    assert_null(kube_why_meant(c.state, "other", "p"));
}

static uint32_t report(const char *body, KubeReport *out) {
    char  why[PROGRESS_WHY];
    char *text = arena_printf(&arena, "%s", body);
    for (char *at = text; *at != '\0'; at++)
        if (*at == '\'') *at = '"';
    return kube_progress_read(c.state, text, strlen(text), INT64_C(1800000000000000000), out, why);
}

static void test_progress(void **state) {
    (void)state;
    KubeReport r = {.pod = NULL};
    KubePod   *p = kube_case_bound(&c, "p", "n0", "", CPU("1"));
    assert_int_equal(report("{'namespace':'default','pod':'p','uid':'p-uid','iterations':7,"
                            "'iterations_per_second':0.5}",
                            &r),
                     200);
    assert_true(r.pod == p && r.iterations == 7 && r.rate == 0.5);
    assert_int_equal(report("{'namespace':'default','pod':'p','uid':'x','iterations':7}", &r), 409);
    assert_int_equal(report("{'namespace':'default','pod':'q','uid':'x','iterations':7}", &r), 404);
    assert_int_equal(report("{'namespace':'default','pod':'p','uid':'p-uid'}", &r), 400);
    assert_int_equal(report("{'namespace':'default','pod':'p','uid':'p-uid','iterations':-1}", &r),
                     400);
    assert_int_equal(report("{'namespace':'default','pod':'p','uid':'p-uid','iterations':'7'}", &r),
                     400);
    assert_int_equal(report("{'namespace':7}", &r), 400);
    assert_int_equal(report("nonsense", &r), 400);
    kube_state_progress(p, 7, 0.5, INT64_C(1800000000000000000) - 500000000);
    assert_int_equal(report("{'namespace':'default','pod':'p','uid':'p-uid','iterations':8}", &r),
                     429);
}

// A report over HTTP survives a change of the pod; a later annotation replaces it.
static void test_progress_kept(void **state) {
    (void)state;
    KubePod *p = kube_case_bound(&c, "p", "n0", "", CPU("1"));
    kube_state_progress(p, 7, 0.5, INT64_C(1700000000000000000));
    p = kube_case_bound(&c, "p", "n0", ",'labels':{'x':'y'}", CPU("1"));
    assert_true(kube_pod_info(p)->progress == 7 && kube_pod_info(p)->progress_rate == 0.5);
    p = kube_case_bound(&c, "p", "n0",
                        ",'annotations':{'cotenant.io/progress':'9 0.25 1800000000'}", CPU("1"));
    assert_true(kube_pod_info(p)->progress == 9 && kube_pod_info(p)->progress_rate == 0.25);
}

#define CASE(t) cmocka_unit_test_setup_teardown(t, setup, teardown)
TEST_MAIN() {
    const struct CMUnitTest tests[] = {CASE(test_metrics),      CASE(test_metrics_form),
                                       CASE(test_why_room),     CASE(test_help_is_true),
                                       CASE(test_why_never),    CASE(test_progress),
                                       CASE(test_progress_kept)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
