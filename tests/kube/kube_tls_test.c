// TLS against OpenSSL's own server with certificates made here: the server is verified, by name
// too, and the client's certificate reaches it.
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/file.h"
#include "kube/kube_api.h"
#include "tests/runner.h"

enum { ARGS = 24 };

typedef struct TlsServer {
    pid_t pid;
    FILE *out;
    char  port[16];
} TlsServer;

typedef struct Scene {  // here: for the address it is asked at; named: for the name "kubernetes"
    char      folder[32];
    Arena     arena;
    TlsServer here, named;
} Scene;

typedef struct Ending {
    Loop       *loop;
    KubeOutcome outcome;
    uint32_t    status;
    char        fault[512];
    char        body[16384];
} Ending;

static pid_t spawn(const char *const *args, int out) {
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid > 0) return pid;
    int null = open("/dev/null", O_RDWR);
    if (null < 0 || dup2(null, 0) < 0 || dup2(out >= 0 ? out : null, 1) < 0 || dup2(null, 2) < 0)
        _exit(126);
    (void)execvp("openssl", (char *const *)(uintptr_t)args);
    _exit(127);
}

static char *path_of(Scene *s, const char *name) {
    return arena_printf(&s->arena, "%s/%s", s->folder, name);
}

static void make_certificate(Scene *s, const char *cert, const char *key, const char *name) {
    char             *alt = arena_printf(&s->arena, "subjectAltName=%s", name);
    const char *const args[] = {"openssl",
                                "req",
                                "-x509",
                                "-newkey",
                                "ec",
                                "-pkeyopt",
                                "ec_paramgen_curve:prime256v1",
                                "-nodes",
                                "-days",
                                "2",
                                "-subj",
                                "/CN=cotenant test",
                                "-addext",
                                alt,
                                "-keyout",
                                path_of(s, key),
                                "-out",
                                path_of(s, cert),
                                NULL};
    int               status = 0;
    pid_t             pid = spawn(args, -1);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
}

static void serve(Scene *s, TlsServer *t, const char *cert, const char *key) {
    const char *const args[] = {
        "openssl",        "s_server", "-accept",       "127.0.0.1:0", "-www", "-cert",
        path_of(s, cert), "-key",     path_of(s, key), "-verify",     "1",    NULL};
    int  ends[2];
    char line[256];
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    t->pid = spawn(args, ends[1]);
    close(ends[1]);
    t->out = fdopen(ends[0], "r");
    while (t->port[0] == '\0' && fgets(line, sizeof line, t->out) != NULL) {
        char *colon = strrchr(line, ':');
        if (strncmp(line, "ACCEPT", 6) == 0 && colon != NULL)
            (void)snprintf(t->port, sizeof t->port, "%d", (int)strtol(colon + 1, NULL, 10));
    }
    assert_true(t->port[0] != '\0');
}

static void stop(TlsServer *t) {
    assert_int_equal(kill(t->pid, SIGKILL), 0);
    assert_int_equal(waitpid(t->pid, NULL, 0), t->pid);
    (void)fclose(t->out);
}

static Scene scene;

static int open_scene(void **state) {
    Scene *s = &scene;
    (void)state;
    (void)snprintf(s->folder, sizeof s->folder, "kube_tls_test.XXXXXX");
    if (mkdtemp(s->folder) == NULL || arena_init(&s->arena, (size_t)16 << 20) != ERR_OK) return -1;
    make_certificate(s, "here.pem", "here.key", "IP:127.0.0.1");
    make_certificate(s, "named.pem", "named.key", "DNS:kubernetes");
    make_certificate(s, "client.pem", "client.key", "DNS:client");
    serve(s, &s->here, "here.pem", "here.key");
    serve(s, &s->named, "named.pem", "named.key");
    return 0;
}

static int close_scene(void **state) {
    static const char *const files[] = {"here.pem",  "here.key",   "named.pem",
                                        "named.key", "client.pem", "client.key"};
    Scene                   *s = &scene;
    (void)state;
    stop(&s->here);
    stop(&s->named);
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) (void)unlink(path_of(s, files[i]));
    (void)rmdir(s->folder);
    arena_finish(&s->arena);
    return 0;
}

static void on_done(void *self, KubeCall *c, const KubeReply *r) {
    Ending *e = self;
    (void)c;
    e->outcome = r->outcome;
    e->status = r->status;
    (void)snprintf(e->fault, sizeof e->fault, "%s", r->fault != NULL ? r->fault : "");
    (void)snprintf(e->body, sizeof e->body, "%s", r->body);
    loop_stop(e->loop);
}

static Ending *ask(const TlsServer *t, KubeConfig c) {
    static Ending e;
    KubeApi      *api = NULL;
    KubeCall      call = {.method = "GET", .path = "/", .done = on_done, .self = &e};
    e = (Ending){0};
    c.server = arena_printf(&scene.arena, "https://127.0.0.1:%s", t->port);
    assert_int_equal(loop_create(&e.loop), ERR_OK);
    assert_int_equal(kube_api_create(&api, e.loop, &c, NULL), ERR_OK);
    kube_api_submit(api, &call);
    assert_int_equal(loop_run(e.loop), ERR_OK);
    kube_api_destroy(api);
    loop_destroy(e.loop);
    return &e;
}

static void answers(const Ending *e) {
    assert_string_equal(e->fault, "");
    assert_int_equal(e->outcome, KUBE_DONE);
    assert_int_equal(e->status, 200);
}

static void is_refused(const Ending *e) {
    assert_int_equal(e->outcome, KUBE_NOT_SENT);
    assert_int_equal(e->status, 0);
    if (strcasestr(e->fault, "certificate") == NULL) fail_msg("%s", e->fault);
}

static char *pem(const char *name) {
    char  *text = NULL;
    size_t len = 0;
    assert_int_equal(file_read(path_of(&scene, name), 65536, &scene.arena, &text, &len), ERR_OK);
    return text;
}

static void a_known_authority_is_trusted(void **state) {
    (void)state;
    answers(ask(&scene.here, (KubeConfig){.ca_file = path_of(&scene, "here.pem")}));
    answers(ask(&scene.here, (KubeConfig){.ca_pem = pem("here.pem")}));
}

static void others_are_refused(void **state) {
    (void)state;
    is_refused(ask(&scene.here, (KubeConfig){0}));
    is_refused(ask(&scene.here, (KubeConfig){.ca_file = path_of(&scene, "named.pem")}));
    answers(ask(&scene.here, (KubeConfig){.insecure = true}));
}

static void the_name_is_verified(void **state) {
    const char *ca = path_of(&scene, "named.pem"), *here = path_of(&scene, "here.pem");
    (void)state;
    is_refused(ask(&scene.named, (KubeConfig){.ca_file = ca}));
    is_refused(ask(&scene.named, (KubeConfig){.ca_file = ca, .server_name = "elsewhere"}));
    answers(ask(&scene.named, (KubeConfig){.ca_file = ca, .server_name = "kubernetes"}));
    is_refused(ask(&scene.here, (KubeConfig){.ca_file = here, .server_name = "kubernetes"}));
}

static void the_client_has_a_certificate(void **state) {
    const char *ca = path_of(&scene, "here.pem");
    (void)state;
    const Ending *e = ask(&scene.here, (KubeConfig){.ca_file = ca});
    assert_non_null(strstr(e->body, "no client certificate available"));
    e = ask(&scene.here, (KubeConfig){.ca_file = ca,
                                      .certificate_file = path_of(&scene, "client.pem"),
                                      .key_file = path_of(&scene, "client.key")});
    answers(e);
    assert_non_null(strstr(e->body, "DNS:client"));
    e = ask(&scene.here, (KubeConfig){.ca_file = ca,
                                      .certificate_pem = pem("client.pem"),
                                      .key_pem = pem("client.key")});
    assert_non_null(strstr(e->body, "DNS:client"));
}

static void files_that_are_missing_are_named(void **state) {
    KubeConfig c = {.server = "https://127.0.0.1:1", .ca_file = "no-such.pem"};
    KubeApi   *api = NULL;
    Loop      *l = NULL;
    (void)state;
    assert_int_equal(loop_create(&l), ERR_OK);
    assert_int_equal(kube_api_create(&api, l, &c, NULL), ERR_IO);
    assert_non_null(strstr(err_why(), "no-such.pem"));
    loop_destroy(l);
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_known_authority_is_trusted),
        cmocka_unit_test(others_are_refused),
        cmocka_unit_test(the_name_is_verified),
        cmocka_unit_test(the_client_has_a_certificate),
        cmocka_unit_test(files_that_are_missing_are_named),
    };
    return cmocka_run_group_tests(tests, open_scene, close_scene);
}
