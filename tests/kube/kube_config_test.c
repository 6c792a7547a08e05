// Kubeconfig files: what is read, and what is refused by name, file and line.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/file.h"
#include "kube/kube_config.h"
#include "tests/runner.h"

#define HEAD                                                                                       \
    "apiVersion: v1\nkind: Config\ncurrent-context: a\n"                                           \
    "contexts:\n- name: a\n  context: {cluster: c, user: u, namespace: team}\n"                    \
    "- name: b\n  context: {cluster: d, user: u}\n"
#define CLUSTER "clusters:\n- name: c\n  cluster:\n    server: https://api.example:6443/\n"
#define USER    "users:\n- name: u\n  user:\n"

static Arena arena;

static int open_arena(void **state) {
    (void)state;
    return arena_init(&arena, (size_t)64 << 20) == ERR_OK ? 0 : -1;
}

static int close_arena(void **state) {
    (void)state;
    arena_finish(&arena);
    return 0;
}

static Err parse(const char *text, const char *context, KubeConfig *out) {
    return kube_config_parse("conf/kube.yaml", text, strlen(text), context, &arena, out);
}

static void reads_a_context(void **state) {
    KubeConfig c;
    (void)state;
    assert_int_equal(parse(HEAD CLUSTER "    certificate-authority: ca.pem\n"
                                        "    tls-server-name: kubernetes\n" USER
                                        "    tokenFile: /run/token\n    client-certificate-data: "
                                        "Y2VydAo=\n    client-key: ../key.pem\n",
                           NULL, &c),
                     ERR_OK);
    assert_string_equal(c.server, "https://api.example:6443");
    assert_string_equal(c.ca_file, "conf/ca.pem");
    assert_string_equal(c.server_name, "kubernetes");
    assert_string_equal(c.token_file, "/run/token");
    assert_string_equal(c.certificate_pem, "cert\n");
    assert_string_equal(c.key_file, "conf/../key.pem");
    assert_string_equal(c.namespace_name, "team");
    assert_null(c.token);
    assert_null(c.ca_pem);
    assert_false(c.insecure);
}

static void inline_data_wins_over_a_file(void **state) {
    KubeConfig c;
    (void)state;
    assert_int_equal(parse(HEAD CLUSTER "    certificate-authority: ca.pem\n"
                                        "    certificate-authority-data: YWI=\n" USER
                                        "    token: secret\n",
                           NULL, &c),
                     ERR_OK);
    assert_null(c.ca_file);
    assert_string_equal(c.ca_pem, "ab");
    assert_string_equal(c.token, "secret");
}

static void the_named_context_is_used(void **state) {
    KubeConfig c;
    (void)state;
    const char *two = HEAD CLUSTER "- name: d\n  cluster:\n    server: http://127.0.0.1:8001\n"
                                   "    insecure-skip-tls-verify: true\n" USER "    token: t\n";
    assert_int_equal(parse(two, "b", &c), ERR_OK);
    assert_string_equal(c.server, "http://127.0.0.1:8001");
    assert_null(c.namespace_name);
    assert_true(c.insecure);
    assert_int_equal(parse(two, "none", &c), ERR_CONFIG);
    assert_non_null(strstr(err_why(), "contexts has no context 'none'"));
}

static void refuses(const char *text, Err e, const char *line, const char *word) {
    KubeConfig c = {.server = "kept"};
    assert_int_equal(parse(text, NULL, &c), e);
    assert_string_equal(c.server, "kept");
    if (strstr(err_why(), line) == NULL || strstr(err_why(), word) == NULL)
        fail_msg("%s: lacks '%s' or '%s'", err_why(), line, word);
}

static void refuses_by_name_file_and_line(void **state) {
    (void)state;
#define AT "conf/kube.yaml:16:"
#define U  HEAD CLUSTER USER
    refuses(U "    exec: {command: aws}\n", ERR_UNSUPPORTED, AT, "exec");
    refuses(U "    auth-provider:\n      name: gcp\n", ERR_UNSUPPORTED, AT, "auth-provider");
    refuses(U "    as: admin\n", ERR_UNSUPPORTED, AT, "field as ");
    refuses(U "    as-groups: [x]\n", ERR_UNSUPPORTED, AT, "as-groups");
    refuses(U "    username: me\n", ERR_UNSUPPORTED, AT, "username");
    refuses(HEAD CLUSTER "    proxy-url: http://p\n" USER "    token: t\n", ERR_UNSUPPORTED,
            "conf/kube.yaml:13:", "proxy-url");
    refuses(U "    client-certificate: a.pem\n", ERR_CONFIG, "conf/kube.yaml:15:", "client-key");
    refuses(U "    client-key-data: '#'\n", ERR_CONFIG, AT, "client-key-data");
    refuses(U "    token: [a]\n", ERR_CONFIG, AT, "token");
    refuses(U "    token: a\n    token: b\n", ERR_CONFIG, "conf/kube.yaml:17:", "already set");
    refuses(HEAD "clusters:\n- name: c\n  cluster: {server: ftp://x}\n" USER "    token: t\n",
            ERR_CONFIG, "conf/kube.yaml:11:", "ftp://x");
    refuses(HEAD "clusters:\n- name: c\n  cluster: {server: 'https://x/?a'}\n" USER
                 "    token: t\n",
            ERR_CONFIG, "conf/kube.yaml:11:", "https://x/?a");
    refuses(HEAD CLUSTER "    insecure-skip-tls-verify: true\n    certificate-authority: x\n" USER
                         "    token: t\n",
            ERR_CONFIG, "conf/kube.yaml:13:", "contradicts");
    refuses("clusters: []\n", ERR_CONFIG, "conf/kube.yaml", "current-context");
    refuses("[]\n", ERR_CONFIG, "conf/kube.yaml", "not a kubeconfig");
    refuses("", ERR_CONFIG, "conf/kube.yaml", "not a kubeconfig");
    refuses("a: &x b\nc: *x\n", ERR_CONFIG, "conf/kube.yaml:2:", "aliases");
}

static void empty_fields_are_absent(void **state) {
    KubeConfig c;
    (void)state;
    assert_int_equal(
        parse(U "    exec: null\n    as: ''\n    auth-provider: {}\n    token:\n", NULL, &c),
        ERR_OK);
    assert_null(c.token);
}

static void unused_users_may_have_anything(void **state) {
    KubeConfig c;
    (void)state;
    assert_int_equal(
        parse(U "    token: t\n- name: other\n  user:\n    exec: {command: x}\n", NULL, &c),
        ERR_OK);
}

// Every text of up to three groups comes back, and what is not base64 is refused.
static void base64_comes_back(void **state) {
    static const char *const good[][2] = {{"YQ==", "a"},          {"YWI=", "ab"},
                                          {"YWJj", "abc"},        {"YWJjZA==", "abcd"},
                                          {"YW Jj\\nZA==", NULL}, {"+/+/", "\xfb\xff\xbf"}};
    static const char *const bad[] = {
        "Y", "YQ", "YQ=", "YQ===", "Y=Q=", "====", "AA==", "Y\\x01Q="};
    char       text[2048];
    KubeConfig c;
    (void)state;
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        (void)snprintf(text, sizeof text,
                       HEAD CLUSTER "    certificate-authority-data: \"%s\"\n" USER
                                    "    token: t\n",
                       good[i][0]);
        assert_int_equal(parse(text, NULL, &c), ERR_OK);
        assert_string_equal(c.ca_pem, good[i][1] != NULL ? good[i][1] : "abcd");
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        (void)snprintf(
            text, sizeof text,
            HEAD CLUSTER "    certificate-authority-data: \"%s\"\n" USER "    token: t\n", bad[i]);
        assert_int_equal(parse(text, NULL, &c), ERR_CONFIG);
    }
}

static void reads_urls(void **state) {
    KubeConfig c;
    (void)state;
    assert_int_equal(kube_config_url("http://127.0.0.1:8001/", &arena, &c), ERR_OK);
    assert_string_equal(c.server, "http://127.0.0.1:8001");
    assert_int_equal(kube_config_url("https://host/k8s/c-1", &arena, &c), ERR_OK);
    assert_string_equal(c.server, "https://host/k8s/c-1");
    assert_int_equal(kube_config_url("host:6443", &arena, &c), ERR_CONFIG);
    assert_int_equal(kube_config_url("https://me@host", &arena, &c), ERR_CONFIG);
    assert_int_equal(kube_config_url("https://", &arena, &c), ERR_CONFIG);
}

static void reads_what_a_pod_finds(void **state) {
    char       root[] = "kube_config_test.XXXXXX", path[128];
    KubeConfig c;
    (void)state;
    assert_non_null(mkdtemp(root));
    (void)unsetenv("KUBERNETES_SERVICE_HOST");
    (void)setenv("KUBERNETES_SERVICE_PORT", "443", 1);
    assert_int_equal(kube_config_in_cluster(root, &arena, &c), ERR_CONFIG);
    assert_non_null(strstr(err_why(), "KUBERNETES_SERVICE_HOST"));
    (void)setenv("KUBERNETES_SERVICE_HOST", "fd00::1", 1);
    assert_int_equal(kube_config_in_cluster(root, &arena, &c), ERR_IO);
    (void)snprintf(path, sizeof path, "%s/namespace", root);
    assert_int_equal(file_replace(path, "kube-system\n", 12), ERR_OK);
    assert_int_equal(kube_config_in_cluster(root, &arena, &c), ERR_OK);
    assert_string_equal(c.server, "https://[fd00::1]:443");
    assert_string_equal(c.namespace_name, "kube-system");
    assert_string_equal(c.token_file + strlen(root), "/token");
    assert_string_equal(c.ca_file + strlen(root), "/ca.crt");
    assert_int_equal(unlink(path), 0);
    assert_int_equal(rmdir(root), 0);
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_a_context),
        cmocka_unit_test(inline_data_wins_over_a_file),
        cmocka_unit_test(the_named_context_is_used),
        cmocka_unit_test(refuses_by_name_file_and_line),
        cmocka_unit_test(empty_fields_are_absent),
        cmocka_unit_test(unused_users_may_have_anything),
        cmocka_unit_test(base64_comes_back),
        cmocka_unit_test(reads_urls),
        cmocka_unit_test(reads_what_a_pod_finds),
    };
    return cmocka_run_group_tests(tests, open_arena, close_arena);
}
