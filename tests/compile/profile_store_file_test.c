// Creation of a profile store: at once, interrupted, without room.
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/resource.h>

#include "tests/compile/profile_store_fixture.h"

enum { WRITES = 8 };

static void write_many(int writer) {
    ProfileStore s;
    LayerProfile p = profile(5);
    profile_store_open(&s, path, &cpu, &isa_baseline);
    for (int i = 0; i < WRITES; i++) {
        char layer[32];
        (void)snprintf(layer, sizeof layer, "layer %d of %d", i, writer);
        if (!profile_store_put(&s, layer, &p)) {
            (void)fprintf(stderr, "%s\n", s.why);
            _exit(1);
        }
    }
    profile_store_close(&s);
    _exit(0);
}

// Processes that open and write one new store at once all succeed, and no other file stays.
static void write_at_once(void) {
    enum { WRITERS = 4 };
    pid_t pids[WRITERS];
    for (int w = 0; w < WRITERS; w++) {
        pids[w] = fork();
        assert_true(pids[w] >= 0);
        if (pids[w] == 0) write_many(w);
    }
    for (int w = 0; w < WRITERS; w++) assert_int_equal(wait_for(pids[w]), 0);
    ProfileStore s;
    LayerProfile got, p = profile(5);
    profile_store_open(&s, path, &cpu, &isa_baseline);
    for (int i = 0; i < WRITES * WRITERS; i++) {
        char layer[32];
        (void)snprintf(layer, sizeof layer, "layer %d of %d", i / WRITERS, i % WRITERS);
        assert_true(profile_store_get(&s, layer, &arena, &got));
        assert_true(same(&p, &got));
    }
    profile_store_close(&s);
}

static int files_in_root(void) {
    int  n = -2;  // . and ..
    DIR *d = opendir(root);
    assert_non_null(d);
    while (readdir(d) != NULL) n++;
    (void)closedir(d);
    return n;
}

static void test_processes(void **state) {
    (void)state;
    write_at_once();
    assert_int_equal(files_in_root(), 1);
}

static void test_processes_empty_file(void **state) {
    (void)state;
    assert_int_equal(file_replace(path, "", 0), ERR_OK);
    write_at_once();
    assert_int_equal(files_in_root(), 1);
}

// Through links, relative and absolute, to a file that does not exist yet.
static void test_processes_link(void **state) {
    (void)state;
    struct stat st;
    assert_int_equal(symlink("middle.db", path), 0);
    assert_int_equal(symlink(arena_printf(&arena, "%s/target.db", root),
                             arena_printf(&arena, "%s/middle.db", root)),
                     0);
    write_at_once();
    assert_int_equal(files_in_root(), 3);
    assert_int_equal(lstat(path, &st), 0);
    assert_true(S_ISLNK(st.st_mode));
}

static const char *make_journal(void) {
    static const char magic[] = "\xd9\xd5\x05\xf9\x20\xa1\x63\xd7 and no page of it";
    const char       *name = arena_printf(&arena, "%s-journal", path);
    assert_int_equal(file_replace(name, magic, sizeof magic), ERR_OK);
    return name;
}

// A journal that outlived its database, of a creation that was interrupted, is not applied to the
// new store. A temporary file that was left is no obstacle.
static void test_interrupted(void **state) {
    (void)state;
    for (int empty = 0; empty < 2; empty++) {
        const char *left = arena_printf(&arena, "%s/.cotenant-0123456789abcdef.tmp", root);
        assert_int_equal(file_replace(left, "SQLite format 3", 16), ERR_OK);
        if (empty) write_bytes("", 0);
        const char *journal = make_journal();
        make_store(3);
        assert_int_equal(access(journal, F_OK), -1);
        assert_int_equal(profile_store_check(path), ERR_OK);
        make_store(3);
        assert_int_equal(unlink(path) | unlink(left), 0);
    }
}

// Another process holds the lock of an empty file for good.
static void test_creation_locked(void **state) {
    (void)state;
    ProfileStore s;
    write_bytes("", 0);
    int fd = open(path, O_RDWR | O_CLOEXEC);
    assert_int_equal(flock(fd, LOCK_EX), 0);
    profile_store_open(&s, path, &cpu, &isa_baseline);
    assert_non_null(strstr(s.why, "another process is creating it"));
    profile_store_close(&s);
    assert_int_equal(close(fd), 0);
    make_store(1);
}

static int create_full(void) {
    ProfileStore  s;
    struct rlimit none = {0, 0};
    (void)signal(SIGXFSZ, SIG_IGN);
    if (setrlimit(RLIMIT_FSIZE, &none) != 0) return 77;
    profile_store_open(&s, path, &cpu, &isa_baseline);
    bool told = strstr(s.why, "cannot write") != NULL && strstr(s.why, path) != NULL;
    profile_store_close(&s);
    return told ? 0 : 1;
}

// A new store on a full disk: an error, and neither a part of it nor a temporary file stays.
static void test_full_disk_new(void **state) {
    (void)state;
    for (int empty = 0; empty < 2; empty++) {
        if (empty) write_bytes("", 0);
        pid_t pid = fork();
        if (pid == 0) _exit(create_full());
        assert_int_equal(wait_for(pid), 0);
        assert_int_equal(files_in_root(), empty);
    }
    make_store(1);
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

TEST_MAIN() {
    const struct CMUnitTest tests[] = {
        T(test_processes),   T(test_processes_empty_file), T(test_processes_link),
        T(test_interrupted), T(test_creation_locked),      T(test_full_disk_new),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
