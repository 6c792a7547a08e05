// Listeners: addresses, connection limits, and running out of descriptors.
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <dirent.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "tests/net/http1_server.h"
#include "tests/runner.h"

enum { ROOM = 1 << 16 };
static char body[ROOM];

#define ASK "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nok"

static void addresses_are_told_apart(void **state) {
    (void)state;
    static const struct {
        const char *text;
        int         local;  // -1: no address
    } rows[] = {
        {"127.0.0.1:8000", 1},
        {"127.9.9.9:0", 1},
        {"localhost:80", 1},
        {"LocalHost.:80", 1},
        {"a.localhost:80", 1},
        {"ip6-localhost:80", 1},
        {".localhost:80", -1},
        {"notlocalhost:80", -1},
        {"localhost.example:80", -1},
        {"[::1]:8000", 1},
        {"0.0.0.0:8000", 0},
        {"[::]:8000", 0},
        {"10.0.0.1:80", 0},
        {"unix:/run/x", 1},
        {"[::ffff:127.0.0.1]:1", 1},
        {"[::ffff:10.0.0.1]:1", 0},
        {"", -1},
        {"8000", -1},
        {":8000", -1},
        {"127.0.0.1", -1},
        {"127.0.0.1:", -1},
        {"127.0.0.1:x", -1},
        {"127.0.0.1:65536", -1},
        {"127.0.0.1:-1", -1},
        {"127.0.0.1:080000", -1},
        {"::1:80", -1},
        {"[::1]", -1},
        {"[::1]80", -1},
        {"example.org:80", -1},
        {"unix:", -1},
        {"127.0.0.1:80 ", -1},
        {"127.1:80", -1},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        bool local = false;
        Err  e = listener_is_local(rows[i].text, &local);
        if ((e == ERR_OK ? local : -1) != rows[i].local) fail_msg("%s", rows[i].text);
    }
    char long_path[300] = "unix:/";
    memset(long_path + 6, 'x', 200);
    bool local;
    assert_int_equal(listener_is_local(long_path, &local), ERR_ARG);
}

static void a_port_is_had_by_one(void **state) {
    (void)state;
    Http1Server    *h = http1_server_open(NULL);
    Loop           *l;
    Listener       *second = NULL;
    ListenerOptions o = {.address = http1_server_address(h)};
    assert_int_equal(loop_create(&l), ERR_OK);
    assert_int_equal(listener_open(&second, l, &o), ERR_IO);
    assert_non_null(strstr(err_why(), http1_server_address(h)));
    o.address = "nowhere";
    assert_int_equal(listener_open(&second, l, &o), ERR_ARG);
    assert_null(second);
    listener_close(NULL);
    loop_destroy(l);
    http1_server_close(h);
}

static void socket_files_are_replaced_only_when_dead(void **state) {
    (void)state;
    char            folder[] = "/tmp/cotenant-net-XXXXXX", path[64], address[80];
    struct stat     st;
    ListenerOptions o = {.address = address};
    Listener       *l = NULL;
    Loop           *loop;
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/s", folder);
    snprintf(address, sizeof address, "unix:%s", path);
    assert_int_equal(loop_create(&loop), ERR_OK);
    Http1Server *h = http1_server_open_at(NULL, address);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 0007, 0);
    assert_int_equal(listener_open(&l, loop, &o), ERR_IO);  // the address is in use
    assert_int_equal(http1_server_ask(h, ASK), 200);
    http1_server_close(h);
    int                dead = socket(AF_UNIX, SOCK_STREAM, 0);
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    snprintf(at.sun_path, sizeof at.sun_path, "%s", path);
    assert_int_equal(bind(dead, (struct sockaddr *)&at, sizeof at), 0);
    close(dead);  // as after kill -9
    h = http1_server_open_at(NULL, address);
    assert_int_equal(http1_server_ask(h, ASK), 200);
    assert_int_equal(unlink(path), 0);
    FILE *f = fopen(path, "w");  // not a socket: must not be removed
    fclose(f);
    http1_server_close(h);
    assert_int_equal(listener_open(&l, loop, &o), ERR_IO);
    assert_int_equal(stat(path, &st), 0);
    unlink(path), rmdir(folder);
    loop_destroy(loop);
}

static void idle_ones_make_room_when_all_places_are_taken(void **state) {
    (void)state;
    ListenerLimits limits = {.connections = 16};
    Http1Server   *h = http1_server_open(&limits);
    int            busy = http1_server_connect(h), used = http1_server_connect(h), fds[400];
    http1_server_text(busy, "POST /hold HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nok");
    http1_server_text(used, ASK);
    assert_int_equal(http1_server_answer(used, body, ROOM), 200);
    while (http1_server_requests(h) < 2) usleep(200);
    for (int i = 0; i < 400; i++) {
        fds[i] = http1_server_connect(h);
        if (i % 3 == 0) http1_server_text(fds[i], "GET /slow");
    }
    assert_int_equal(http1_server_ask(h, ASK), 200);
    assert_true(http1_server_counts(h).open <= 16);
    http1_server_text(used, ASK);  // a connection that has sent a request
    assert_int_equal(http1_server_answer(used, body, ROOM), 200);
    for (int i = 0; i < 5000 && http1_server_ended(h) != http1_server_heads(h) - 1; i++)
        usleep(1000);
    assert_int_equal(http1_server_ended(h), http1_server_heads(h) - 1);
    for (int i = 0; i < 400; i++) close(fds[i]);
    close(busy), close(used);
    http1_server_close(h);
}

static void busy_ones_do_not(void **state) {
    (void)state;
    ListenerLimits limits = {.connections = 4};
    Http1Server   *h = http1_server_open(&limits);
    int            busy[4];
    for (int i = 0; i < 4; i++) {
        busy[i] = http1_server_connect(h);
        http1_server_text(busy[i], "POST /hold HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nok");
    }
    while (http1_server_requests(h) < 4) usleep(200);
    assert_int_equal(http1_server_ask(h, ASK), 0);
    assert_int_equal(http1_server_counts(h).refused, 1);
    for (int i = 0; i < 4; i++) close(busy[i]);
    http1_server_close(h);
}

static int descriptors(void) {
    int  n = 0;
    DIR *d = opendir("/proc/self/fd");
    while (readdir(d)) n++;
    closedir(d);
    return n;
}

static double cpu(void) {
    struct rusage r;
    getrusage(RUSAGE_SELF, &r);
    return (double)r.ru_utime.tv_sec + (double)r.ru_stime.tv_sec +
           (double)(r.ru_utime.tv_usec + r.ru_stime.tv_usec) / 1e6;
}

// The test shares its descriptors with the listener: clients are made first, then the limit falls.
static void running_out_of_descriptors_is_waited_for_without_spinning(void **state) {
    (void)state;
    Http1Server  *h = http1_server_open(NULL);
    struct rlimit was, low;
    int           fds[8], held = http1_server_connect(h);
    http1_server_text(held, "POST /hold HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nok");
    while (http1_server_requests(h) < 1) usleep(200);
    getrlimit(RLIMIT_NOFILE, &was);
    for (int i = 0; i < 8; i++) fds[i] = socket(AF_INET, SOCK_STREAM, 0);
    low = was;
    low.rlim_cur = (rlim_t)fds[7] + 1;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &low), 0);
    struct sockaddr_storage to;
    socklen_t               len = sizeof to;
    getpeername(held, (struct sockaddr *)&to, &len);
    for (int i = 0; i < 8; i++) assert_int_equal(connect(fds[i], (struct sockaddr *)&to, len), 0);
    double before = cpu();
    usleep(400000);
    assert_true(cpu() - before < 0.2);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &was), 0);
    for (int i = 0; i < 8; i++) {
        struct timeval patience = {.tv_sec = 5};
        setsockopt(fds[i], SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
        http1_server_text(fds[i], ASK);
        assert_int_equal(http1_server_answer(fds[i], body, ROOM), 200);
        close(fds[i]);
    }
    close(held);
    http1_server_close(h);
}

// With few descriptors, some stay reserved for files and models.
static void a_reserve_of_descriptors_stays(void **state) {
    (void)state;
    Http1Server  *h = http1_server_open(NULL);
    struct rlimit was, low;
    int           fds[40];
    getrlimit(RLIMIT_NOFILE, &was);
    for (int i = 0; i < 40; i++) fds[i] = socket(AF_INET, SOCK_STREAM, 0);
    low = was;
    low.rlim_cur = (rlim_t)fds[39] + 40;
    int                     probe = http1_server_connect(h);
    struct sockaddr_storage to;
    socklen_t               len = sizeof to;
    getpeername(probe, (struct sockaddr *)&to, &len);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &low), 0);
    for (int i = 0; i < 40; i++) assert_int_equal(connect(fds[i], (struct sockaddr *)&to, len), 0);
    ListenerCounts c;
    do c = http1_server_counts(h);
    while (c.accepted + c.refused < 41);
    int highest = dup(0);  // the lowest that is free
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &was), 0);
    close(highest);
    assert_true(c.open > 0 && c.accepted > c.open);
    rlim_t reserve = low.rlim_cur / 4 < 64 ? low.rlim_cur / 4 : 64;
    assert_true(highest > 0 && (rlim_t)highest + reserve <= low.rlim_cur);
    for (int i = 0; i < 40; i++) close(fds[i]);
    close(probe);
    http1_server_close(h);
}

static void nothing_is_left_open(void **state) {
    (void)state;
    int before = descriptors();
    for (int i = 0; i < 20; i++) {
        Http1Server *h = http1_server_open(NULL);
        int          fd = http1_server_connect(h), half = http1_server_connect(h);
        http1_server_text(fd, ASK ASK);
        http1_server_text(half, "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 200\r\n\r\nok");
        assert_int_equal(http1_server_answer(fd, body, ROOM), 200);
        close(fd), close(half);
        http1_server_close(h);
    }
    assert_int_equal(descriptors(), before);
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(addresses_are_told_apart),
        cmocka_unit_test(a_port_is_had_by_one),
        cmocka_unit_test(socket_files_are_replaced_only_when_dead),
        cmocka_unit_test(idle_ones_make_room_when_all_places_are_taken),
        cmocka_unit_test(busy_ones_do_not),
        cmocka_unit_test(running_out_of_descriptors_is_waited_for_without_spinning),
        cmocka_unit_test(a_reserve_of_descriptors_stays),
        cmocka_unit_test(nothing_is_left_open),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
