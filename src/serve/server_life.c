// A server's addresses, and how it ends and changes while it runs.
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/cpu.h"
#include "serve/notify.h"
#include "serve/server_int.h"

enum { HELD_PARTS = 8, LOOK_NS = 10000000, LAST_NS = 2000000000 };

// Bodies leave room for models where little memory is allowed.
static size_t held_bytes(const ServeSettings *s) {
    uint64_t wish = (uint64_t)s->held_mb << 20, most = cpu_mem_budget(&cgroup_roots) / HELD_PARTS;
    return (size_t)(wish < most ? wish : most);
}

static ListenerLimits limits_of(const ServeSettings *s) {
    return (ListenerLimits){.connections = (uint32_t)s->connections,
                            .header_bytes = (size_t)s->header_kb << 10,
                            .body_bytes = (size_t)s->body_mb << 20,
                            .held_bytes = held_bytes(s),
                            .header_ns = (TimeNs)s->header_ms * 1000000,
                            .body_ns = (TimeNs)s->body_ms * 1000000,
                            .idle_ns = (TimeNs)s->idle_ms * 1000000,
                            .write_ns = (TimeNs)s->write_ms * 1000000};
}

static Err listen_at(Server *s, uint32_t i, const char *address, ExchangeHandler handler) {
    ListenerOptions o = {.address = address,
                         .protocol = i == 1 ? LISTENER_HTTP2 : LISTENER_HTTP1,
                         .limits = limits_of(&s->o.config->serve),
                         .handler = handler};
    if (strcmp(address, "off") == 0) return ERR_OK;
    Err e = listener_open(&s->listeners[i], s->loop, &o);
    if (e != ERR_OK) s->code = SERVER_BIND;
    return e != ERR_OK ? err_add(e, "%s", server_names[i]) : e;
}

// admin: http puts administration on the main addresses.
Err server_listen(Server *s) {
    const ServeSettings *set = &s->o.config->serve;
    bool                 same = strcmp(set->admin, "http") == 0;
    TRY(listen_at(s, 0, set->http,
                  rest_handler(s->rest, same ? ROUTE_MAIN | ROUTE_ADMIN : ROUTE_MAIN)));
    TRY(listen_at(s, 1, set->grpc, grpc_handler(s->grpc, same)));
    TRY(listen_at(s, 2, set->metrics, rest_handler(s->rest, ROUTE_OPS)));
    return same ? ERR_OK : listen_at(s, 3, set->admin, rest_handler(s->rest, ROUTE_ADMIN));
}

static void end(Server *s) {
    s->state = SERVER_ENDED;
    loop_stop(s->loop);
}

static void look(void *self) {
    Server *s = self;
    TimeNs  t = loop_now(s->loop);
    bool    over = desk_busy(s->desk) == 0;
    for (uint32_t i = 0; i < 2; i++)
        over = over && (s->listeners[i] == NULL || listener_drained(s->listeners[i]));
    if (over || (s->expelled && desk_busy(s->desk) == 0)) {
        end(s);
        return;
    }
    if (t >= s->until && !s->expelled) {
        s->expelled = true;
        log_with(s->log, LOG_WARN, "requests are given up", log_int("n", desk_busy(s->desk)));
        desk_expel(s->desk);
        s->until = t + LAST_NS;
    } else if (t >= s->until) {
        log_line(s->log, LOG_ERROR, "a block does not end");
        _exit(1);
    }
    if (loop_arm(s->loop, &s->timer, t + LOOK_NS) != ERR_OK) end(s);
}

static void drain(void *self) {
    Server *s = self;
    s->state = SERVER_DRAINING;
    s->until = loop_now(s->loop) + (TimeNs)s->o.config->serve.drain_ms * 1000000;
    for (uint32_t i = 0; i < 2; i++)
        if (s->listeners[i] != NULL) listener_drain(s->listeners[i]);
    s->timer.fire = look;
    look(s);
}

void server_stop(Server *s, TimeNs delay_ns) {
    bool early = s->state == SERVER_STARTING;
    s->state = SERVER_LINGERING;
    notify_say("STOPPING=1");
    log_with(s->log, LOG_INFO, "stops", log_int("requests", desk_busy(s->desk)),
             log_real("delay_s", (double)delay_ns / 1e9));
    s->timer = (LoopTimer){.fire = drain, .self = s};
    if (early || delay_ns == 0 ||
        loop_arm(s->loop, &s->timer, loop_now(s->loop) + delay_ns) != ERR_OK)
        drain(s);
}

Err server_keep(Server *s, Config *c) {
    Config **more = realloc(s->configs, (s->n_configs + 1) * sizeof(Config *));
    if (more == NULL) return err_set(ERR_LIMIT, "no memory");
    s->configs = more;
    s->configs[s->n_configs++] = c;
    return ERR_OK;
}

// The first one has the addresses and limits that were started with, so it stays to the end.
void server_forget(Server *s, bool all) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < s->n_configs; i++) {
        Config *c = s->configs[i];
        if (!all && (i == 0 || fleet_uses(s->fleet, c))) {
            s->configs[n++] = c;
            continue;
        }
        config_finish(c);
        free(c);
    }
    s->n_configs = n;
}

static void reloaded(void *self, uint32_t failed) {
    Server *s = self;
    s->reloading = false;
    if (failed > 0)
        log_with(s->log, LOG_ERROR, "reloaded in part: what failed stays as it was",
                 log_int("failed", failed));
    else
        log_line(s->log, LOG_INFO, "reloaded");
    server_forget(s, false);
    if (s->again) server_reload(s);
}

// Addresses and limits stay as they were at the start; models and their settings change.
void server_reload(Server *s) {
    s->again = s->reloading;
    if (s->again) return;
    Config *c = calloc(1, sizeof *c);
    Err     e = c != NULL ? config_load(c, &s->o.sources) : err_set(ERR_LIMIT, "no memory");
    if (e == ERR_OK) {
        e = server_keep(s, c);
        if (e != ERR_OK) config_finish(c);
    }
    if (e != ERR_OK) {
        log_with(s->log, LOG_ERROR, "not reloaded: everything stays as it was",
                 log_text("why", err_why()));
        free(c);
        return;
    }
    s->reloading = true;
    fleet_reload(s->fleet, c, reloaded, s);
}

static void told(Server *s, int signal) {
    if (signal == SIGHUP) {
        if (s->state == SERVER_SERVING) server_reload(s);
    } else if (signal == SIGUSR1) {
        logger_reopen(s->logger);
    } else if (signal == SIGTERM || signal == SIGINT) {
        if (s->state >= SERVER_LINGERING) _exit(128 + signal);
        s->signal = signal;
        TimeNs delay = (TimeNs)s->o.config->serve.drain_delay_ms * 1000000;
        server_stop(s, signal == SIGINT ? 0 : delay);
    }
}

static void read_signals(void *self, uint32_t events) {
    Server                 *s = self;
    struct signalfd_siginfo info;
    (void)events;
    while (read(s->signals.fd, &info, sizeof info) == (ssize_t)sizeof info)
        told(s, (int)info.ssi_signo);
}

Err server_signals(Server *s) {
    sigset_t set;
    sigemptyset(&set);
    const int all[] = {SIGTERM, SIGINT, SIGHUP, SIGUSR1};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) sigaddset(&set, all[i]);
    if (pthread_sigmask(SIG_BLOCK, &set, NULL) != 0 || signal(SIGPIPE, SIG_IGN) == SIG_ERR ||
        signal(SIGXFSZ, SIG_IGN) == SIG_ERR)
        return err_set(ERR_IO, "cannot block signals: %s", strerror(errno));
    int fd = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
    if (fd < 0) return err_set(ERR_IO, "cannot read signals: %s", strerror(errno));
    s->signals = (LoopFd){.fd = fd, .events = EPOLLIN, .ready = read_signals, .self = s};
    return loop_watch(s->loop, &s->signals);
}
