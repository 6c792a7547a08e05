#include <dirent.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/file.h"
#include "tests/runner.h"

// Wrappers of the system calls in file_commit that fail on demand.
static struct {
    const char *call;  // NULL: none fails
    int         left;  // calls of this name before the one that fails
    int         error;
} fault;

static bool fails(const char *call) {
    if (fault.call == NULL || strcmp(fault.call, call) != 0 || fault.left-- > 0) return false;
    errno = fault.error;
    return true;
}

int fsync(int fd) { return fails("fsync") ? -1 : (int)syscall(SYS_fsync, fd); }
int rename(const char *from, const char *to) {
    return fails("rename") ? -1 : (int)syscall(SYS_renameat2, -100, from, -100, to, 0u);
}
int fchmod(int fd, mode_t mode) {
    return fails("fchmod") ? -1 : (int)syscall(SYS_fchmod, fd, mode);
}

static Arena arena;
static char  dir[64];

static int setup(void **state) {
    (void)state;
    fault.call = NULL;
    strncpy(dir, "/tmp/file_test.XXXXXX", sizeof dir - 1);
    if (mkdtemp(dir) == NULL) return -1;
    return arena_init(&arena, 1 << 22) == ERR_OK ? 0 : -1;
}

static const char *at(const char *name) { return arena_printf(&arena, "%s/%s", dir, name); }

static int files_in_dir(void) {
    int  n = -2;  // . and ..
    DIR *d = opendir(dir);
    assert_non_null(d);
    while (readdir(d) != NULL) n++;
    (void)closedir(d);
    return n;
}

static int teardown(void **state) {
    (void)state;
    DIR *d = opendir(dir);
    if (d == NULL) return -1;
    for (struct dirent *e = readdir(d); e != NULL; e = readdir(d))
        if (unlink(at(e->d_name)) != 0) (void)rmdir(at(e->d_name));
    (void)closedir(d);
    arena_finish(&arena);
    return rmdir(dir);
}

static void expect_content(const char *path, const char *want) {
    char  *text;
    size_t n;
    assert_int_equal(file_read(path, 1000, &arena, &text, &n), ERR_OK);
    assert_int_equal(n, strlen(want));
    assert_string_equal(text, want);
}

static void test_replace_and_read(void **state) {
    (void)state;
    const char *path = at("a");
    assert_int_equal(file_replace(path, "one", 3), ERR_OK);
    expect_content(path, "one");
    assert_int_equal(file_replace(path, "", 0), ERR_OK);
    expect_content(path, "");
    assert_int_equal(files_in_dir(), 1);
}

static void test_read_limits(void **state) {
    (void)state;
    char  *text;
    size_t n, used;
    assert_int_equal(file_replace(at("a"), "12345678", 8), ERR_OK);
    assert_int_equal(file_read(at("a"), 8, &arena, &text, &n), ERR_OK);
    used = arena.used;
    const char *path = at("a");
    used = arena.used;
    assert_int_equal(file_read(path, 7, &arena, &text, &n), ERR_LIMIT);
    assert_int_equal(arena.used, used);
    assert_non_null(strstr(err_why(), path));
    assert_int_equal(file_read(dir, 7, &arena, &text, &n), ERR_IO);
    assert_non_null(strstr(err_why(), "directory"));
    assert_int_equal(file_read("/dev/zero", 7, &arena, &text, &n), ERR_IO);
    assert_int_equal(file_read(at("none"), 7, &arena, &text, &n), ERR_IO);
    assert_non_null(strstr(err_why(), "No such file"));
    Arena small;
    assert_int_equal(arena_init(&small, 4096), ERR_OK);
    char big[5000] = {0};
    assert_int_equal(file_replace(at("b"), big, sizeof big), ERR_OK);
    assert_int_equal(file_read(at("b"), 1 << 20, &small, &text, &n), ERR_LIMIT);
    assert_int_equal(small.used, 0);
    arena_finish(&small);
}

static void test_pipe_does_not_hang(void **state) {
    (void)state;
    char  *text;
    size_t n;
    assert_int_equal(mkfifo(at("fifo"), 0600), 0);
    assert_int_equal(file_read(at("fifo"), 100, &arena, &text, &n), ERR_IO);
}

static void test_read_file_that_hides_its_size(void **state) {
    (void)state;
    char  *text;
    size_t n;
    if (access("/proc/self/maps", R_OK) != 0) skip();
    assert_int_equal(file_read("/proc/self/maps", 1 << 20, &arena, &text, &n), ERR_OK);
    assert_true(n > 100 && text[n] == '\0' && strlen(text) == n);
    assert_int_equal(file_read("/proc/self/maps", 50, &arena, &text, &n), ERR_LIMIT);
}

static void test_nothing_lost_when_a_step_fails(void **state) {
    (void)state;
    static const struct {
        const char *call;
        int         left, error;
    } steps[] = {{"fsync", 0, EIO}, {"rename", 0, EACCES}, {"fchmod", 0, EPERM}};
    const char *path = at("a");
    assert_int_equal(file_replace(path, "old", 3), ERR_OK);
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        fault.call = steps[i].call;
        fault.left = steps[i].left;
        fault.error = steps[i].error;
        assert_int_equal(file_replace(path, "new", 3), ERR_IO);
        assert_non_null(strstr(err_why(), path));
        assert_non_null(strstr(err_why(), strerror(steps[i].error)));
        expect_content(path, "old");
        assert_int_equal(files_in_dir(), 1);
    }
    fault.call = "fsync";  // of the directory, after the rename: an error, but the file is complete
    fault.left = 1;
    fault.error = EIO;
    assert_int_equal(file_replace(path, "new", 3), ERR_IO);
    expect_content(path, "new");
    fault.left = 1;
    fault.error = EINVAL;  // a file system without directory fsync
    assert_int_equal(file_replace(path, "again", 5), ERR_OK);
    assert_int_equal(files_in_dir(), 1);
}

static void test_drop(void **state) {
    (void)state;
    AtomicFile  f;
    const char *path = at("a");
    assert_int_equal(file_begin(&f, path), ERR_OK);
    assert_int_equal(files_in_dir(), 1);
    (void)fputs("half", f.out);
    file_drop(&f);
    file_drop(&f);
    assert_int_equal(files_in_dir(), 0);
}

static void test_odd_targets(void **state) {
    (void)state;
    assert_int_equal(file_replace(dir, "x", 1), ERR_IO);
    assert_int_equal(file_replace("", "x", 1), ERR_ARG);
    assert_int_equal(file_replace(at("no/such/dir"), "x", 1), ERR_IO);
    assert_int_equal(file_replace("/dev/null", "x", 1), ERR_OK);  // and it is still a device
    struct stat st;
    assert_int_equal(stat("/dev/null", &st), 0);
    assert_true(S_ISCHR(st.st_mode));
    if (access("/dev/full", W_OK) == 0) {
        assert_int_equal(file_replace("/dev/full", "x", 1), ERR_IO);
        assert_non_null(strstr(err_why(), strerror(ENOSPC)));
    }
    char name[256];  // as long as a name may be
    memset(name, 'n', 255);
    name[255] = '\0';
    assert_int_equal(file_replace(at(name), "x", 1), ERR_OK);
    expect_content(at(name), "x");
}

static void test_links_and_permissions_stay(void **state) {
    (void)state;
    struct stat st;
    assert_int_equal(file_replace(at("a"), "one", 3), ERR_OK);
    assert_int_equal(chmod(at("a"), 0640), 0);
    assert_int_equal(symlink("a", at("link")), 0);
    assert_int_equal(file_replace(at("link"), "two", 3), ERR_OK);
    assert_int_equal(lstat(at("link"), &st), 0);
    assert_true(S_ISLNK(st.st_mode));
    assert_int_equal(stat(at("a"), &st), 0);
    assert_int_equal(st.st_mode & 0777, 0640);
    expect_content(at("a"), "two");
}

static void test_make_dirs(void **state) {
    (void)state;
    struct stat st;
    assert_int_equal(file_make_dirs(at("x/y//z/")), ERR_OK);
    assert_int_equal(file_make_dirs(at("x/y/z")), ERR_OK);
    assert_int_equal(stat(at("x/y/z"), &st), 0);
    assert_true(S_ISDIR(st.st_mode));
    assert_int_equal(file_replace(at("f"), "", 0), ERR_OK);
    assert_int_equal(file_make_dirs(at("f/sub")), ERR_IO);
    assert_int_equal(file_make_dirs(""), ERR_ARG);
    assert_int_equal(file_make_dirs("/"), ERR_OK);
    assert_int_equal(rmdir(at("x/y/z")) | rmdir(at("x/y")) | rmdir(at("x")), 0);
}

static void test_cache_dir(void **state) {
    (void)state;
    const char *out;
    assert_int_equal(setenv("XDG_CACHE_HOME", dir, 1), 0);
    assert_int_equal(file_cache_dir(&arena, &out), ERR_OK);
    assert_string_equal(out, at("cotenant"));
    assert_int_equal(access(out, W_OK), 0);
    assert_int_equal(setenv("XDG_CACHE_HOME", "relative", 1) | setenv("HOME", dir, 1), 0);
    assert_int_equal(file_cache_dir(&arena, &out), ERR_OK);
    assert_string_equal(out, at(".cache/cotenant"));
    assert_int_equal(rmdir(out) | rmdir(at(".cache")), 0);
    assert_int_equal(unsetenv("XDG_CACHE_HOME") | unsetenv("HOME"), 0);
    assert_int_equal(file_cache_dir(&arena, &out), ERR_OK);
    assert_int_equal(access(out, W_OK), 0);
}

int renameat2(int from_dir, const char *from, int to_dir, const char *to, unsigned flags) {
    if (fails("renameat2")) return -1;
    return (int)syscall(SYS_renameat2, from_dir, from, to_dir, to, flags);
}

// With the flag of renameat2 and on file systems without it.
static void test_create(void **state) {
    (void)state;
    for (int old = 0; old < 2; old++) {
        bool        created = false;
        const char *path = at(old ? "b" : "a");
        struct stat st;
        mode_t      before = umask(0);
        fault.call = old ? "renameat2" : NULL;
        fault.left = 0;
        fault.error = EINVAL;
        assert_int_equal(file_create(path, "one", 3, &created), ERR_OK);
        assert_true(created);
        (void)umask(before);
        assert_int_equal(file_create(path, "two", 3, &created), ERR_OK);
        assert_false(created);
        expect_content(path, "one");
        assert_int_equal(stat(path, &st), 0);
        assert_int_equal(st.st_mode & 0777, 0644);
        assert_int_equal(files_in_dir(), 1 + old);
    }
}

// One that appears while its content is written is kept as well.
static void test_create_late(void **state) {
    (void)state;
    AtomicFile f;
    assert_int_equal(file_begin(&f, at("a")), ERR_OK);
    f.fresh = true;
    assert_int_equal(file_replace(at("a"), "other", 5), ERR_OK);
    assert_int_equal(file_commit(&f), ERR_IO);
    expect_content(at("a"), "other");
    assert_int_equal(files_in_dir(), 1);
}

static void expect_target(const char *from, const char *want) {
    char out[4096];
    assert_int_equal(file_target(from, out, sizeof out), ERR_OK);
    assert_string_equal(out, want);
}

static void test_target(void **state) {
    (void)state;
    char out[4096];
    assert_int_equal(symlink("b", at("a")), 0);
    assert_int_equal(symlink(at("c"), at("b")), 0);
    expect_target(at("a"), at("c"));
    expect_target(at("c"), at("c"));
    expect_target("none", "none");
    assert_int_equal(symlink("self", at("self")), 0);
    assert_int_equal(file_target(at("self"), out, sizeof out), ERR_IO);
    assert_int_equal(file_target(at("a"), out, 8), ERR_LIMIT);
}

TEST_MAIN() {
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(test_replace_and_read),
        T(test_read_limits),
        T(test_pipe_does_not_hang),
        T(test_read_file_that_hides_its_size),
        T(test_nothing_lost_when_a_step_fails),
        T(test_drop),
        T(test_odd_targets),
        T(test_links_and_permissions_stay),
        T(test_create),
        T(test_create_late),
        T(test_target),
        T(test_make_dirs),
        T(test_cache_dir),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
