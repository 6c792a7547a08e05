// Host and Origin: which requests a listener accepts.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "base/text.h"
#include "serve/host_rule.h"
#include "tests/runner.h"

typedef struct Row {
    const char *address, *hosts, *origins;  // of the listener, settings
    const char *host, *origin, *site;       // of the request; NULL: none
    bool        accepted;
} Row;

static const char LOCAL[] = "127.0.0.1:8000", OPEN[] = "0.0.0.0:8000", OWN[] = "10.1.2.3:8000";

static bool accepts(const Row *r, bool safe) {
    ServeSettings  set = {0};
    HostRule       rule;
    ExchangeHeader headers[4];
    Exchange       x = {.headers = headers};
    const char    *names[] = {"host", "origin", "sec-fetch-site"};
    const char    *values[] = {r->host, r->origin, r->site};
    for (int i = 0; i < 3; i++)
        if (values[i] != NULL)
            headers[x.n_headers++] = (ExchangeHeader){text_of(names[i]), text_of(values[i])};
    set.hosts = r->hosts;
    set.origins = r->origins;
    host_rule_init(&rule, &set, r->address);
    return host_rule_refuses(&rule, &x, safe) == NULL;
}

static void hosts_are_told_apart(void **state) {
    (void)state;
    static const Row rows[] = {
        {LOCAL, "", "", "localhost", NULL, NULL, true},
        {LOCAL, "", "", "LocalHost:8000", NULL, NULL, true},
        {LOCAL, "", "", "localhost.:8000", NULL, NULL, true},
        {LOCAL, "", "", "a.localhost:1", NULL, NULL, true},
        {LOCAL, "", "", "ip6-localhost", NULL, NULL, true},
        {LOCAL, "", "", "127.0.0.1", NULL, NULL, true},
        {LOCAL, "", "", "127.200.3.4:99", NULL, NULL, true},
        {LOCAL, "", "", "[::1]:8000", NULL, NULL, true},
        {LOCAL, "", "", "[::1]", NULL, NULL, true},
        {LOCAL, "", "", "[::ffff:127.0.0.1]:8000", NULL, NULL, true},
        {LOCAL, "", "", NULL, NULL, NULL, true},  // HTTP/1.0: no browser
        {LOCAL, "", "", "evil.example", NULL, NULL, false},
        {LOCAL, "", "", "localhost.evil.example", NULL, NULL, false},
        {LOCAL, "", "", "evillocalhost", NULL, NULL, false},
        {LOCAL, "", "", ".localhost", NULL, NULL, false},
        {LOCAL, "", "", "127.0.0.1.evil.example", NULL, NULL, false},
        {LOCAL, "", "", "127.1", NULL, NULL, false},
        {LOCAL, "", "", "10.0.0.1", NULL, NULL, false},
        {LOCAL, "", "", "0.0.0.0", NULL, NULL, false},
        {LOCAL, "", "", "[::]", NULL, NULL, false},
        {LOCAL, "", "", "[::1", NULL, NULL, false},
        {LOCAL, "", "", "user@localhost", NULL, NULL, false},
        {LOCAL, "", "", "localhost@evil.example", NULL, NULL, false},
        {LOCAL, "models.example, other.example", "", "other.example:80", NULL, NULL, true},
        {LOCAL, "models.example,other.example", "", "Models.Example.", NULL, NULL, true},
        {LOCAL, "models.example", "", "example", NULL, NULL, false},
        {LOCAL, "models.example", "", "localhost", NULL, NULL, true},
        {LOCAL, "*", "", "evil.example", NULL, NULL, true},
        {OPEN, "", "", "anything.example", NULL, NULL, true},
        {OPEN, "models.example", "", "anything.example", NULL, NULL, false},
        {OPEN, "models.example", "", "models.example", NULL, NULL, true},
        {OWN, "models.example", "", "10.1.2.3:8000", NULL, NULL, true},
        {OWN, "models.example", "", "10.1.2.4:8000", NULL, NULL, false},
        {"unix:/run/x.sock", "", "", "evil.example", "http://evil.example", "cross-site", true},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        for (int safe = 0; safe < 2; safe++)
            if (accepts(&rows[i], safe) != rows[i].accepted)
                fail_msg("%s at %s", rows[i].host ? rows[i].host : "none", rows[i].address);
}

static void sites_are_told_apart(void **state) {
    (void)state;
    static const Row rows[] = {
        {LOCAL, "", "", "localhost:8000", "http://localhost:8000", "same-origin", true},
        {LOCAL, "", "", "LOCALHOST:8000", "http://localhost:8000", NULL, true},
        {LOCAL, "", "", "localhost:8000", "http://localhost:3000", "same-site", false},
        {LOCAL, "", "", "localhost:8000", "http://evil.example", NULL, false},
        {LOCAL, "", "", "localhost:8000", "http://evil.example/localhost:8000", NULL, false},
        {LOCAL, "", "", "localhost:8000", "null", NULL, false},
        {LOCAL, "", "", "localhost:8000", "", NULL, false},
        {LOCAL, "", "", "localhost:8000", NULL, "cross-site", false},
        {LOCAL, "", "", "localhost:8000", NULL, "none", true},
        {LOCAL, "", "", NULL, "http://evil.example", NULL, false},
        {LOCAL, "", "https://app.example", "localhost", "https://app.example", "cross-site", true},
        {LOCAL, "", "https://app.example", "localhost", "http://app.example", NULL, false},
        {LOCAL, "", "https://a.example, https://b.example", "localhost", "https://b.example", NULL,
         true},
        {LOCAL, "", "*", "localhost", "null", "cross-site", true},
        {LOCAL, "", "*", "localhost", NULL, "cross-site", true},
        {OPEN, "", "", "models.example", "https://evil.example", NULL, false},
        {OPEN, "", "", "models.example", "https://models.example", NULL, true},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (accepts(&rows[i], false) != rows[i].accepted) fail_msg("row %zu", i);
        assert_true(accepts(&rows[i], true));
    }
}

// Each of several headers has to be acceptable: none hides behind another.
static void none_hides_behind_another(void **state) {
    (void)state;
    HostRule       rule;
    ServeSettings  set = {.hosts = "", .origins = ""};
    ExchangeHeader headers[] = {{{"host", 4}, {"localhost", 9}}, {{"host", 4}, {"evil", 4}}};
    Exchange       x = {.headers = headers, .n_headers = 2};
    host_rule_init(&rule, &set, LOCAL);
    assert_non_null(strstr(host_rule_refuses(&rule, &x, true), "`hosts`"));
    headers[1] = (ExchangeHeader){{"origin", 6}, {"http://localhost", 16}};
    assert_null(host_rule_refuses(&rule, &x, false));
    ExchangeHeader three[] = {headers[0], headers[1], {{"origin", 6}, {"http://evil", 11}}};
    x = (Exchange){.headers = three, .n_headers = 3};
    assert_non_null(strstr(host_rule_refuses(&rule, &x, false), "`origins`"));
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hosts_are_told_apart),
        cmocka_unit_test(sites_are_told_apart),
        cmocka_unit_test(none_hides_behind_another),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
