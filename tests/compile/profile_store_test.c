#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include <signal.h>
#include <sqlite3.h>
#include <sys/resource.h>

#include "tests/compile/profile_store_fixture.h"

static void test_records(void **state) {
    (void)state;
    for (uint32_t n = 1; n <= 40; n += 13) {
        LayerProfile p = profile(n), q;
        uint8_t     *bytes = NULL;
        size_t       len = 0;
        assert_int_equal(layer_profile_encode(&p, &arena, &bytes, &len), ERR_OK);
        assert_true(layer_profile_decode(bytes, len, &arena, &q));
        assert_true(same(&p, &q));
        for (size_t cut = 0; cut < len; cut++)
            assert_false(layer_profile_decode(bytes, cut, &arena, &q));
        for (size_t i = 0; i < len; i++) {
            bytes[i] ^= 0x21;
            assert_false(layer_profile_decode(bytes, len, &arena, &q));
            bytes[i] ^= 0x21;
        }
    }
    assert_false(layer_profile_decode(NULL, 0, &arena, &(LayerProfile){0}));
}

static void test_kept(void **state) {
    (void)state;
    ProfileStore s;
    LayerProfile p = profile(7), q = profile(3), got;
    profile_store_open(&s, path, &cpu, &isa_baseline);
    assert_string_equal(s.why, "");
    assert_false(profile_store_get(&s, "conv", &arena, &got));
    assert_true(profile_store_put(&s, "conv", &p));
    assert_true(profile_store_put(&s, "gemm", &p));
    assert_true(profile_store_put(&s, "gemm", &q));
    profile_store_close(&s);
    profile_store_open(&s, path, &cpu, &isa_baseline);
    assert_true(profile_store_get(&s, "conv", &arena, &got));
    assert_true(same(&p, &got));
    assert_true(profile_store_get(&s, "gemm", &arena, &got));
    assert_true(same(&q, &got));
    assert_string_equal(s.why, "");
    profile_store_close(&s);
}

// Profiles of other machines and kernel builds are not found, and old builds are deleted.
static void test_not_mixed(void **state) {
    (void)state;
    ProfileStore s;
    LayerProfile p = profile(2), got;
    profile_store_open(&s, path, &cpu, &isa_baseline);
    assert_true(profile_store_put(&s, "conv", &p));
    for (int i = 0; i < 20; i++) {
        (void)snprintf(s.kernels, sizeof s.kernels, "build %d", i);
        assert_false(profile_store_get(&s, "conv", &arena, &got));
        assert_true(profile_store_put(&s, "conv", &p));
    }
    (void)snprintf(s.kernels, sizeof s.kernels, "build %d", 15);
    assert_true(profile_store_get(&s, "conv", &arena, &got));
    (void)snprintf(s.kernels, sizeof s.kernels, "build %d", 5);
    assert_false(profile_store_get(&s, "conv", &arena, &got));
    profile_store_close(&s);
    snprintf(cpu.model, sizeof cpu.model, "another");
    profile_store_open(&s, path, &cpu, &isa_baseline);
    assert_false(profile_store_get(&s, "conv", &arena, &got));
    profile_store_close(&s);
}

// Neither opening nor writing changes the file, and no file is made beside it.
static void expect_untouched(const char *reason) {
    ProfileStore s;
    LayerProfile p = profile(2), got;
    size_t       before_len = 0, after_len = 0;
    const char  *before = bytes_of(path, &before_len);
    assert_int_equal(profile_store_check(path), ERR_CONFIG);
    assert_non_null(strstr(err_why(), path));
    assert_non_null(strstr(err_why(), reason));
    profile_store_open(&s, path, &cpu, &isa_baseline);
    assert_null(s.db);
    assert_non_null(strstr(s.why, path));
    assert_non_null(strstr(s.why, reason));
    assert_false(profile_store_put(&s, "conv", &p));
    assert_false(profile_store_get(&s, "conv", &arena, &got));
    profile_store_close(&s);
    const char *after = bytes_of(path, &after_len);
    assert_int_equal(before_len, after_len);
    assert_memory_equal(before, after, before_len);
    assert_int_equal(access(arena_printf(&arena, "%s.bad", path), F_OK), -1);
    assert_int_equal(access(arena_printf(&arena, "%s-journal", path), F_OK), -1);
}

static void change_file(const char *sql) {
    sqlite3 *db = NULL;
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

static void test_foreign_files(void **state) {
    (void)state;
    static const char *const texts[] = {"x", "models:\n  - zoo:resnet50\n", "SQLite format 3",
                                        "PK\003\004"};
    for (int i = 0; i < 4; i++) {
        write_bytes(texts[i], strlen(texts[i]));
        expect_untouched("not a profile store of cotenant");
    }
    char junk[8192];
    memset(junk, 0, sizeof junk);
    write_bytes(junk, sizeof junk);
    expect_untouched("not a profile store of cotenant");
}

static void test_another_schema(void **state) {
    (void)state;
    make_store(1);
    change_file("PRAGMA user_version = 77");
    expect_untouched("another version of cotenant wrote it (format 77");
}

static void test_another_program(void **state) {
    (void)state;
    change_file("CREATE TABLE bookmarks(url TEXT)");
    expect_untouched("database of another program");
    change_file("DROP TABLE bookmarks");
    expect_untouched("database of another program");
}

static void test_empty_file(void **state) {
    (void)state;
    write_bytes("", 0);
    assert_int_equal(profile_store_check(path), ERR_OK);
    make_store(1);
    assert_int_equal(profile_store_check(path), ERR_OK);
}

// Checking a path creates nothing.
static void test_check_only(void **state) {
    (void)state;
    assert_int_equal(profile_store_check(path), ERR_OK);
    assert_int_equal(access(path, F_OK), -1);
    assert_int_equal(profile_store_check(root), ERR_CONFIG);
    assert_non_null(strstr(err_why(), "it is a folder"));
    assert_int_equal(profile_store_check("/dev/null"), ERR_CONFIG);
    assert_int_equal(profile_store_check(arena_printf(&arena, "%s/none/p.db", root)), ERR_CONFIG);
    assert_int_equal(mkfifo(path, 0600), 0);
    assert_int_equal(profile_store_check(path), ERR_CONFIG);
    assert_non_null(strstr(err_why(), "pipe"));
}

// SQLite deletes the journal of an empty database; one of another origin is kept.
static void test_foreign_journal(void **state) {
    (void)state;
    char *names[] = {arena_printf(&arena, "%s-journal", path),
                     arena_printf(&arena, "%s-wal", path)};
    for (int i = 0; i < 2; i++) {
        ProfileStore s;
        size_t       len = 0;
        assert_int_equal(file_replace(names[i], "my diary", 8), ERR_OK);
        profile_store_open(&s, path, &cpu, &isa_baseline);
        assert_non_null(strstr(s.why, names[i]));
        profile_store_close(&s);
        assert_memory_equal(bytes_of(names[i], &len), "my diary", 8);
        assert_int_equal(unlink(names[i]), 0);
    }
}

// A link is followed, to a new file too.
static void test_link(void **state) {
    (void)state;
    char *target = arena_printf(&arena, "%s/target.db", root);
    assert_int_equal(symlink(target, path), 0);
    make_store(1);
    assert_int_equal(access(target, F_OK), 0);
    assert_int_equal(profile_store_check(path), ERR_OK);
    assert_int_equal(file_replace(target, "mine", 4), ERR_OK);
    expect_untouched("not a profile store of cotenant");
}

// Damage in each page in turn is detected, and the file stays as it is.
static void test_damaged_pages(void **state) {
    (void)state;
    size_t len = 0, found = 0;
    make_store(30);
    const char *bytes = bytes_of(path, &len);
    for (size_t at = 0; at + 4096 <= len; at += 4096) {
        char *broken = memcpy(arena_new(&arena, char, len), bytes, len);
        memset(broken + at + (at == 0 ? 100 : 0), 0xa5, at == 0 ? 3996 : 4096);
        write_bytes(broken, len);
        ProfileStore s;
        LayerProfile p = profile(40), got;
        profile_store_open(&s, path, &cpu, &isa_baseline);
        for (int i = 0; i < 30; i++)
            if (profile_store_get(&s, arena_printf(&arena, "layer %d", i), &arena, &got))
                assert_true(same(&p, &got));
        bool unusable = s.db == NULL;
        profile_store_close(&s);
        if (unusable) expect_untouched("it is damaged");
        found += unusable;
    }
    assert_true(found >= len / 4096 / 2);
    write_bytes(bytes, len);
    assert_int_equal(profile_store_check(path), ERR_OK);
}

static void test_truncated(void **state) {
    (void)state;
    struct stat st;
    make_store(3);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(truncate(path, st.st_size - 1), 0);
    expect_untouched("it is damaged");
    assert_int_equal(truncate(path, 5000), 0);
    expect_untouched("it is damaged");
}

// Damage that appears while the store is open ends its use.
static void test_damaged_in_use(void **state) {
    (void)state;
    ProfileStore s;
    LayerProfile p = profile(2), got;
    make_store(30);
    profile_store_open(&s, path, &cpu, &isa_baseline);
    assert_non_null(s.db);
    change_file("DROP TABLE profile");
    assert_false(profile_store_put(&s, "conv", &p));
    assert_non_null(strstr(s.why, "it is damaged"));
    assert_false(profile_store_get(&s, "conv", &arena, &got));
    profile_store_close(&s);
}

// A store that another process has locked is not a wrong path: this run goes on without it.
static void test_locked(void **state) {
    (void)state;
    sqlite3 *db = NULL;
    make_store(1);
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, "BEGIN EXCLUSIVE", NULL, NULL, NULL), SQLITE_OK);
    assert_int_equal(profile_store_check(path), ERR_OK);
    ProfileStore s;
    profile_store_open(&s, path, &cpu, &isa_baseline);
    assert_null(s.db);
    assert_non_null(strstr(s.why, "locked"));
    profile_store_close(&s);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

static int look_without_rights(const char *where, bool there) {
    ProfileStore s;
    LayerProfile p = profile(2), got;
    if (geteuid() == 0 && setuid(65534) != 0) return 77;
    profile_store_open(&s, where, &cpu, &isa_baseline);
    bool found = profile_store_get(&s, "conv", &arena, &got);
    bool kept = profile_store_put(&s, "conv", &p);
    bool ok = found == there && !kept && (there || s.why[0] != '\0');
    profile_store_close(&s);
    return ok ? 0 : 1;
}

static void test_read_only(void **state) {
    (void)state;
    ProfileStore s;
    LayerProfile p = profile(2);
    profile_store_open(&s, path, &cpu, &isa_baseline);
    assert_true(profile_store_put(&s, "conv", &p));
    profile_store_close(&s);
    assert_int_equal(chmod(path, 0444) | chmod(root, 0555), 0);
    for (int i = 0; i < 2; i++) {
        pid_t pid = fork();
        if (pid == 0)
            _exit(look_without_rights(i == 0 ? path : arena_printf(&arena, "%s/no.db", root),
                                      i == 0));
        assert_int_equal(wait_for(pid), 0);
    }
    assert_int_equal(chmod(root, 0755), 0);
}

// With a full disk, stored profiles stay readable.
static int fill_up(void) {
    ProfileStore s;
    LayerProfile p = profile(2), large = profile(400), got;
    profile_store_open(&s, path, &cpu, &isa_baseline);
    bool        first = profile_store_put(&s, "conv", &p);
    struct stat st;
    if (stat(path, &st) != 0) return 2;
    struct rlimit now = {(rlim_t)st.st_size, (rlim_t)st.st_size};
    (void)signal(SIGXFSZ, SIG_IGN);
    if (setrlimit(RLIMIT_FSIZE, &now) != 0) return 77;
    bool second = profile_store_put(&s, "large", &large), told = s.why[0] != '\0';
    bool found = profile_store_get(&s, "conv", &arena, &got) && same(&p, &got);
    bool none_left = !profile_store_get(&s, "large", &arena, &got);
    profile_store_close(&s);
    return first && !second && told && found && none_left ? 0 : 1;
}

static void test_full_disk(void **state) {
    (void)state;
    pid_t pid = fork();
    if (pid == 0) _exit(fill_up());
    assert_int_equal(wait_for(pid), 0);
}

static void test_nowhere(void **state) {
    (void)state;
    static const char *const plan[] = {"/dev/null/p.db", "/proc/p.db", "/"};
    ProfileStore             s;
    LayerProfile             p = profile(2), got;
    for (int i = 0; i < 3; i++) {
        profile_store_open(&s, plan[i], &cpu, &isa_baseline);
        assert_true(strstr(s.why, plan[i]) != NULL);
        assert_false(profile_store_put(&s, "conv", &p));
        assert_false(profile_store_get(&s, "conv", &arena, &got));
        profile_store_close(&s);
    }
}

static void test_default_place(void **state) {
    (void)state;
    ProfileStore s;
    assert_int_equal(setenv("XDG_CACHE_HOME", root, 1), 0);
    profile_store_open(&s, NULL, &cpu, &isa_baseline);
    assert_string_equal(s.why, "");
    assert_true(strncmp(s.path, root, strlen(root)) == 0);
    profile_store_close(&s);
    assert_int_equal(setenv("XDG_CACHE_HOME", "/dev/null/x", 1), 0);
    profile_store_open(&s, NULL, &cpu, &isa_baseline);
    assert_true(s.why[0] != '\0');
    profile_store_close(&s);
}

// A store that other users may write is neither read nor modified.
static void test_others_may_write(void **state) {
    (void)state;
    ProfileStore s;
    LayerProfile p = profile(2), got;
    profile_store_open(&s, path, &cpu, &isa_baseline);
    assert_true(profile_store_put(&s, "conv", &p));
    profile_store_close(&s);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(chmod(path, i == 0 ? 0666 : 0644), 0);
        assert_int_equal(chmod(root, i == 1 ? 0777 : i == 2 ? 01777 : 0755), 0);
        profile_store_open(&s, path, &cpu, &isa_baseline);
        assert_int_equal(profile_store_get(&s, "conv", &arena, &got), i == 2);
        assert_int_equal(strstr(s.why, "other users may write") != NULL, i < 2);
        profile_store_close(&s);
    }
    assert_int_equal(chmod(root, 0755), 0);
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

TEST_MAIN() {
    const struct CMUnitTest tests[] = {
        T(test_records),          T(test_kept),
        T(test_not_mixed),        T(test_foreign_files),
        T(test_another_schema),   T(test_another_program),
        T(test_empty_file),       T(test_check_only),
        T(test_foreign_journal),  T(test_link),
        T(test_damaged_pages),    T(test_truncated),
        T(test_damaged_in_use),   T(test_locked),
        T(test_read_only),        T(test_nowhere),
        T(test_default_place),    T(test_full_disk),
        T(test_others_may_write),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
