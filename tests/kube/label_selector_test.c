// Label selectors from JSON and from text.
#include "kube/label_selector.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/kube/kube_case.h"
#include "tests/runner.h"

static KubeWords  words;
static KubeMemory memory;

static int begin(void **state) {
    (void)state;
    kube_words_init(&words);
    kube_memory_init(&memory, &words);
    return 0;
}

static int end(void **state) {
    (void)state;
    kube_memory_finish(&memory);
    if (words.n != 0) return -1;
    kube_words_finish(&words);
    return 0;
}

static Labels labels(const char *text) {
    Labels  l;
    json_t *o = kube_case_json("%s", text);
    assert_int_equal(labels_read(o, &memory, &l), ERR_OK);
    json_decref(o);
    return l;
}

static bool text_matches(const char *selector, const char *with) {
    LabelSelector s;
    if (label_selector_parse(selector, &memory, &s) != ERR_OK) fail_msg("%s", err_why());
    return label_selector_matches(&s, labels(with));
}

static bool json_matches(const char *selector, const char *with) {
    LabelSelector s;
    json_t       *o = kube_case_json("%s", selector);
    if (label_selector_read(o, &memory, &s) != ERR_OK) fail_msg("%s", err_why());
    json_decref(o);
    return label_selector_matches(&s, labels(with));
}

static bool terms_match(const char *terms, const char *with, const char *name) {
    NodeTerms t;
    json_t   *o = kube_case_json("%s", terms);
    if (node_terms_read(o, &memory, &t) != ERR_OK) fail_msg("%s", err_why());
    json_decref(o);
    return node_terms_match(&t, labels(with), kube_memory_word(&memory, name));
}

static void text_form(void **state) {
    (void)state;
    assert_true(text_matches("", "{}"));
    assert_true(text_matches("a=b,c!=d,e in (x,y),!f", "{'a':'b','e':'y'}"));
    assert_true(text_matches(" a == b , c notin ( d , e ) , g ", "{'a':'b','g':''}"));
    assert_false(text_matches("a=b", "{'a':'c'}"));
    assert_false(text_matches("a=b", "{}"));
    assert_true(text_matches("a!=b", "{}"));
    assert_false(text_matches("!a", "{'a':''}"));
    assert_false(text_matches("a", "{'b':'a'}"));
    assert_true(text_matches("a=", "{'a':''}"));
    assert_true(text_matches("x.io/n>3,x.io/n<5", "{'x.io/n':'4'}"));
    assert_false(text_matches("n>3", "{'n':'3'}"));
    assert_false(text_matches("n>3", "{'n':'four'}"));
    assert_false(text_matches("n>3", "{}"));
}

static void bad_text(void **state) {
    (void)state;
    static const char *const rows[] = {"=a",  "a=b,", ",a", "a in x",    "a in (x", "a=b c",
                                       "a>x", "a@b",  "!",  "a in (x))", "a>"};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        LabelSelector s;
        if (label_selector_parse(rows[i], &memory, &s) == ERR_OK) fail_msg("'%s'", rows[i]);
    }
}

static void json_form(void **state) {
    (void)state;
    assert_true(json_matches("{}", "{'a':'b'}"));
    LabelSelector absent;
    assert_int_equal(label_selector_read(NULL, &memory, &absent), ERR_OK);
    assert_false(label_selector_matches(&absent, labels("{'a':'b'}")));
    const char *both = "{'matchLabels':{'a':'b'},'matchExpressions':["
                       "{'key':'c','operator':'NotIn','values':['d']},"
                       "{'key':'e','operator':'Exists'},{'key':'f','operator':'DoesNotExist'}]}";
    assert_true(json_matches(both, "{'a':'b','e':'1'}"));
    assert_false(json_matches(both, "{'a':'b','e':'1','c':'d'}"));
    assert_false(json_matches(both, "{'a':'b','e':'1','f':''}"));
    assert_false(json_matches(both, "{'a':'b'}"));
}

static void refuse_json(const char *text, const char *why) {
    LabelSelector s;
    json_t       *o = kube_case_json("%s", text);
    assert_int_not_equal(label_selector_read(o, &memory, &s), ERR_OK);
    if (strstr(err_why(), why) == NULL) fail_msg("'%s' does not say '%s'", err_why(), why);
    json_decref(o);
}

static void bad_json(void **state) {
    (void)state;
    refuse_json("[]", "not an object");
    refuse_json("{'matchLabels':{'a':1}}", "not a string");
    refuse_json("{'matchFuzzy':{}}", "matchFuzzy");
    refuse_json("{'matchExpressions':[{'operator':'In'}]}", "no key");
    refuse_json("{'matchExpressions':[{'key':'a','operator':'Like'}]}", "'Like'");
    refuse_json("{'matchExpressions':[{'key':'a','operator':'In','values':[]}]}", "need values");
    refuse_json("{'matchExpressions':[{'key':'a','operator':'Gt','values':['x']}]}", "integer");
}

static void node_terms(void **state) {
    (void)state;
    const char *either = "[{'matchExpressions':[{'key':'z','operator':'In','values':['a','b']},"
                         "{'key':'n','operator':'Gt','values':['7']}]},"
                         "{'matchFields':[{'key':'metadata.name','operator':'In','values':['n1']}]}"
                         "]";
    assert_true(terms_match(either, "{'z':'b','n':'8'}", "n0"));
    assert_false(terms_match(either, "{'z':'b','n':'7'}", "n0"));
    assert_true(terms_match(either, "{}", "n1"));
    assert_false(terms_match("[{}]", "{'a':'b'}", "n1"));
    assert_false(terms_match("[]", "{}", "n1"));
    NodeTerms absent;
    assert_int_equal(node_terms_read(NULL, &memory, &absent), ERR_OK);
    assert_true(node_terms_match(&absent, labels("{}"), kube_memory_word(&memory, "n1")));
    json_t   *o = kube_case_json("[{'matchFields':[{'key':'metadata.uid','operator':'In',"
                                   "'values':['x']}]}]");
    NodeTerms t;
    assert_int_equal(node_terms_read(o, &memory, &t), ERR_UNSUPPORTED);
    json_decref(o);
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {cmocka_unit_test(text_form), cmocka_unit_test(bad_text),
                                       cmocka_unit_test(json_form), cmocka_unit_test(bad_json),
                                       cmocka_unit_test(node_terms)};
    return cmocka_run_group_tests(tests, begin, end);
}
