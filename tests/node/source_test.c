// A source is complete and identified, or rejected; errors name the model instead of the path.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/stat.h>
#include <unistd.h>

#include "model/onnx/onnx.h"
#include "model/zoo/zoo.h"
#include "node/source.h"
#include "tests/runner.h"

static char dir[] = "/tmp/cotenant_source_XXXXXX";
static char file[64];

static int make_file(void **state) {
    Model m;
    (void)state;
    assert_non_null(mkdtemp(dir));
    (void)snprintf(file, sizeof file, "%s/kws.onnx", dir);
    assert_int_equal(zoo_build("lstm_kws", NULL, &m), ERR_OK);
    assert_int_equal(onnx_write(&m, file), ERR_OK);
    model_finish(&m);
    return 0;
}

static int remove_all(void **state) {
    char command[96];
    (void)state;
    (void)snprintf(command, sizeof command, "rm -rf %s", dir);
    return system(command);
}

static void refused(const char *what, uint64_t max_bytes, Err e, const char *why) {
    Source s;
    Err got = source_read(&s, what, &(SourceOptions){.name = "the model", .max_bytes = max_bytes});
    if (got != e) fail_msg("%s: %s", err_text(got), err_why());
    if (strstr(err_why(), why) == NULL) fail_msg("'%s' is not in: %s", why, err_why());
    if (strncmp(err_why(), "the model", 9) != 0) fail_msg("no name in: %s", err_why());
    assert_null(strstr(err_why(), dir));
    assert_null(s.model.arena.base);
}

static void a_file_is_known_by_its_hash(void **state) {
    (void)state;
    Source      s;
    SourceStamp stamp;
    char        command[160], expect[SHA256_TEXT] = "";
    (void)snprintf(command, sizeof command, "sha256sum %s", file);
    FILE *f = popen(command, "r");
    assert_non_null(f);
    assert_int_equal(fread(expect, 1, 64, f), 64);
    (void)pclose(f);
    assert_int_equal(source_read(&s, file, &(SourceOptions){0}), ERR_OK);
    assert_string_equal(s.sha256, expect);
    assert_false(s.open);
    assert_true(s.weight_bytes > 0);
    assert_int_equal(source_stamp(file, &stamp), ERR_OK);
    assert_true(source_same_stamp(&stamp, &s.stamp));
    source_finish(&s);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(source_read(&s, i == 0 ? "zoo:lstm_kws" : "lstm_kws", &(SourceOptions){0}),
                         ERR_OK);
        assert_string_equal(s.sha256, "");
        source_finish(&s);
    }
}

static void what_is_no_file_is_refused(void **state) {
    (void)state;
    char path[96];
    refused("/nowhere/model.onnx", 0, ERR_IO, "No such file");
    refused("zoo:no_such_network", 0, ERR_ARG, "no_such_network");
    refused("/dev/zero", 0, ERR_IO, "device");
    (void)snprintf(path, sizeof path, "%s/", dir);
    refused(path, 0, ERR_IO, "directory");
    (void)snprintf(path, sizeof path, "%s/pipe.onnx", dir);
    assert_int_equal(mkfifo(path, 0600), 0);
    refused(path, 0, ERR_IO, "pipe");
    (void)snprintf(path, sizeof path, "%s/loop.onnx", dir);
    assert_int_equal(symlink("loop.onnx", path), 0);
    refused(path, 0, ERR_IO, "link");
    (void)snprintf(path, sizeof path, "%s/huge.onnx", dir);
    int fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(ftruncate(fd, (off_t)3 << 30), 0);
    (void)close(fd);
    refused(path, 0, ERR_LIMIT, "2 GiB");
    refused(file, 1000, ERR_LIMIT, "MiB of memory");
    refused("zoo:alexnet", 1 << 20, ERR_LIMIT, "MiB of memory");
}

typedef struct Writer {
    char         path[96];
    _Atomic bool stop;
} Writer;

// A file is copied into its place slowly.
static void *append(void *self) {
    Writer *w = self;
    int     fd = open(w->path, O_WRONLY | O_APPEND | O_CLOEXEC);
    while (!atomic_load(&w->stop)) {
        if (write(fd, "x", 1) != 1) break;
        (void)usleep(200);
    }
    (void)close(fd);
    return NULL;
}

static void a_file_that_changes_is_refused(void **state) {
    (void)state;
    Writer    w = {0};
    pthread_t t;
    (void)snprintf(w.path, sizeof w.path, "%s/copied.onnx", dir);
    int fd = open(w.path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(ftruncate(fd, 32 << 20), 0);
    (void)close(fd);
    assert_int_equal(pthread_create(&t, NULL, append, &w), 0);
    refused(w.path, 0, ERR_IO, "changed while it was read");
    atomic_store(&w.stop, true);
    assert_int_equal(pthread_join(t, NULL), 0);
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_file_is_known_by_its_hash),
        cmocka_unit_test(what_is_no_file_is_refused),
        cmocka_unit_test(a_file_that_changes_is_refused),
    };
    return cmocka_run_group_tests(tests, make_file, remove_all);
}
