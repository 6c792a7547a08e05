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
    put("model_secret");
    char absolute[64];
    (void)snprintf(absolute, sizeof absolute, "%s/model/good", folder);
    return link("model/twin", "model/twin2") | symlink("../secret", "model/link") |
           symlink("good", "model/near") | symlink("sub", "model/subway") |
           symlink("..", "model/sub/up") | symlink(absolute, "model/absolute") |
           symlink("..", "model/outside") | symlink("link", "model/chain") |
           symlink("/etc/passwd", "model/passwd") | symlink("/proc/version", "model/kernel") |
           symlink("../model_secret", "model/sibling") | symlink("loop", "model/loop") |
           symlink("nowhere", "model/dangling") | symlink("pipe", "model/piped") |
           symlink("/dev/zero", "model/device") | symlink("twin", "model/twinned") |
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

// Links of the folder are followed while they stay in it.
static void links_within_the_folder_are_followed(void **state) {
    (void)state;
    static const char *const links[] = {"near", "subway/good", "sub/up/near", "absolute"};
    float                    out[2];
    for (size_t i = 0; i < sizeof links / sizeof *links; i++) {
        assert_int_equal(try_read(links[i], "8", NULL, out), ERR_OK);
        assert_true(out[0] == 3 && out[1] == 4);
    }
}

static void run(const char *command) { assert_int_equal(system(command), 0); }

static Err read_at(const char *path, const char *root, const char *location) {
    Msg       m = model_with(tensor_at("w", location, NULL, NULL));
    Model     out;
    OnnxPlace place = {.path = path, .root = root};
    Err       e = onnx_read_bytes(m.at, m.n, "test", &place, &out);
    free(m.at);
    if (e == ERR_OK) model_finish(&out);
    return e;
}

// hub/snapshots/REVISION/model.onnx -> ../../blobs/HASH, and its data likewise.
static void caches_of_hugging_face(void **state) {
    (void)state;
    run("mkdir -p hub/blobs hub/snapshots/r1/onnx && cp model/good hub/blobs/data &&"
        " cp model/good hub/blobs/model && ln -s ../../../blobs/model hub/snapshots/r1/onnx/m.onnx "
        "&&"
        " ln -s ../../../blobs/data hub/snapshots/r1/onnx/m.onnx_data &&"
        " ln -s ../../../../secret hub/snapshots/r1/onnx/stolen");
    const char *path = "hub/snapshots/r1/onnx/m.onnx";
    assert_int_equal(read_at(path, NULL, "m.onnx_data"), ERR_OK);
    assert_int_equal(read_at(path, "hub/snapshots/r1", "m.onnx_data"), ERR_OK);
    assert_int_equal(read_at(path, "hub", "stolen"), ERR_INVALID);
    assert_int_equal(read_at(path, "hub", "../../../blobs/data"), ERR_INVALID);
    // A repository that links to the snapshot, for the model alone or for both.
    run("mkdir -p repo/m/1 && ln -s ../../../hub/snapshots/r1/onnx/m.onnx repo/m/1/model.onnx");
    assert_int_equal(read_at("repo/m/1/model.onnx", "repo", "m.onnx_data"), ERR_IO);
    run("ln -s ../../../hub/snapshots/r1/onnx/m.onnx_data repo/m/1/m.onnx_data");
    assert_int_equal(read_at("repo/m/1/model.onnx", "repo", "m.onnx_data"), ERR_OK);
    // Without links of its own, data lies beside the file that the repository links to.
    run("mkdir -p store repo/n/1 && cp model/good store/n.onnx && cp model/good store/n.data &&"
        " ln -s ../../../store/n.onnx repo/n/1/model.onnx");
    assert_int_equal(read_at("repo/n/1/model.onnx", "repo", "n.data"), ERR_OK);
    assert_int_equal(read_at("repo/n/1/model.onnx", "repo", "../secret"), ERR_INVALID);
}

// model.onnx -> ..data/model.onnx, where ..data -> ..DATE is replaced in one step.
static void volumes_of_kubernetes(void **state) {
    (void)state;
    run("mkdir -p vol/..2024_1 vol/..2024_2 && cp model/good vol/..2024_1/w.bin &&"
        " cp model/good vol/..2024_2/w.bin && cp model/good vol/..2024_1/model.onnx &&"
        " cp model/good vol/..2024_2/model.onnx && ln -s ..2024_1 vol/..data &&"
        " ln -s ..data/w.bin vol/w.bin && ln -s ..data/model.onnx vol/model.onnx");
    assert_int_equal(read_at("vol/model.onnx", "vol", "w.bin"), ERR_OK);
    assert_int_equal(read_at("vol/model.onnx", NULL, "w.bin"), ERR_OK);
    run("ln -s ..2024_2 vol/..next && mv -T vol/..next vol/..data && rm -r vol/..2024_1");
    assert_int_equal(read_at("vol/model.onnx", "vol", "w.bin"), ERR_OK);
    assert_int_equal(read_at("vol/model.onnx", "vol", "..data/../w.bin"), ERR_INVALID);
}

// Links may lead anywhere below the folder that the operator named, and no further.
static void the_operators_folder_is_trusted(void **state) {
    (void)state;
    run("mkdir -p tree/weights tree/m/1 treeless && cp model/good tree/weights/w &&"
        " cp model/good treeless/w && ln -s ../../weights/w tree/m/1/w &&"
        " ln -s ../../../treeless/w tree/m/1/other");
    assert_int_equal(read_at("tree/m/1/model.onnx", "tree", "w"), ERR_OK);
    assert_int_equal(read_at("tree/m/1/model.onnx", "tree/m", "w"), ERR_INVALID);
    assert_int_equal(read_at("tree/m/1/model.onnx", NULL, "w"), ERR_INVALID);
    assert_int_equal(read_at("tree/m/1/model.onnx", "tree", "other"), ERR_INVALID);
    assert_int_equal(read_at("tree/m/1/model.onnx", "absent", "w"), ERR_INVALID);
    run("ln -s tree tree_link");
    assert_int_equal(read_at("tree_link/m/1/model.onnx", "tree_link", "w"), ERR_OK);
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
    bad("link", NULL, NULL, ERR_INVALID, "a link that leads out of the model's folder");
    bad("outside/secret", NULL, NULL, ERR_INVALID, "a link that leads out");
    bad("chain", NULL, NULL, ERR_INVALID, "a link that leads out");
    bad("passwd", NULL, NULL, ERR_INVALID, "a link that leads out");
    bad("kernel", NULL, NULL, ERR_INVALID, "a link that leads out");
    bad("sibling", NULL, NULL, ERR_INVALID, "a link that leads out");
    bad("loop", NULL, NULL, ERR_INVALID, "loop of links");
    bad("dangling", NULL, NULL, ERR_IO, "dangling");
    bad("piped", NULL, NULL, ERR_INVALID, "not a regular file");
    bad("device", NULL, NULL, ERR_INVALID, "a link that leads out");
    bad("twinned", NULL, NULL, ERR_INVALID, "hard links");
    bad("twin", NULL, NULL, ERR_INVALID, "hard links");
    bad("pipe", NULL, NULL, ERR_INVALID, "not a regular file");
    bad("sub", NULL, NULL, ERR_INVALID, "not a regular file");
    bad("good/x", NULL, NULL, ERR_INVALID, "below a file");
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
        msg_sub(&g, 5,
                tensor_at(name,
                          i % 2 == 0 ? "good"
                          : i == 1   ? "./good"
                                     : "near",
                          NULL, NULL));
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
    static const char *const traps[] = {
        "link", "outside/secret", "chain",  "passwd", "twin", "pipe",
        "sub",  "good/x",         "absent", "loop"};
    float out[2];
    if (forget_openat2() != 0) return 77;
    if (try_read("sub/good", NULL, NULL, out) != ERR_OK || out[1] != 2) return 1;
    if (try_read("subway/good", NULL, NULL, out) != ERR_OK || out[1] != 2) return 1;
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
        cmocka_unit_test(links_within_the_folder_are_followed),
        cmocka_unit_test(caches_of_hugging_face),
        cmocka_unit_test(volumes_of_kubernetes),
        cmocka_unit_test(the_operators_folder_is_trusted),
        cmocka_unit_test(invalid_locations_are_rejected),
        cmocka_unit_test(bad_ranges_are_rejected),
        cmocka_unit_test(needs_a_folder),
        cmocka_unit_test(files_are_not_multiplied),
        cmocka_unit_test(old_kernels_are_as_strict),
    };
    return cmocka_run_group_tests(tests, make_files, remove_files);
}
