#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <signal.h>
#include <unistd.h>
#include <cmocka.h>
#include <jansson.h>

#include "serve/observe/logger.h"
#include "tests/runner.h"

enum { ENOUGH_S = 10 };
static const TimeNs enough = ENOUGH_S * INT64_C(1000000000);

static char folder[64], path[128];

static int setup(void **state) {
    (void)state;
    (void)snprintf(folder, sizeof folder, "/tmp/logger_test_XXXXXX");
    if (mkdtemp(folder) == NULL) return 1;
    (void)snprintf(path, sizeof path, "%s/log", folder);
    return 0;
}

static int teardown(void **state) {
    char old[160];
    (void)state;
    (void)snprintf(old, sizeof old, "%s.1", path);
    (void)unlink(old);
    (void)unlink(path);
    return rmdir(folder);
}

static Logger *begin(const char *file, uint32_t rate, uint32_t room, LogFormat format) {
    LoggerOptions o = {.file = file, .rate = rate, .room = room, .format = format};
    Logger       *l;
    assert_int_equal(logger_create(&l, &o), ERR_OK);
    return l;
}

static char *content(const char *file, size_t *lines) {
    static char text[4 << 20];
    FILE       *f = fopen(file, "re");
    assert_non_null(f);
    size_t n = fread(text, 1, sizeof text - 1, f);
    (void)fclose(f);
    text[n] = '\0';
    *lines = 0;
    for (size_t i = 0; i < n; i++) *lines += text[i] == '\n';
    return text;
}

// Waits until so many lines were written or dropped; false: not in time.
static bool flush(const Logger *l, uint64_t lines) {
    TimeNs until = clock_now(clock_monotonic()) + enough;
    for (;;) {
        LoggerCounts c = logger_counts(l);
        if (c.written + c.dropped >= lines) return true;
        if (clock_now(clock_monotonic()) > until) return false;
        (void)usleep(1000);
    }
}

static void test_writes_in_order(void **state) {
    (void)state;
    Logger *l = begin(path, 100000, 2048, LOG_JSON);
    size_t  lines;
    for (int i = 0; i < 1000; i++)
        log_with(logger_log(l), LOG_INFO, "line\nlevel=error msg=forged", log_int("i", i));
    logger_destroy(l);
    char *text = content(path, &lines);
    assert_int_equal(lines, 1000);
    int i = 0;
    for (char *line = strtok(text, "\n"); line != NULL; line = strtok(NULL, "\n"), i++) {
        json_t *o = json_loads(line, 0, NULL);
        assert_int_equal(json_integer_value(json_object_get(o, "i")), i);
        json_decref(o);
    }
    struct stat s;
    assert_int_equal(stat(path, &s), 0);
    assert_int_equal(s.st_mode & 07, 0);
}

static void test_rate(void **state) {
    (void)state;
    Logger *l = begin(path, 10, 0, LOG_LOGFMT);
    size_t  lines;
    for (int i = 0; i < 5000; i++) log_line(logger_requests(l), LOG_INFO, "flood");
    LoggerCounts c = logger_counts(l);
    assert_true(c.suppressed >= 5000 - 10 * ENOUGH_S && c.suppressed < 5000);
    logger_destroy(l);
    assert_non_null(strstr(content(path, &lines), "msg=\"log lines lost\" suppressed="));
    assert_in_range(lines, 2, 11 * ENOUGH_S);
}

// Life-cycle lines beyond the rate and the ring are all written, in order, beside any number of
// lines about requests.
static void test_life_cycle_is_kept(void **state) {
    (void)state;
    Logger *l = begin(path, 10, 64, LOG_JSON);
    size_t  lines;
    for (int i = 0; i < 5000; i++) {
        log_with(logger_log(l), LOG_INFO, "model", log_int("i", i));
        log_line(logger_requests(l), LOG_INFO, "request");
    }
    assert_true(logger_counts(l).suppressed >= 5000 - 10 * ENOUGH_S);
    logger_destroy(l);
    int next = 0;
    for (char *line = strtok(content(path, &lines), "\n"); line != NULL;
         line = strtok(NULL, "\n")) {
        json_t *o = json_loads(line, 0, NULL);
        assert_non_null(o);
        if (strcmp(json_string_value(json_object_get(o, "msg")), "model") == 0)
            assert_int_equal(json_integer_value(json_object_get(o, "i")), next++);
        json_decref(o);
    }
    assert_int_equal(next, 5000);
}

// A reader that never reads bounds the lines that wait.
static void test_life_cycle_is_bounded(void **state) {
    (void)state;
    assert_int_equal(mkfifo(path, 0600), 0);
    int reader = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    assert_true(reader >= 0);
    Logger *l = begin(path, 10, 64, LOG_LOGFMT);
    for (int i = 0; i < 40000; i++) log_with(logger_log(l), LOG_INFO, "model", log_int("i", i));
    assert_true(logger_counts(l).dropped >= 10000);
    logger_destroy(l);
    (void)close(reader);
}

// A log is appended to; a file with binary data is no log.
static void test_foreign_file(void **state) {
    (void)state;
    size_t lines;
    FILE  *f = fopen(path, "we");
    assert_non_null(f);
    assert_int_equal(fwrite("\x08\x07\x12\0model", 1, 9, f), 9);
    (void)fclose(f);
    LoggerOptions o = {.file = path};
    Logger       *l = NULL;
    assert_int_equal(logger_check(path), ERR_CONFIG);
    assert_int_equal(logger_create(&l, &o), ERR_CONFIG);
    assert_non_null(strstr(err_why(), path));
    struct stat st;
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_size, 9);
    f = fopen(path, "we");
    assert_non_null(f);
    assert_true(fputs("an older line\n", f) >= 0);
    (void)fclose(f);
    assert_int_equal(logger_check(path), ERR_OK);
    l = begin(path, 10, 0, LOG_LOGFMT);
    log_line(logger_log(l), LOG_INFO, "new");
    logger_destroy(l);
    assert_true(strncmp(content(path, &lines), "an older line\nts=", 17) == 0);
    assert_int_equal(lines, 2);
}

static void test_check_creates_nothing(void **state) {
    (void)state;
    assert_int_equal(logger_check(path), ERR_OK);
    assert_int_equal(access(path, F_OK), -1);
    assert_int_equal(logger_check(folder), ERR_CONFIG);
    assert_int_equal(logger_check("/nowhere/at/all"), ERR_CONFIG);
    assert_non_null(strstr(err_why(), "/nowhere/at/all"));
    assert_int_equal(logger_check("/dev/null"), ERR_OK);
}

static void test_reopens(void **state) {
    (void)state;
    char    old[160];
    size_t  lines;
    Logger *l = begin(path, 1000, 0, LOG_LOGFMT);
    (void)snprintf(old, sizeof old, "%s.1", path);
    log_line(logger_log(l), LOG_INFO, "first");
    assert_true(flush(l, 1));
    assert_int_equal(rename(path, old), 0);
    logger_reopen(l);
    log_line(logger_log(l), LOG_INFO, "second");
    logger_destroy(l);
    assert_non_null(strstr(content(old, &lines), "msg=first"));
    assert_int_equal(lines, 1);
    assert_non_null(strstr(content(path, &lines), "msg=second"));
    assert_int_equal(lines, 2);
}

static void test_reopen_that_fails_goes_on(void **state) {
    (void)state;
    size_t  lines;
    char    old[160];
    Logger *l = begin(path, 1000, 0, LOG_LOGFMT);
    (void)snprintf(old, sizeof old, "%s.1", path);
    assert_int_equal(rename(path, old), 0);
    assert_int_equal(mkdir(path, 0700), 0);
    logger_reopen(l);
    log_line(logger_log(l), LOG_INFO, "still here");
    logger_destroy(l);
    assert_int_equal(rmdir(path), 0);
    char *text = content(old, &lines);
    assert_non_null(strstr(text, "still here"));
    assert_non_null(strstr(text, "the old file stays in use"));
}

static void test_refuses(void **state) {
    (void)state;
    LoggerOptions o = {.file = folder};
    Logger       *l = NULL;
    assert_int_equal(logger_create(&l, &o), ERR_CONFIG);
    o.file = "/nowhere/at/all";
    assert_int_equal(logger_create(&l, &o), ERR_CONFIG);
    assert_null(l);
    logger_destroy(NULL);
}

// /dev/full answers every write as a full disk does.
static void test_full_disk(void **state) {
    (void)state;
    if (access("/dev/full", W_OK) != 0) skip();
    Logger *l = begin("/dev/full", 100000, 64, LOG_LOGFMT);
    for (int i = 0; i < 500; i++) log_line(logger_requests(l), LOG_INFO, "lost");
    assert_true(flush(l, 500));
    LoggerCounts c = logger_counts(l);
    assert_int_equal(c.written, 0);
    assert_true(c.dropped >= 500);
    logger_destroy(l);
}

// The disk gets room again in the middle of a line: no later line is glued to its first half.
static void test_torn_line(void **state) {
    (void)state;
    size_t        lines;
    struct rlimit before, small;
    Logger       *l = begin(path, 100000, 1024, LOG_LOGFMT);
    (void)signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    small = before;
    small.rlim_cur = 100;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    for (int i = 0; i < 20; i++) log_line(logger_log(l), LOG_INFO, "before");
    bool flushed = flush(l, 20);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    assert_true(flushed);
    log_line(logger_log(l), LOG_INFO, "after");
    logger_destroy(l);
    const char *text = content(path, &lines);
    for (const char *at = text; (at = strstr(at, "ts=")) != NULL; at++)
        assert_true(at == text || at[-1] == '\n');
    assert_non_null(strstr(text, "msg=after\n"));
}

// A pipe without a reader: logging does not block, lost lines are counted, and destroy returns
// soon.
static void test_reader_that_never_reads(void **state) {
    (void)state;
    assert_int_equal(mkfifo(path, 0600), 0);
    int reader = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    assert_true(reader >= 0);
    Logger *l = begin(path, 1000000, 64, LOG_LOGFMT);
    char    big[2000];
    memset(big, 'x', sizeof big - 1);
    big[sizeof big - 1] = '\0';
    for (int i = 0; i < 2000; i++) log_line(logger_requests(l), LOG_INFO, big);
    LoggerCounts c = logger_counts(l);
    assert_true(c.dropped >= 1000);
    logger_destroy(l);
    (void)close(reader);
}

enum { THREADS = 4, EACH = 2000 };

static void *log_many(void *self) {
    for (int i = 0; i < EACH; i++)
        log_with(logger_requests(self), LOG_INFO, "many", log_int("i", i));
    return NULL;
}

static void test_threads(void **state) {
    (void)state;
    Logger   *l = begin(path, 1000000, 256, LOG_JSON);
    pthread_t threads[THREADS];
    size_t    lines;
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, log_many, l), 0);
    for (int i = 0; i < 20; i++) logger_reopen(l);
    for (int i = 0; i < THREADS; i++) assert_int_equal(pthread_join(threads[i], NULL), 0);
    assert_true(flush(l, THREADS * EACH));
    LoggerCounts c = logger_counts(l);
    logger_destroy(l);
    size_t many = 0;
    char  *text = content(path, &lines);
    for (char *line = strtok(text, "\n"); line != NULL; line = strtok(NULL, "\n")) {
        json_t *o = json_loads(line, 0, NULL);
        assert_non_null(o);
        many += strcmp(json_string_value(json_object_get(o, "msg")), "many") == 0;
        json_decref(o);
    }
    assert_int_equal(many + c.dropped, THREADS * EACH);
    assert_int_equal(c.suppressed, 0);
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_writes_in_order, setup, teardown),
        cmocka_unit_test_setup_teardown(test_rate, setup, teardown),
        cmocka_unit_test_setup_teardown(test_life_cycle_is_kept, setup, teardown),
        cmocka_unit_test_setup_teardown(test_life_cycle_is_bounded, setup, teardown),
        cmocka_unit_test_setup_teardown(test_foreign_file, setup, teardown),
        cmocka_unit_test_setup_teardown(test_check_creates_nothing, setup, teardown),
        cmocka_unit_test_setup_teardown(test_reopens, setup, teardown),
        cmocka_unit_test_setup_teardown(test_reopen_that_fails_goes_on, setup, teardown),
        cmocka_unit_test_setup_teardown(test_refuses, setup, teardown),
        cmocka_unit_test(test_full_disk),
        cmocka_unit_test_setup_teardown(test_torn_line, setup, teardown),
        cmocka_unit_test_setup_teardown(test_reader_that_never_reads, setup, teardown),
        cmocka_unit_test_setup_teardown(test_threads, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
