// External data: regular files below the model's folder only, within their size.
#include "tests/model/onnx_build.h"
#include "tests/runner.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static char        folder[] = "/tmp/onnx_external_XXXXXX";
static const float numbers[4] = {1, 2, 3, 4};

static void put(const char *path) {
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(numbers, 1, sizeof numbers, f), sizeof numbers);
    assert_int_equal(fclose(f), 0);
}

// FOLDER/model has valid files and traps; FOLDER/secret is outside it.
static int make_files(void **state) {
    (void)state;
    if (mkdtemp(folder) == NULL || chdir(folder) != 0) return -1;
    put("secret");
    if (mkdir("model", 0755) != 0 || mkdir("model/sub", 0755) != 0) return -1;
    put("model/good");
    put("model/sub/good");
    put("model/twin");
    return link("model/twin", "model/twin2") | symlink("../secret", "model/link") |
           symlink("good", "model/near") | symlink("sub", "model/subway") |
           mkfifo("model/pipe", 0644);
}

static int remove_files(void **state) {
    (void)state;
    char command[128];
    (void)snprintf(command, sizeof command, "rm -r %s", folder);
    return chdir("/") | system(command);
}

static void entry(Msg *tensor, const char *key, const char *value) {
    Msg m = {0};
    if (value == NULL) return;
    msg_text(&m, 1, key);
    msg_text(&m, 2, value);
    msg_sub(tensor, 13, m);
}

static Msg tensor_at(const char *name, const char *location, const char *offset,
                     const char *length) {
    int64_t dim = 2;
    Msg     m = tensor_head(name, DT_F32, 1, &dim);
    msg_int(&m, 14, 1);
    entry(&m, "location", location);
    entry(&m, "offset", offset);
    entry(&m, "length", length);
    return m;
}

static Msg model_with(Msg tensor) {
    Msg g = {0};
    msg_sub(&g, 5, tensor);
    msg_sub(&g, 1, node_of("Relu", "w", "y"));
    graph_ends(&g, "", "y");
    return model_of(g, 13);
}

static Err try_read(const char *location, const char *offset, const char *length, float *out) {
    Model m;
    Err   e = read_msg(model_with(tensor_at("w", location, offset, length)), "model", &m);
    if (e != ERR_OK) return e;
    memcpy(out, m.graph->values[graph_find(m.graph, "w")].type.data, 2 * sizeof *out);
    model_finish(&m);
    return e;
}

static void valid_locations_are_read(void **state) {
    (void)state;
    float out[2];
    assert_int_equal(try_read("good", NULL, NULL, out), ERR_OK);
    assert_true(out[0] == 1 && out[1] == 2);
    assert_int_equal(try_read("good", "8", "8", out), ERR_OK);
    assert_true(out[0] == 3 && out[1] == 4);
    assert_int_equal(try_read("./sub//good", "4", NULL, out), ERR_OK);
    assert_true(out[0] == 2 && out[1] == 3);
}

static void bad(const char *location, const char *offset, const char *length, Err e,
                const char *why) {
    float out[2];
    Err   got = try_read(location, offset, length, out);
    if (got != e || strstr(err_why(), why) == NULL)
        fail_msg("'%s' wanted '%s', got %s: %s", location, why, err_text(got), err_why());
    assert_non_null(strstr(err_why(), "tensor 'w'"));
}

static void invalid_locations_are_rejected(void **state) {
    (void)state;
    char absolute[64];
    (void)snprintf(absolute, sizeof absolute, "%s/secret", folder);
    bad(absolute, NULL, NULL, ERR_INVALID, "absolute");
    bad("../secret", NULL, NULL, ERR_INVALID, "'..'");
    bad("sub/../good", NULL, NULL, ERR_INVALID, "'..'");
    bad("sub/../../secret", NULL, NULL, ERR_INVALID, "'..'");
    bad("..", NULL, NULL, ERR_INVALID, "'..'");
    bad("link", NULL, NULL, ERR_INVALID, "link");
    bad("near", NULL, NULL, ERR_INVALID, "link");
    bad("subway/good", NULL, NULL, ERR_INVALID, "link");
    bad("twin", NULL, NULL, ERR_INVALID, "hard links");
    bad("pipe", NULL, NULL, ERR_INVALID, "not a regular file");
    bad("sub", NULL, NULL, ERR_INVALID, "not a regular file");
    bad("good/x", NULL, NULL, ERR_INVALID, "symbolic link or below a file");
    bad("absent", NULL, NULL, ERR_IO, "absent");
    bad("", NULL, NULL, ERR_INVALID, "empty");
    bad("./.", NULL, NULL, ERR_INVALID, "empty");
    bad(NULL, NULL, NULL, ERR_INVALID, "no location");
}

static void bad_ranges_are_rejected(void **state) {
    (void)state;
    bad("good", "9", NULL, ERR_INVALID, "past the end");
    bad("good", "17", NULL, ERR_INVALID, "past the end");
    bad("good", "18446744073709551615", NULL, ERR_INVALID, "past the end");
    bad("good", "18446744073709551616", NULL, ERR_INVALID, "not a byte count");
    bad("good", "-1", NULL, ERR_INVALID, "not a byte count");
    bad("good", "", NULL, ERR_INVALID, "not a byte count");
    bad("good", "1x", NULL, ERR_INVALID, "not a byte count");
    bad("good", NULL, "7", ERR_INVALID, "external length is 7");
    bad("good", NULL, "18446744073709551615", ERR_INVALID, "external length");
    bad("good", NULL, "-8", ERR_INVALID, "not a byte count");
}

static void needs_a_folder(void **state) {
    (void)state;
    rejected(model_with(tensor_at("w", "good", NULL, NULL)), ERR_UNSUPPORTED, "another file");
}

// Many tensors cannot turn a small file into much memory.
static void files_are_not_multiplied(void **state) {
    (void)state;
    Msg   g = {0};
    Model m;
    for (int i = 0; i < 5; i++) {
        char name[8];
        (void)snprintf(name, sizeof name, "w%d", i);
        msg_sub(&g, 5, tensor_at(name, i % 2 == 0 ? "good" : "./good", NULL, NULL));
    }
    assert_int_equal(read_msg(model_of(g, 13), "model", &m), ERR_LIMIT);
    assert_non_null(strstr(err_why(), "tensor 'w4'"));
}

// Makes openat2 fail with ENOSYS, irrevocably for this process.
static int forget_openat2(void) {
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat2, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog prog = {sizeof code / sizeof *code, code};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) |
           prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog);
}

static int old_kernel(void) {
    static const char *const traps[] = {"link", "near", "subway/good", "twin",
                                        "pipe", "sub",  "good/x",      "absent"};
    float                    out[2];
    if (forget_openat2() != 0) return 77;
    if (try_read("sub/good", NULL, NULL, out) != ERR_OK || out[1] != 2) return 1;
    for (size_t i = 0; i < sizeof traps / sizeof *traps; i++)
        if (try_read(traps[i], NULL, NULL, out) == ERR_OK) return 2 + (int)i;
    return 0;
}

static void old_kernels_are_as_strict(void **state) {
    (void)state;
    int   status = 0;
    pid_t kid = fork();
    if (kid == 0) _exit(old_kernel());
    assert_true(kid > 0 && waitpid(kid, &status, 0) == kid);
    assert_true(WIFEXITED(status));
    if (WEXITSTATUS(status) == 77) skip();
    assert_int_equal(WEXITSTATUS(status), 0);
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(valid_locations_are_read),
        cmocka_unit_test(invalid_locations_are_rejected),
        cmocka_unit_test(bad_ranges_are_rejected),
        cmocka_unit_test(needs_a_folder),
        cmocka_unit_test(files_are_not_multiplied),
        cmocka_unit_test(old_kernels_are_as_strict),
    };
    return cmocka_run_group_tests(tests, make_files, remove_files);
}
